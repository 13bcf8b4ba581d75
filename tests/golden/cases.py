"""What is recorded: on tiny data every method with every alternative of every choice it offers, one at a time."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import torch
from torch import Tensor

from confed.clients.gateway import People
from confed.data.domain_split import DomainSplit, split_domains
from confed.data.registry import load
from confed.data.shares import AnySplit
from confed.data.split import Split, split
from confed.data.synthetic import synthetic
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.methods.base import FederatedMethod
from confed.methods.registry import METHODS
from confed.protocol import STRICT, WARM
from confed.runs.prepare import Experiment, terms_of
from confed.runs.settings import Settings, resolve
from confed.testing.in_bytes import everybody, federated_in_bytes
from confed.testing.states import whole_state
from confed.training import Trainer

ROUNDS = 2
SEED = 5
DTYPES = ("float64", "float32")

SMALL: dict[str, Any] = {"dim": 4, "factors": 4, "batch_size": 16, "clusters": 4, "train_negatives": 3}
"""Options that every method has smaller here, if it has them at all."""
GENTLE: dict[str, dict[str, Any]] = {
    "fed3cr": {"learning_rate": 0.05, "item_rate": 1.0, "init_deviation": 0.5, "own_deviation": 0.3, "local_epochs": 3},
    "fedrap": {"learning_rate": 0.05, "item_rate": 1.0, "local_epochs": 3},
    "fedpergnn": {"history": 5, "neighbours": 3, "clients_per_turn": 9},
    "metamf": {"memory": 6, "hidden": 8, "rank": 3, "clients_per_turn": 7},
    "pricdr": {"projected": 8},
}
"""Steps that are meant for thousands of items, and explode where there are few; and sizes that are."""
FURTHER: dict[str, list[dict[str, Any]]] = {
    "cofedrec": [
        {"categories_per_round": 2},
        {"virtual_ratio": 0.3},
        {"supcon_anchors": 8},
        {"variant": "item-sc", "schedule": "every-step"},
        {"backbone": "fedncf", "schedule": "every-step"},
    ],
    "fed3cr": [{"backbone": "fedrap", "variant": "C4"}, {"variant": "C1", "ace": "unified"}],
    "fedrap": [{"tolerance": 0.3}, {"regulariser": "l2", "terms": "table"}],
    "fedmf": [{"aggregation": "count", "fraction": 0.5}, {"aggregation": "sum", "local_epochs": 2}],
    "fppdm++": [{"cluster_every": 2}, {"upload_clip": 0.5, "upload_noise": 0.1}],
    "fppdm": [{"alignment": 0.5, "layers": 2}],
    "fedmf-silo": [{"upload_clip": 0.5, "upload_noise": 0.1}],
}
"""Beside the alternatives of a single choice: numbers that switch something on, and a few pairs of choices."""
PEOPLE: list[dict[str, Any]] = [{"fraction": 0.5}, {"reproduction.saturating_bce": True}]
"""For every method whose clients are people."""


@dataclass(frozen=True)
class Case:
    """One configuration on tiny data."""

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return ",".join(f"{key}={value}" for key, value in self.options.items()) or "default"

    def settings(self, dtype: str = "float64") -> Settings:
        known = METHODS[self.method].config_class.model_fields
        small = {name: value for name, value in SMALL.items() if name in known} | GENTLE.get(self.method, {})
        return resolve(self.method, "tiny", seed=SEED, dtype=dtype, options={**small, **self.options})

    def cut(self) -> AnySplit:
        if METHODS[self.method].domains == "several":
            return domains(METHODS[self.method].most_domains or 3)
        return people()

    def trainer(self, dtype: str) -> Trainer:
        return METHODS[self.method].trainer(terms_of(self.settings(dtype)), self.cut(), {})

    def in_bytes(self, dtype: str) -> Trainer:
        """With every message sent through its bytes."""
        method = METHODS[self.method]
        if not isinstance(method, FederatedMethod):
            return self.trainer(dtype)
        cut = self.cut()
        return federated_in_bytes(method, terms_of(self.settings(dtype)), cut, None, everybody(cut))


@cache
def people() -> Split:
    data = synthetic(users=12, items=25, interactions_per_user=8, groups=2, categories=3, seed=3)
    return split(data, STRICT, 0)


@cache
def domains(number: int) -> DomainSplit:
    data = synthetic_domains(
        domains=number,
        users=12,
        items=25,
        interactions_per_user=8,
        groups=2,
        categories=3,
        overlap=0.6,
        sparsity=0.6,
        seed=3,
    )
    return split_domains(data, WARM.model_copy(update={"population": "all"}), 0)


def cases(method: str) -> list[Case]:
    """The defaults, then one choice after another."""
    fields = METHODS[method].config_class.model_fields
    alternatives = [
        {name: choice} for name, of in fields.items() for choice in _choices(of.annotation) if choice != of.default
    ]
    more = (PEOPLE if "fraction" in fields else []) + FURTHER.get(method, [])
    found = [Case(method, options) for options in [{}, *alternatives, *more]]
    return [case for case in found if _is_allowed(case)]


def _choices(annotation: Any) -> list[Any]:
    """The values of a field that has only a few."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if annotation is bool:
        return [False, True]
    if get_origin(annotation) in (Union, types.UnionType):
        return [choice for part in get_args(annotation) for choice in _choices(part)]
    return []


