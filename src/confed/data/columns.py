"""Which column plays which role: the one that was named, else the one with the most usual name.

The usual names of a role stand in ranks (`headers.py`), and the first rank that a source has a name of decides. Two
names of one rank are a question to the user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from confed.data.headers import USUAL_NAMES, plain_name, title_ranks
from confed.data.reading import COLUMNS
from confed.errors import ConfedError, unknown_name

ROLES = ("user", "item", "rating", "timestamp")
Where = Callable[[int], str]
"""Says where row n (from 0) stands, for a message."""
Columns = Mapping[str, str | list[str] | None]
"""By role, and for the titles, the name of the column that was taken; under `ignored` the names of all others."""


def require_roles(columns: Iterable[str]) -> None:
    for role in columns:
        if role not in COLUMNS:
            raise unknown_name("column role", role, COLUMNS)


def places_by_name(
    names: Sequence[str], given: Mapping[str, str], label: str, *, header: bool = False
) -> dict[str, int]:
    """The place of the column for every role that has one, and of the items' titles: `title`, or `name` where the
    column may be named for somebody else. `header` says that the names are the first line of a file.
    """
    for role, name in given.items():
        if name not in names:
            raise _missing(role, names, label, f"there is no column {name!r}")
    require_different(names, label, given.values())
    places = {role: list(names).index(name) for role, name in given.items()}
    for role in ROLES:
        if role not in places:
            found = _most_usual(role, names, {places[other] for other in ROLES if other in places})
            require_different(names, label, [names[place] for place in found])
            if len(found) > 1:
                raise _ambiguous(role, [names[place] for place in found], label)
            if found:
                places[role] = found[0]
    places = _complete(places, names, label, header)
    return places if "title" in places else places | _titles(names, places)


def require_different(names: Sequence[str], label: str, used: Iterable[str] | None = None) -> None:
    """Raise if two columns have one name, of all or of those that are used."""
    for name in dict.fromkeys(names if used is None else used):
        places = [place for place, other in enumerate(names, start=1) if other == name]
        if len(places) > 1:
            raise ConfedError(
                f"{label}: columns {' and '.join(map(str, places))} are both called {name!r}; rename one of them"
            )


def places_by_number(
    names: Sequence[str], given: Mapping[str, str], label: str, roles: Sequence[str] = ROLES
) -> dict[str, int]:
    """The same for a file without header: columns are called 1, 2, 3, ... and have these roles in turn."""
    for role, name in given.items():
        if name not in names:
            raise _missing(role, names, label, f"there is no header, so columns are numbers; {name!r} is none")
    places = {role: int(name) - 1 for role, name in given.items()}
    for place, role in enumerate(roles[: len(names)]):
        if role not in places and place not in places.values():
            places[role] = place
    return _complete(places, names, label, header=False)


def columns_taken(taken: Mapping[str, str], names: Sequence[str]) -> Columns:
    """What a user is told: by role the column, None where there is none, and those that were of no use."""
    by_role = {role: taken.get(role) for role in COLUMNS}
    return {**by_role, "ignored": [name for name in names if name not in by_role.values()]}


def _most_usual(role: str, names: Sequence[str], taken: set[int]) -> list[int]:
    """The places of the names of the first rank that there are any of."""
    plain = {place: plain_name(name) for place, name in enumerate(names) if place not in taken}
    ranks = ([place for place, name in plain.items() if re.fullmatch(rank, name)] for rank in USUAL_NAMES[role])
    return next(filter(None, ranks), [])


def _titles(names: Sequence[str], places: Mapping[str, int]) -> dict[str, int]:
    """`product_name` is the title of a `product_id`, a `sku` or an `item`; a bare `name` may be anybody's."""
    free = {place: plain_name(name) for place, name in enumerate(names) if place not in places.values()}
    for sure, pattern in title_ranks(names[places["item"]]):
        found = [place for place, name in free.items() if re.fullmatch(pattern, name)]
        if found:
            return {"title" if sure else "name": found[0]} if len(found) == 1 else {}
    return {}


def _complete(places: dict[str, int], names: Sequence[str], label: str, header: bool) -> dict[str, int]:
    for role in ("user", "item"):
        if role not in places:
            raise _missing(role, names, label, f"no column looks like the {role} id", header)
    return {role: places[role] for role in COLUMNS if role in places}


def _missing(role: str, names: Sequence[str], label: str, reason: str, header: bool = False) -> ConfedError:
    or_data = ", or, if the first line is data, say --no-header" if header else ""
    return ConfedError(
        f"{label}: {reason}; its columns are {', '.join(names)}: name the right one with --{role}-column{or_data}"
    )


def _ambiguous(role: str, candidates: Sequence[str], label: str) -> ConfedError:
    *others, last = candidates
    what = {"user": "user id", "item": "item id", "timestamp": "time stamp"}.get(role, role)
    return ConfedError(
        f"{label}: {', '.join(others)} and {last} look equally like the {what}: name the right one with --{role}-column"
    )
