"""`load`, the door to all data: by name from the catalogue, synthetic, imported, or files and frames.

`load_dataset` opens it for data of one domain, `load_domains` for data of several. A copy of a registered dataset that
differs from its catalogue entry is refused: figures measured on other data cannot be compared.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from confed.data import sources
from confed.data.catalogue import DOMAINS, REGISTRY, DatasetEntry, DomainsEntry
from confed.data.contents import exists, own_path
from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.readers import read_titles
from confed.data.reading import READING, refuse
from confed.data.recognition import filtered
from confed.data.shelf import (
    IMPORTED,
    MANIFEST,
    PAIR,
    domains_at_hand,
    imported,
    is_at_hand,
    is_domain_folder,
    names,
    require_source,
)
from confed.data.sources import Notice, Progress
from confed.data.synthetic import Recipe, synthetic
from confed.data.synthetic_domains import DomainsRecipe, synthetic_domains
from confed.errors import ConfedError, unknown_name
from confed.files import unwritable_said


def load(source: Any, **options: Any) -> Interactions | Domains:
    """What `source` holds: see `load_dataset` for one domain, `load_domains` for several."""
    return load_domains(source, **options) if has_domains(source, options) else load_dataset(source, **options)


def has_domains(source: Any, options: Iterable[str] = ()) -> bool:
    """Whether a source, or `synthetic` with these options, is data of several domains."""
    if not isinstance(source, str):
        return isinstance(source, Domains | Mapping) or (isinstance(source, Path) and is_domain_folder(source))
    kind, _, told = source.partition(":")
    if kind == "synthetic":
        return "domains" in options or re.search(r"(^|,)\s*domains\s*=", told) is not None
    if source in REGISTRY or source in DOMAINS:
        return source in DOMAINS
    path = imported().get(source, own_path(source))
    return is_domain_folder(path) or (not exists(path) and PAIR.match(source) is not None)


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
    if has_domains(source, options):
        raise _too_many_domains(source)
    if isinstance(source, str):
        data = _named(source, options, progress, notice)
    else:
        data = Interactions.of(source, notice=notice, **options)
    return data.keep_users(min_interactions)


def _named(source: str, options: dict[str, Any], progress: Progress | None, notice: Notice | None) -> Interactions:
    kind, _, told = source.partition(":")
    if kind == "synthetic":
        return synthetic(**_synthetic_options(Recipe, told, options))
    if source in REGISTRY:
        refuse(options, source, "a registered dataset")
        return _registered(REGISTRY[source], progress, notice)
    kept = imported().get(source)
    if kept is not None:
        refuse([option for option in options if option in READING and option != "time"], source, "an import")
        return Interactions.of(kept, **{"name": source, **options})
    require_source(source)
    return Interactions.of(own_path(source), notice=notice, **options)


def load_domains(
    source: Any,
    *,
    min_interactions: int = 1,
    progress: Progress | None = None,
    notice: Notice | None = None,
    **options: Any,
) -> Domains:
    """Domains from a registry name, `synthetic:domains=3`, an imported name, `book=a.csv,music=b.csv` or a folder.

    In Python a mapping of domain to file, frame or Interactions does as well, and a Domains. Options are those of
    `synthetic_domains`, or of `Interactions.of` and then count for every domain. `min_interactions` drops users
    domain by domain.
    """
    if isinstance(source, str):
        data = _named_domains(source, options, progress, notice)
    else:
        data = Domains.of(source, notice=notice, **options)
    return data.keep_users(min_interactions, distinct=False)


def _named_domains(source: str, options: dict[str, Any], progress: Progress | None, notice: Notice | None) -> Domains:
    kind, _, told = source.partition(":")
    if kind == "synthetic":
        return synthetic_domains(**_synthetic_options(DomainsRecipe, told, options))
    if source in DOMAINS:
        refuse(options, source, "a registered dataset")
        return _registered_domains(DOMAINS[source], progress, notice)
    if has_domains(source):
        kept = imported().get(source)
        if kept is not None:
            return Domains.of(kept, **{"name": source, **options})
        path = own_path(source)
        files = path if exists(path) else domain_files(_SEPARATOR.split(source))
        return Domains.of(files, notice=notice, **options)
    if source in names() or exists(own_path(source)):
        raise ConfedError(
            f"{source} has one domain, several are needed: say book=a.csv,music=b.csv, or one of {', '.join(DOMAINS)}"
        )
    raise unknown_name("dataset", source, names())


def whereabouts(source: Any) -> str | None:
    """The source with whole paths, if it is one or more files: wherever one stands, they are found again."""
    if not isinstance(source, str | Path) or str(source).partition(":")[0] == "synthetic" or str(source) in names():
        return None
    path = own_path(source)
    if not exists(path) and has_domains(source):
        files = domain_files(_SEPARATOR.split(str(source)))
        return ",".join(f"{domain}={file.absolute()}" for domain, file in files.items())
    return str(path.absolute())


def each_file(source: str, change: Callable[[str], str]) -> str:
    """A source that is one file, or files of several domains, with every path changed."""
    if PAIR.match(source) is None:
        return change(source)
    pairs = (pair.partition("=") for pair in _SEPARATOR.split(source))
    return ",".join(f"{domain.strip()}={change(path.strip())}" for domain, _, path in pairs)


def domain_files(pairs: Iterable[str]) -> dict[str, Path]:
    """The files of `book=a.csv` and so on, by domain; an imported name stands for its file."""
    files: dict[str, Path] = {}
    known = imported()
    for pair in pairs:
        domain, equals, path = (text.strip() for text in pair.partition("="))
        if not (domain and equals and path):
            raise ConfedError(f"{pair!r}: a domain is written as its name and its file, such as book=a.csv")
        if domain in files:
            raise ConfedError(f"domain {domain} is given twice ({files[domain]} and {path}): name another one")
        files[domain] = known.get(path, own_path(path))
    return files


def domain_names(source: str) -> list[str]:
    """The domains of `book=a.csv,music=b.csv`."""
    return list(domain_files(_SEPARATOR.split(source)))


_SEPARATOR = re.compile(r",(?=\s*[A-Za-z0-9_-]+\s*=)")  # a comma may also be part of a path


def _too_many_domains(source: Any) -> ConfedError:
    label = source if isinstance(source, str | Path) else "the data"
    return ConfedError(
        f"{label} has several domains: choose a method for several domains (`confed methods` lists them), or give "
        "the file of one domain alone"
    )


# --- registered datasets ----------------------------------------------------------------------------------------


def _registered(entry: DatasetEntry, progress: Progress | None, notice: Notice | None) -> Interactions:
    found = sources.at_hand(entry.files)
    if found is not None:
        return _read(entry, *found, sources.at_hand(entry.titles))
    with sources.delivery(notice) as fetched:
        file, path = fetched.find(
            entry.name, entry.files, entry.remotes, terms=entry.terms, progress=progress, notice=notice
        )
        data = _read(entry, file, path, fetched.at_hand(entry.titles))
        fetched.keep()
    return data


def _read(entry: DatasetEntry, file: str, path: Path, titled: tuple[str, Path] | None) -> Interactions:
    copy = next(copy for copy in entry.copies if copy.file == file)
    data = Interactions.of(
        path,
        format=copy.format,
        name=entry.name,
        time=copy.time,
        pseudo_time=entry.pseudo_time,
        titles=read_titles(titled[1]) if titled else {},
    ).keep_users(entry.min_interactions)
    counts = (entry.users, entry.items, entry.interactions) if entry.counts_checked else None
    _check(data, entry.name, path, counts, copy.content_hash)
    return data


def _check(
    data: Interactions, name: str, path: Path, counts: tuple[int, int, int] | None, content_hash: str | None
) -> None:
    if sources.is_being_fetched(path):
        remedy = "it was not kept; try again later, or put a copy you trust into CONFED_DATA"
    else:
        remedy = f"replace the file, or read it as your own data by its path ({path})"
    found = (data.n_users, data.n_items, len(data))
    if counts is not None and found != counts:
        raise ConfedError(
            f"{path} is not {name}: it has {found[0]:,} users, {found[1]:,} items and {found[2]:,} "
            f"interactions, expected {counts[0]:,}, {counts[1]:,} and {counts[2]:,}; {remedy}"
        )
    if content_hash is not None and data.content_hash != content_hash:
        raise ConfedError(
            f"{path} is not {name}: the counts fit but the rows differ (content hash "
            f"{data.content_hash}, expected {content_hash}); {remedy}"
        )


def _registered_domains(entry: DomainsEntry, progress: Progress | None, notice: Notice | None) -> Domains:
    known = domains_at_hand(entry.name)
    if is_at_hand(entry.name):
        return _read_domains(entry, {**{domain: known[domain] for domain in entry.domains}, **known})
    with sources.delivery(notice) as fetched:
        found = {}
        # What nobody can download comes first: where it is missing, nothing needs to be fetched.
        for domain, one in sorted(entry.domains.items(), key=lambda pair: bool(pair[1].remotes)):
            name = f"{entry.name} (domain {domain})"
            _, found[domain] = fetched.find(
                name, one.files, one.remotes, terms=entry.terms, origin=one.origin, progress=progress, notice=notice
            )
        data = _read_domains(entry, {**{domain: found[domain] for domain in entry.domains}, **known})
        fetched.keep()
    return data


def _read_domains(entry: DomainsEntry, paths: Mapping[str, Path]) -> Domains:
    data = filtered(Domains.of(paths, name=entry.name, time=entry.time), entry)
    if data.names != tuple(entry.domains):
        return data  # with an optional domain the filter leaves other rows, which nobody has counted
    together = "" if entry.core is None else f", filtered together with {len(data.names) - 1} more"
    for domain, one in entry.domains.items():
        counts = (one.users, one.items, one.interactions)
        _check(data[domain], f"{entry.name} (domain {domain}{together})", paths[domain], counts, one.content_hash)
    return data


def get_dataset(name: str, progress: Progress | None = None, notice: Notice | None = None) -> Interactions:
    """Fetch a registered dataset, and its titles even where the interactions are at hand without them."""
    if name in DOMAINS:
        raise _too_many_domains(name)
    entry = REGISTRY.get(name)
    if entry is None:
        raise unknown_name("dataset", name, [*REGISTRY, *DOMAINS])
    data = _registered(entry, progress, notice)
    if data.titles or not entry.titles or not entry.remotes:
        return data
    try:
        with sources.delivery(notice) as fetched:
            _, path = fetched.find(
                name, entry.titles, entry.remotes, terms=entry.terms, progress=progress, notice=notice
            )
            read_titles(path)
            fetched.keep(entry.titles)
    except ConfedError as error:
        sources.announce(f"{name} is complete but for its titles: {error.message}", notice)
        return data
    return _registered(entry, progress, notice)


# --- imports ----------------------------------------------------------------------------------------------------


def import_dataset(data: Interactions | Domains, name: str, *, overwrite: bool = False) -> Path:
    """Keep `data` in the cache so that `load(name)` finds it."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
        raise ConfedError(f"--name {name[:100]!r}: use letters, digits, dots, dashes and underscores, at most 100")
    if name in REGISTRY or name in DOMAINS or name == "synthetic":
        raise ConfedError(f"--name {name!r} is the name of a registered dataset: choose another")
    with sources.writing_to_cache():
        if name in imported() and not overwrite:
            raise ConfedError(
                f"--name {name!r} was imported before ({imported()[name]}): choose another or say --overwrite"
            )
        return _keep(data, name)


