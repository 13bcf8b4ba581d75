"""Which column plays which role: the one that was named, else the one with the most usual name.

Case, spaces and signs do not count: customer_id, CustomerID and "Customer ID" are one name. The usual names of a role
stand in ranks, and the first rank that a source has a name of decides: an explicit id goes before a code, a code
before a bare noun, and that before a name. Two names of one rank are a question to the user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from confed.errors import ConfedError, unknown_name

ROLES = ("user", "item", "rating", "timestamp")
READING = (*ROLES, "date_order")
"""What a user may say about the columns of a source: which plays which role, and how its dates are written."""
Where = Callable[[int], str]
"""Says where row n (from 0) stands, for a message."""

_PEOPLE = (
    "user|customer|client|member|buyer|shopper|consumer|reader|viewer|listener|player|learner|student|account|"
    "subscriber|visitor|guest|patron|reviewer|rater|person|household"
)
_THINGS = (
    "product|article|track|song|album|artist|podcast|movie|film|video|show|series|episode|anime|book|game|app|course|"
    "recipe|restaurant|business|venue|hotel|news"
)
_EVENTS = "event|interaction|action|order|purchase|sale|sales|invoice|transaction|checkout|rating|review|click|checkin"
_PASTIMES = "play|listen|stream|watch|view|visit|read|loan"
"""They take time: watch_time is how long."""
_DONE = (
    "ordered|purchased|bought|sold|rated|reviewed|played|listened|streamed|watched|viewed|visited|clicked|read|"
    "borrowed|consumed|completed|occurred|happened"
)
_WRITTEN = "created|added|recorded|logged|submitted|posted"
_ID = "(id|idx|uuid|guid)"
_CODE = "(key|code|no|nr|number)"

_USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "user": (
        rf"user{_ID}|iduser|uid",
        rf"({_PEOPLE}){_ID}|id({_PEOPLE})",
        rf"({_PEOPLE}){_CODE}",
        "user",
        _PEOPLE,
        "username|login|(user|customer)?email",
    ),
    "item": (
        rf"item{_ID}|iditem|iid",
        rf"({_THINGS}){_ID}|id({_THINGS})",
        rf"sku|asin|isbn|ean|upc|gtin|barcode|stockcode|mid|(item|product|article){_CODE}",
        "item",
        _THINGS,
        rf"(item|{_THINGS})(name|title)|title",
    ),
    # Only names that are surely numbers: a rating that is none is refused.
    "rating": (
        "rating",
        "ratings",
        rf"(user|star|review|item|{_THINGS})rating|rating(value|score)",
        "score",
        "stars",
        "overall",
        "weight",
    ),
    "timestamp": (
        "timestamp|ts",
        rf"unix(time|timestamp|reviewtime)|epoch|({_EVENTS}|{_PASTIMES})timestamp",
        rf"datetime|({_EVENTS})time|({_EVENTS}|{_PASTIMES})(date|datetime)|({_DONE})(at|on|date)",
        rf"({_WRITTEN})(at|on|date|time)|date({_WRITTEN})",
        "when|date|time",
    ),
}


def require_roles(columns: Iterable[str]) -> None:
    for role in columns:
        if role not in ROLES:
            raise unknown_name("column role", role, ROLES)


def refuse(options: Iterable[str], name: str, kind: str) -> None:
    """Raise if somebody says how to read what is not a file or a frame of the user's own."""
    said = [f"--{one}-column" if one in ROLES else f"--{one.replace('_', '-')}" for one in options]
    if said:
        raise ConfedError(
            f"{name}: {kind} takes no options, got {', '.join(said)}: leave out what says how to read a file or a frame"
        )


def plain_name(name: str) -> str:
    """user_id:token, userId and "User ID" all become userid."""
    return re.sub(r"[^a-z0-9]", "", name.partition(":")[0].lower())


def is_usual(role: str, name: str) -> bool:
    return any(re.fullmatch(rank, plain_name(name)) for rank in _USUAL_NAMES[role])


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
            found = _most_usual(role, names, set(places.values()))
            require_different(names, label, [names[place] for place in found])
            if len(found) > 1:
                raise _ambiguous(role, [names[place] for place in found], label)
            if found:
                places[role] = found[0]
    places = _complete(places, names, label, header)
    return places | _titles(names, places)


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


def _most_usual(role: str, names: Sequence[str], taken: set[int]) -> list[int]:
    """The places of the names of the first rank that there are any of."""
    plain = {place: plain_name(name) for place, name in enumerate(names) if place not in taken}
    ranks = ([place for place, name in plain.items() if re.fullmatch(rank, name)] for rank in _USUAL_NAMES[role])
    return next(filter(None, ranks), [])


def _titles(names: Sequence[str], places: Mapping[str, int]) -> dict[str, int]:
    """`product_name` is the title of a `product_id`, a `sku` or an `item`; a bare `name` may be anybody's."""
    own = plain_name(names[places["item"]])
    if re.fullmatch(_USUAL_NAMES["item"][-1], own):
        return {}  # items are called by their titles
    item = re.fullmatch(rf"(?:id)?({_THINGS})(?:{_ID}|{_CODE})?", own)
    noun = item[1] if item else f"item|{_THINGS}"
    free = {place: plain_name(name) for place, name in enumerate(names) if place not in places.values()}
    for key, pattern in (("title", rf"({noun})(name|title)"), ("name", "title"), ("name", "name")):
        found = [place for place, name in free.items() if re.fullmatch(pattern, name)]
        if found:
            return {key: found[0]} if len(found) == 1 else {}
    return {}


def _complete(places: dict[str, int], names: Sequence[str], label: str, header: bool) -> dict[str, int]:
    for role in ("user", "item"):
        if role not in places:
            raise _missing(role, names, label, f"no column looks like the {role} id", header)
    return {role: places[role] for role in ROLES if role in places}


def _missing(role: str, names: Sequence[str], label: str, reason: str, header: bool = False) -> ConfedError:
    or_data = ", or, if the first line is data, `confed data import` it with --no-header" if header else ""
    return ConfedError(
        f"{label}: {reason}; its columns are {', '.join(names)}: name the right one with --{role}-column{or_data}"
    )


def _ambiguous(role: str, candidates: Sequence[str], label: str) -> ConfedError:
    *others, last = candidates
    what = {"user": "user id", "item": "item id", "timestamp": "time stamp"}.get(role, role)
    return ConfedError(
        f"{label}: {', '.join(others)} and {last} look equally like the {what}: name the right one with --{role}-column"
    )
