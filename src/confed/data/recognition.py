"""Which dataset of the catalogue some data is, whatever it is called and wherever it was read from.

What counts is the content. The catalogue's hashes are of data after the filter of its entry, and with the time that
the entry says a file knows: a file that is read by its path has neither. So data is brought into the entry's form
before it is hashed; counts tell most data apart before that costs anything. A copy whose hash nobody has computed yet
cannot be recognised by content: only the registry, which knows where it lies, can say what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from confed.data.catalogue import DOMAINS, REGISTRY, Copy, DatasetEntry, DomainFile, DomainsEntry, PseudoTime, Time
from confed.data.domains import Domains, joint_hash
from confed.data.interactions import Interactions
from confed.errors import ConfedError


def in_catalogue(name: Any) -> bool:
    return isinstance(name, str) and (name in REGISTRY or name in DOMAINS)


def identified(source: Any, data: Interactions | Domains) -> str | None:
    """The dataset of the catalogue that `data`, loaded from `source`, is; None if it is none.

    What was loaded by its name is that dataset: the registry refuses files that hold anything else.
    """
    return source if in_catalogue(source) else recognised(data)


def recognised(data: Interactions | Domains) -> str | None:
    """The dataset of the catalogue whose content `data` has; None if there is none."""
    entries: Mapping[str, object] = DOMAINS if isinstance(data, Domains) else REGISTRY
    return next((name for name in entries if _in_form_of(name, data) is not None), None)


def as_catalogued(data: Interactions | Domains, name: str | None) -> Interactions | Domains:
    """`data` as loading `name` would give it, if it has that content; else, and without a name, as it is."""
    found = None if name is None else _in_form_of(name, data)
    return data if found is None else found


def content_hashes(name: str) -> set[str]:
    """Of a dataset of the catalogue, the content hashes that its copies are known to have."""
    if name in DOMAINS:
        return {joint_hash({domain: one.content_hash for domain, one in DOMAINS[name].domains.items()})}
    return {copy.content_hash for copy in REGISTRY[name].copies if copy.content_hash}


def needs_filter(name: str, content_hash: str) -> bool:
    """Whether data with this hash, known to be `name`, still has rows that the filter of its entry takes away."""
    several = DOMAINS.get(name)
    filters = (several.min_rating or several.core) if several else REGISTRY[name].min_interactions > 1
    return bool(filters) and content_hash not in content_hashes(name)


def filtered(data: Domains, entry: DomainsEntry) -> Domains:
    """What the entry keeps of its files."""
    if entry.min_rating is not None:
        data = data.positive(entry.min_rating)
    return data if entry.core is None else data.core(*entry.core)


def _in_form_of(name: str, data: Interactions | Domains) -> Interactions | Domains | None:
    """`data` with time and filter of an entry, if that gives the entry's content."""
    if isinstance(data, Domains):
        return _as_domains(data, DOMAINS[name])
    entry = REGISTRY[name]
    if not _has_counts(data, entry):
        return None
    forms = ((copy, _as_copy(data, entry, copy)) for copy in entry.copies if copy.content_hash)
    return next((form for copy, form in forms if form.content_hash == copy.content_hash), None)


def _has_counts(data: Interactions, entry: DatasetEntry) -> bool:
    """Whether the entry's filter would leave as many users and rows as the entry has."""
    rows = np.bincount(data.user_index)
    kept = rows[rows >= entry.min_interactions]
    return (len(kept), kept.sum()) == (entry.users, entry.interactions)


def _as_copy(data: Interactions, entry: DatasetEntry, copy: Copy) -> Interactions:
    return _with_time(data, copy.time, entry.pseudo_time).keep_users(entry.min_interactions)


def _as_domains(data: Domains, entry: DomainsEntry) -> Domains | None:
    if data.names != tuple(entry.domains) or not all(
        _has_enough(data[domain], wanted) for domain, wanted in entry.domains.items()
    ):
        return None
    parts = {domain: _with_time(part, entry.time, part.pseudo_time) for domain, part in data.parts.items()}
    try:
        found = filtered(replace(data, parts=parts), entry)
    except ConfedError:
        return None  # the filter leaves nothing of it
    same = (found[domain].content_hash == wanted.content_hash for domain, wanted in entry.domains.items())
    return found if all(same) else None


def _has_enough(data: Interactions, wanted: DomainFile) -> bool:
    """A filter only takes away."""
    return data.n_users >= wanted.users and data.n_items >= wanted.items and len(data) >= wanted.interactions


def _with_time(data: Interactions, time: Time, pseudo_time: PseudoTime) -> Interactions:
    """The same rows; stamps that only count a user's rows are time or none, as the entry says."""
    alike = data.time == time or "none" not in (data.time, time)  # real stamps and an order are used in one way
    if alike and data.pseudo_time == pseudo_time:
        return data
    return replace(data, time=data.time if alike else time, pseudo_time=pseudo_time)