def _keep(data: Interactions | Domains, name: str) -> Path:
    """In the place of what had the name before."""
    file, folder = (sources.cache_dir() / IMPORTED / stored for stored in (f"{name}.parquet", name))
    several = isinstance(data, Domains)
    with unwritable_said(folder if several else file, sources.ELSEWHERE):
        replace(data, name=name).save(folder if several else file)
        if several:
            file.unlink(missing_ok=True)
        elif is_domain_folder(folder):
            shutil.rmtree(folder)
    return folder if several else file


def remove_import(name: str) -> tuple[Path, int]:
    """Remove what `import_dataset` kept under this name: where it was, and how many bytes."""
    if name in REGISTRY or name in DOMAINS or name == "synthetic":
        raise ConfedError(f"{name} is a registered dataset: only imports can be removed")
    path = imported().get(name)
    if path is None:
        raise unknown_name("import", name, imported()) if imported() else ConfedError(f"{name}: there are no imports")
    if not path.is_relative_to(sources.cache_dir()):
        raise ConfedError(f"{name} lies in your own folder (CONFED_DATA): remove {path} by hand")
    with sources.writing_to_cache():
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        size = sum(file.stat().st_size for file in files)
        with unwritable_said(path):
            if path.is_dir():
                (path / MANIFEST).unlink(missing_ok=True)  # without which the rest is no import
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    return path, size


# --- synthetic --------------------------------------------------------------------------------------------------


def _synthetic_options(recipe: type[Recipe], told: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options of `synthetic:users=1000,seed=1`, joined with those given as arguments."""
    kinds: dict[str, type[int] | type[float]] = {
        field.name: float if isinstance(field.default, float) else int for field in fields(recipe)
    }
    known = {*kinds, "domains"}  # which would have made it a recipe of several
    parsed: dict[str, Any] = {}
    for part in filter(None, told.split(",")):
        name, equals, value = (text.strip() for text in part.partition("="))
        if name not in kinds:
            raise unknown_name("option of synthetic", name, known)
        try:
            parsed[name] = kinds[name](value)
        except ValueError:
            kind = "a whole number" if kinds[name] is int else "a number"
            raise ConfedError(f"synthetic: {name}{equals}{value[:40]} is not {kind}, write {name}=5") from None
    for name in options:
        if name not in kinds:
            raise unknown_name("option of synthetic", name, known)
    return {**parsed, **options}
