"""What is at hand: the files of registered datasets, and what was imported. Nothing is read, so asking is quick."""

from __future__ import annotations

import re
from pathlib import Path

from confed.data import sources
from confed.data.catalogue import DOMAINS, REGISTRY
from confed.data.contents import exists, own_path
from confed.errors import unknown_name

IMPORTED = "imported"
"""The folder of imports, in the user's folder or the cache."""
MANIFEST = "domains.json"
"""The file by which a folder of domains is known: their order and their files."""


def names() -> list[str]:
    """All names by which data is known."""
    return [*REGISTRY, *DOMAINS, "synthetic", *imported()]


def require_source(source: str) -> None:
    """Raise if it is no name, and does not look like one or more files either."""
    path = own_path(source)
    file = exists(path) or path.suffix or len(path.parts) > 1 or PAIR.match(source)
    if not file and source not in names() and source.partition(":")[0] != "synthetic":
        raise unknown_name("dataset", source, names())


PAIR = re.compile(r"\s*[A-Za-z0-9_-]+\s*=")
"""How the file of one of several domains begins: `book=`."""


def find_local(name: str) -> Path | None:
    """The file of a registered dataset, if it is in the user's folder or the cache."""
    found = sources.at_hand(REGISTRY[name].files)
    return found[1] if found else None


def is_at_hand(name: str) -> bool:
    """Whether nothing has to be fetched for a registered dataset, of one domain or of several."""
    return set(DOMAINS[name].domains) <= set(domains_at_hand(name)) if name in DOMAINS else find_local(name) is not None


def domains_at_hand(name: str) -> dict[str, Path]:
    """The files of a registered dataset's domains, optional ones too, that are in the user's folder or the cache."""
    entry = DOMAINS[name]
    wanted = {domain: one.files for domain, one in entry.domains.items()}
    wanted |= {domain: (file,) for domain, file in entry.optional.items()}
    found = {domain: sources.at_hand(files) for domain, files in wanted.items()}
    return {domain: place[1] for domain, place in found.items() if place is not None}


def imported() -> dict[str, Path]:
    """What was imported, by name: a file, or a folder of several domains. The user's folder goes before the cache."""
    found = {}
    for home in filter(None, (sources.cache_dir(), sources.data_dir())):
        for path in sorted((home / IMPORTED).glob("*")):
            if is_domain_folder(path):
                found[path.name] = path
            elif path.suffix == ".parquet" and path.is_file():
                found[path.stem] = path
    return found


def is_domain_folder(path: Path) -> bool:
    """Whether `Domains.save` wrote it."""
    return exists(path / MANIFEST)
