"""What is told to whom before a run whose clients are elsewhere: a site gets the data of its own clients, the server
the roster. Both get the settings. As bytes: JSON and tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as load_bytes
from torch import Tensor

from confed.data.domain_split import ColdSplit, DomainSplit
from confed.data.interactions import ONLY
from confed.data.matching import Matching
from confed.data.shares import AnySplit, Roster
from confed.data.split import Split, TrainingData
from confed.evaluation.domains import Grading
from confed.evaluation.sample import Sample
from confed.federations.frames import Frame
from confed.ragged import Ragged
from confed.runs.settings import Settings
from confed.tensors import contents, header, joined, part_of

Rankings = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class SitePart:
    """For a site."""

    settings: Settings
    rankings: Rankings
    cut: AnySplit
    rebuilt: bool
    """See `Server`."""
    sample: Sample | None = None
    """Who is examined, if not everybody."""

    def to_bytes(self) -> bytes:
        head = {
            "settings": self.settings.model_dump(mode="json"),
            "rankings": {domain: list(of) for domain, of in self.rankings.items()},
            "rebuilt": self.rebuilt,
            "sample": self.sample,
            **_facts(self.cut),
        }
        return Frame(head, [_packed(_tensors(self.cut))]).to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> SitePart:
        frame = Frame.from_bytes(data)
        head = frame.head
        cut = _cut(head, load_bytes(frame.messages[0]))
        settings = Settings.model_validate(head["settings"])
        return cls(settings, head["rankings"], cut, head["rebuilt"], head["sample"])


@dataclass(frozen=True)
class ServerPart:
    """For the server: nothing about anybody but an id and where it is held."""

    settings: Settings
    rankings: Rankings
    roster: Roster
    held: Sequence[Tensor]
    folder: str

    @property
    def grading(self) -> Grading:
        return Grading(self.settings.protocol, self.rankings)

    def to_bytes(self) -> bytes:
        head = {
            "settings": self.settings.model_dump(mode="json"),
            "rankings": {domain: list(of) for domain, of in self.rankings.items()},
            "items": self.roster.items,
            "folder": self.folder,
        }
        held = {str(site): places for site, places in enumerate(self.held)}
        tensors = joined({"held": held, "known": self.roster.known, "": {"ids": self.roster.ids}})
        return Frame(head, [_packed(tensors)]).to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> ServerPart:
        frame = Frame.from_bytes(data)
        head, tensors = frame.head, load_bytes(frame.messages[0])
        held = part_of(tensors, "held")
        roster = Roster(part_of(tensors, "")["ids"], head["items"], part_of(tensors, "known"))
        settings = Settings.model_validate(head["settings"])
        places = [held[str(site)] for site in range(len(held))]
        return cls(settings, head["rankings"], roster, places, head["folder"])


def _packed(tensors: Mapping[str, Tensor]) -> bytes:
    return header(tensors, {}) + b"".join(contents(tensors))


def _facts(cut: AnySplit) -> dict[str, Any]:
    return {
        "items": {domain: part.items for domain, part in cut.parts.items()},
        "cold": [domain for domain, part in cut.parts.items() if isinstance(part, ColdSplit)],
        "people": cut.matching.people if cut.matching else None,
    }


def _tensors(cut: AnySplit) -> dict[str, Tensor]:
    """Without the original ids of users and items, which nobody needs to train or to rank."""
    arrays: dict[str, dict[str, Any]] = {}
    for domain, part in cut.parts.items():
        ragged = {"positives": part.training.positives, "excluded": part.training.excluded, "seen": part.seen}
        of = {"ids": part.training.ids, **_flat(ragged)}
        held_out = {"validation": part.validation, "test": part.test}
        of |= _flat(held_out) if isinstance(part, ColdSplit) else held_out
        if cut.matching:
            of |= {"users": cut.matching.users[domain], "numbers": cut.matching.numbers[domain]}
        arrays[domain] = of
    if cut.numbers is not None:
        arrays[":"] = {"numbers": cut.numbers}
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in joined(arrays).items()}


def _flat(ragged: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{name}.{part}": getattr(of, part) for name, of in ragged.items() for part in ("offsets", "values")}


def _cut(head: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> AnySplit:
    arrays = {domain: {n: t.numpy() for n, t in part_of(tensors, domain).items()} for domain in head["items"]}
    parts = {
        domain: _part(head["items"][domain], arrays[domain], cold=domain in head["cold"]) for domain in head["items"]
    }
    if head["people"] is None:
        part = parts[ONLY]
        assert isinstance(part, Split)
        return part
    users, numbers = ({domain: of[name] for domain, of in arrays.items()} for name in ("users", "numbers"))
    return DomainSplit(
        parts, Matching(head["people"], users, numbers), numbers=part_of(tensors, ":")["numbers"].numpy()
    )


def _part(items: int, arrays: Mapping[str, Any], *, cold: bool) -> Split | ColdSplit:
    def ragged(name: str) -> Ragged:
        return Ragged(arrays[f"{name}.offsets"], arrays[f"{name}.values"])

    training = TrainingData(items, ragged("positives"), ragged("excluded"), arrays["ids"])
    if cold:
        return ColdSplit(training, ragged("seen"), [], [], ragged("validation"), ragged("test"))
    return Split(training, ragged("seen"), [], [], arrays["validation"], arrays["test"])