def _is_allowed(case: Case) -> bool:
    """A method may refuse a choice that does nothing beside its other defaults."""
    try:
        case.settings()
    except ConfedError:
        return False
    return True


REAL = {"pfedrec": "ml-100k", "cofedrec": "ml-100k", "fed3cr": "ml-100k", "fppdm++": "douban"}
"""Whole datasets, with the defaults a user gets, but for `_REAL`."""
_REAL: dict[str, dict[str, Any]] = {"fppdm++": {"dtype": "float64", "options": {"local_epochs": 1}}}
"""Adam makes much of rounding in a thousand steps: in float32, code for another processor ends elsewhere."""


def real_trainer(method: str) -> Trainer:
    dataset = REAL[method]
    protocol = "warm" if dataset == "douban" else "strict"
    settings = resolve(method, dataset, known=dataset, protocol=protocol, seed=SEED, **_REAL.get(method, {}))
    return Experiment.prepare(settings, load(dataset)).trainer()


def two_rounds(trainer: Trainer) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """The state after them, and every discrete choice that the server noted."""
    notes = [_discrete(trainer.round(number).notes) for number in range(1, ROUNDS + 1)]
    state = whole_state(trainer, _people(trainer))
    return {name: tensor.detach() for name, tensor in state.items()}, notes


def _people(trainer: Trainer) -> People | None:
    """Of the first site, where there are several."""
    sites = getattr(getattr(trainer, "federation", None), "sites", None)
    return sites[0].gateway if sites and isinstance(sites[0].gateway, People) else None


def _discrete(note: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in note.items()
        if isinstance(value, int | str) or (isinstance(value, list) and all(isinstance(one, int) for one in value))
    }


def sketch(tensor: Tensor, count: int = 64) -> Tensor:
    """(1 + count,) in float64: the norm, and projections on seeded directions, each a product of signs by axis.

    What changes in a tensor of millions of entries changes these, and they fit into a file. Signs by axis, because a
    sign for every entry would take longer than the training.
    """
    generator = torch.Generator().manual_seed(tensor.numel())
    rows = tensor.reshape(len(tensor), -1, tensor.shape[-1]) if tensor.dim() > 1 else tensor.reshape(-1, 1, 1)
    by_client, by_row, by_entry = (_signs(size, count, generator) for size in rows.shape)
    found = torch.zeros(1 + count, dtype=torch.float64)
    for start in range(0, len(rows), 64):
        some = rows[start : start + 64].double()
        projected = ((some @ by_entry) * by_row).sum(dim=1)
        found[1:] += (projected * by_client[start : start + 64]).sum(dim=0)
        found[0] += some.square().sum()
    found[0] = found[0].sqrt()
    return found


def _signs(size: int, count: int, generator: torch.Generator) -> Tensor:
    return torch.randint(0, 2, (size, count), generator=generator).double() * 2 - 1
