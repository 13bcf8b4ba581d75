"""`load_dataset`, the door to all data: by name from the catalogue, synthetic, imported, or a file or frame.

A copy of a registered dataset that differs from its catalogue entry is refused: figures measured on other data cannot
be compared.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from confed.data import sources
from confed.data.catalogue import REGISTRY, Copy, DatasetEntry
from confed.data.interactions import Interactions
from confed.data.readers import read_titles
from confed.data.sources import Notice, Progress
from confed.data.synthetic import Recipe, synthetic
from confed.errors import ConfedError, unknown_name


def find_local(name: str) -> Path | None:
    """The file of a registered dataset, if it is in the user's folder or the cache."""
    found = sources.at_hand(REGISTRY[name].files)
    return found[1] if found else None


def load_dataset(
    source: Any,
    *,
    min_interactions: int = 1,
    progress: Progress | None = None,
    notice: Notice | None = None,
    **options: Any,
) -> Interactions:
    """Interactions from a registry name, `synthetic`, an imported name, a path, a frame or an Interactions.

    Options are those of `synthetic` or of `Interactions.of`; `synthetic:users=1000,seed=1` may say them in
    the name. A registered dataset is downloaded if it is not at hand, and takes no options.
    """
    if isinstance(source, str):
        data = _named(source, options, progress, notice)
    else:
        data = Interactions.of(source, **options)
    return data.keep_users(min_interactions)


def _named(source: str, options: dict[str, Any], progress: Progress | None, notice: Notice | None) -> Interactions:
    kind, _, told = source.partition(":")
    if kind == "synthetic":
        return synthetic(**_synthetic_options(told, options))
    if source in REGISTRY:
        if options:
            raise ConfedError(f"{source}: a registered dataset takes no options, got {', '.join(options)}")
        return _registered(REGISTRY[source], progress, notice)
    kept = imported().get(source)
    if kept is not None:
        return Interactions.of(kept, **{"name": source, **options})
    path = Path(source).expanduser()
    if path.exists() or path.suffix or len(path.parts) > 1:
        return Interactions.of(path, **options)
    raise unknown_name("dataset", source, [*REGISTRY, "synthetic", *imported()])


def _registered(entry: DatasetEntry, progress: Progress | None, notice: Notice | None) -> Interactions:
    known = find_local(entry.name)
    file, path = sources.find(
        entry.name, entry.files, entry.remotes, terms=entry.terms, progress=progress, notice=notice
    )
    try:
        return _read(entry, next(copy for copy in entry.copies if copy.file == file), path)
    except ConfedError:
        if known is None:
            path.unlink()  # a download that is not what it should be must not be found the next time
        raise


def _read(entry: DatasetEntry, copy: Copy, path: Path) -> Interactions:
    titled = sources.at_hand(entry.titles)
    data = Interactions.of(
        path,
        format=copy.format,
        name=entry.name,
        time=copy.time,
        pseudo_time=entry.pseudo_time,
        titles=read_titles(titled[1]) if titled else {},
    ).keep_users(entry.min_interactions)
    _check(entry, copy, data, path)
    return data


def _check(entry: DatasetEntry, copy: Copy, data: Interactions, path: Path) -> None:
    remedy = f"replace the file, or read it as your own data by its path ({path})"
    found = (data.n_users, data.n_items, len(data))
    expected = (entry.users, entry.items, entry.interactions)
    if entry.counts_checked and found != expected:
        raise ConfedError(
            f"{path} is not {entry.name}: it has {found[0]:,} users, {found[1]:,} items and {found[2]:,} "
            f"interactions, expected {expected[0]:,}, {expected[1]:,} and {expected[2]:,}; {remedy}"
        )
    if copy.content_hash is not None and data.content_hash != copy.content_hash:
        raise ConfedError(
            f"{path} is not {entry.name}: the counts fit but the rows differ (content hash "
            f"{data.content_hash}, expected {copy.content_hash}); {remedy}"
        )


def get_dataset(name: str, progress: Progress | None = None, notice: Notice | None = None) -> Interactions:
    """Fetch a registered dataset, and its titles even where the interactions are at hand without them."""
    entry = REGISTRY.get(name)
    if entry is None:
        raise unknown_name("dataset", name, REGISTRY)
    data = _registered(entry, progress, notice)
    if data.titles or not entry.titles or not entry.remotes:
        return data
    try:
        sources.find(name, entry.titles, entry.remotes, terms=entry.terms, progress=progress, notice=notice)
    except ConfedError as error:
        sources.announce(f"{name} is complete but for its titles: {error}", notice)
        return data
    return _registered(entry, progress, notice)


_IMPORTED = "imported"


def imported() -> dict[str, Path]:
    """The datasets that were imported, by name; the user's folder goes before the cache."""
    folders = [folder / _IMPORTED for folder in (sources.cache_dir(), sources.data_dir()) if folder]
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.parquet"))}


def import_dataset(data: Interactions, name: str, *, overwrite: bool = False) -> Path:
    """Keep `data` in the cache so that `load_dataset(name)` finds it."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ConfedError(f"--name {name!r}: use letters, digits, dots, dashes and underscores")
    if name in REGISTRY or name == "synthetic":
        raise ConfedError(f"--name {name!r} is the name of a registered dataset: choose another")
    if name in imported() and not overwrite:
        raise ConfedError(
            f"--name {name!r} was imported before ({imported()[name]}): choose another or say --overwrite"
        )
    return replace(data, name=name).save(sources.cache_dir() / _IMPORTED / f"{name}.parquet")


def _synthetic_options(told: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options of `synthetic:users=1000,seed=1`, joined with those given as arguments."""
    kinds: dict[str, type[int] | type[float]] = {
        field.name: float if isinstance(field.default, float) else int for field in fields(Recipe)
    }
    parsed: dict[str, Any] = {}
    for part in filter(None, told.split(",")):
        name, equals, value = (text.strip() for text in part.partition("="))
        if name not in kinds:
            raise unknown_name("option of synthetic", name, kinds)
        try:
            parsed[name] = kinds[name](value)
        except ValueError:
            kind = "a whole number" if kinds[name] is int else "a number"
            raise ConfedError(f"synthetic: {name}{equals}{value} is not {kind}, write {name}=5") from None
    for name in options:
        if name not in kinds:
            raise unknown_name("option of synthetic", name, kinds)
    return {**parsed, **options}
