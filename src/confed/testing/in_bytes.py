"""The smallest federation whose sites are apart: all in this process, with nothing but bytes between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from confed.data.shares import AnySplit, Roster, Share
from confed.evaluation.domains import Examination, Grading
from confed.federations.base import Federation
from confed.federations.federated import Federated
from confed.federations.frames import Codec, Frame
from confed.federations.site import Site
from confed.federations.states import cut_state, joined_states
from confed.methods.base import FederatedMethod, Terms
from confed.seals import Sealed


class InBytes(Federation):
    """`held` are the places among all of the clients of each site, and `ids` the ids of all."""

    def __init__(self, sites: Sequence[Site], grading: Grading | None, held: Sequence[Tensor], ids: Tensor) -> None:
        super().__init__(held, ids)
        self.sites = sites
        rankings = grading.rankings if grading else {}
        self.codecs = [Codec(site.gateway.agreement, len(site.gateway.ids), rankings) for site in sites]
        self.frames: list[bytes] = []
        """All that crossed the line."""

    def _ask(self, question: str, about: Mapping[int, Mapping[str, Any]]) -> Iterator[Any]:
        for site, told in about.items():
            codec = self.codecs[site]
            name, asked = codec.asked(self._carried(codec.question(question, told)))
            found = getattr(self.sites[site], name)(**asked)
            for one in found if question == "each" else [found]:
                yield codec.answered(question, told, self._carried(codec.answer(name, one)))

    def _carried(self, frame: Frame) -> Frame:
        self.frames.append(frame.to_bytes())
        return Frame.from_bytes(self.frames[-1])

    def state(self) -> dict[str, Tensor]:
        pushes = self._with_push([{}] * len(self.sites))
        return joined_states([site.state(**push) for site, push in zip(self.sites, pushes, strict=True)], self.held)

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.push(None)
        for site, held in zip(self.sites, self.held, strict=True):
            site.load(cut_state(state, held, site.gateway.domains))

    def commit(self, where: Path) -> tuple[Sealed, ...]:
        """`state` has everything."""
        return ()

    def restore(self, where: Path, sites: Sequence[Sealed] | None) -> None:
        """And `load` takes it."""

    def serving_state(self) -> dict[str, Tensor]:
        self.state()  # what was pushed arrives
        return joined_states([site.serving_state() for site in self.sites], self.held)


def federated_in_bytes(
    method: FederatedMethod, terms: Terms, cut: AnySplit, examination: Examination | None, held: Sequence[Tensor]
) -> Federated:
    """What `FederatedMethod.trainer` makes, with the clients at several sites, which are examined if anybody is."""
    server = method.server(terms, Roster.of(cut))
    grading = examination.grading if examination else None
    sites = [_site(method, terms, cut.take(places.numpy()), grading, rebuilt=server.rebuilt) for places in held]
    return Federated(server, InBytes(sites, grading, held, server.ids))


def _site(method: FederatedMethod, terms: Terms, part: AnySplit, grading: Grading | None, *, rebuilt: bool) -> Site:
    judges = Examination.of(part, grading.protocol, terms.seed, grading.rankings).judges if grading else {}
    return method.site(terms, Share.of(part), judges, rebuilt=rebuilt)


def everybody(cut: AnySplit) -> list[Tensor]:
    """All clients at one site."""
    return [torch.arange(len(Roster.of(cut).ids))]
