"""A federation's state, and the parts of it that lie at its sites.

What people keep is one tensor a parameter, named `client.…`, with a row for each of them; a company's tensors carry its
name. So parts of people are put together row by row, and those of companies side by side. Of a table whose rows are
stored where they changed, `client.TABLE.count` says how many rows of `client.TABLE.changed.…` are whose, one client
after another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor

_BY_CLIENT = "client."
_BY_CHANGE = ".changed."


def joined_states(parts: Sequence[Mapping[str, Tensor]], held: Sequence[Tensor]) -> dict[str, Tensor]:
    """As one site would have it; `held` are the places among all of the clients of each part."""
    everybody = sum(len(places) for places in held)
    found: dict[str, Tensor] = {}
    changed: dict[str, list[Tensor]] = {}
    for part, places in zip(parts, held, strict=True):
        for name, value in part.items():
            if not name.startswith(_BY_CLIENT):
                found[name] = value
            elif _BY_CHANGE in name:
                changed.setdefault(name, []).append(value)
            else:
                if name not in found:
                    found[name] = value.new_empty(everybody, *value.shape[1:])
                found[name][places] = value
    as_they_come = torch.cat(list(held))
    for name, values in changed.items():
        count = found[_count_of(name)][as_they_come]
        found[name] = torch.cat(values)[_rows_of(count, torch.argsort(as_they_come))]
    return found


def cut_state(state: Mapping[str, Tensor], places: Tensor, domains: Collection[str]) -> dict[str, Tensor]:
    """The part of a site: of people at `places`, or of the companies of these domains."""
    prefixes = tuple(f"{domain}/" for domain in domains)
    by_client = of_clients(state, places)
    return by_client or {name: value for name, value in state.items() if name.startswith(prefixes)}


def of_clients(state: Mapping[str, Tensor], places: Tensor) -> dict[str, Tensor]:
    """What the people at `places` keep, in that order."""
    found = {}
    for name, value in state.items():
        if name.startswith(_BY_CLIENT):
            found[name] = value[_rows_of(state[_count_of(name)], places) if _BY_CHANGE in name else places]
    return found


def _count_of(name: str) -> str:
    return f"{name.partition(_BY_CHANGE)[0]}.count"


def _rows_of(count: Tensor, places: Tensor) -> Tensor:
    """Where the rows of clients at `places` lie, of whom each has `count`."""
    starts, own = count.cumsum(0) - count, count[places]
    shifts = starts[places] - (own.cumsum(0) - own)
    return torch.repeat_interleave(shifts, own) + torch.arange(int(own.sum()))
