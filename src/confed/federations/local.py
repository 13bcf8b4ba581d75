"""Everybody in this process, at one site: messages are handed over as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from confed.federations.base import Federation
from confed.federations.site import Site
from confed.seals import Sealed


class LocalFederation(Federation):
    """The site of all clients."""

    def __init__(self, site: Site) -> None:
        ids = site.gateway.ids
        super().__init__([torch.arange(len(ids))], ids)
        self.site = site

    def _ask(self, question: str, about: Mapping[int, Mapping[str, Any]]) -> Iterator[Any]:
        answer = getattr(self.site, question)(**about[0])
        if question == "each":
            yield from answer
        else:
            yield answer

    def state(self) -> dict[str, Tensor]:
        (with_push,) = self._with_push([{}])
        return self.site.state(**with_push)

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.push(None)
        self.site.load(state)

    def commit(self, where: Path) -> tuple[Sealed, ...]:
        """Nothing is elsewhere: `state` has everything."""
        return ()

    def restore(self, where: Path, sites: Sequence[Sealed] | None) -> None:
        """And `load` takes it."""

    def serving_state(self) -> dict[str, Tensor]:
        (with_push,) = self._with_push([{}])
        return self.site.serving_state(**with_push)
