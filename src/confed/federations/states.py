"""A federation's state, and the parts of it that lie at its sites.

What people keep is one tensor a parameter, named `client.…`, with a row for each of them; a company's tensors carry its
name. So parts of people are put together row by row, and those of companies side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from torch import Tensor

_BY_CLIENT = "client."


def joined_states(parts: Sequence[Mapping[str, Tensor]], held: Sequence[Tensor]) -> dict[str, Tensor]:
    """As one site would have it; `held` are the places among all of the clients of each part."""
    everybody = sum(len(places) for places in held)
    found: dict[str, Tensor] = {}
    for part, places in zip(parts, held, strict=True):
        for name, value in part.items():
            if name.startswith(_BY_CLIENT):
                if name not in found:
                    found[name] = value.new_empty(everybody, *value.shape[1:])
                found[name][places] = value
            else:
                found[name] = value
    return found


def cut_state(state: Mapping[str, Tensor], places: Tensor, domains: Collection[str]) -> dict[str, Tensor]:
    """The part of a site: of people at `places`, or of the companies of these domains."""
    prefixes = tuple(f"{domain}/" for domain in domains)
    by_client = {name: value[places] for name, value in state.items() if name.startswith(_BY_CLIENT)}
    return by_client or {name: value for name, value in state.items() if name.startswith(prefixes)}
