"""Methods written plainly, one client after another, and the conformance that holds ours to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from benchmarks import plain

from confed.clients.gateway import People
from confed.clients.sampling import draw_rows
from confed.random import Stream
from confed.testing import PeopleConformance, assert_equal_states
from confed.testing.conformance import SEED
from confed.testing.states import whole_state
from confed.testing.tiny import ITEMS


@dataclass(frozen=True)
class Oracle:
    """How a method is written plainly: its module, its optimisers, and the module's name of each parameter."""

    federation: plain.PlainFederation
    names: dict[str, str]
    merge: dict[str, str]
    """The server's rule for every shared parameter: a function of benchmarks/plain.py."""
    then: tuple[plain.PlainFederation, ...] = ()
    """How the phases after the first are written."""
    begin: Callable[[plain.State, int], plain.State] = lambda state, samples: state
    """What a client with so many rows makes of its parameters before its first batch."""


class OracleConformance(PeopleConformance):
    """For methods of ours, which have an oracle each."""

    def oracle(self, config: Any, items: int) -> Oracle:
        raise NotImplementedError

    def test_cohort_equals_the_oracle(self) -> None:
        trainer = self.federation(chunk=7)
        before = {name: value.clone() for name, value in whole_state(trainer).items()}
        trainer.round(1)
        expected = oracle_round(self.oracle(self.terms().config, ITEMS), self.people(trainer), before)
        assert expected.keys() == before.keys()
        assert_equal_states(whole_state(trainer), expected, tolerance=1e-8)
        assert any(not torch.equal(before[name], value) for name, value in expected.items())


@dataclass(frozen=True)
class PlainClient:
    """A client trained plainly."""

    number: int
    items: set[int]
    samples: int
    params: dict[str, torch.Tensor]


def plain_clients(oracle: Oracle, people: People, before: dict[str, torch.Tensor], number: int) -> list[PlainClient]:
    """Local training of round `number`, one client after another, on the rows the gateway draws; by client number."""
    procedure = people.procedure
    rows = draw_rows(
        people.data,
        np.arange(people.data.users),
        procedure.negatives,
        Stream.of(SEED, "negatives", number),
        people.agreement.dtype,
        virtual=procedure.virtual,
    )
    shuffle = Stream.of(SEED, "shuffle", number)
    forgotten = [spec for spec in people.backbone.params if spec.renewal]
    fresh = {spec.name: spec.renewed(rows.ids, SEED, number, people.agreement.dtype) for spec in forgotten}
    template = oracle.federation.model.double().state_dict()
    trained = []
    for position, client in enumerate(rows.clients):
        held = {
            name: fresh[name][position] if name in fresh else _of_client(before, name, int(client))
            for name in oracle.names
        }
        start = {module: held[name].view_as(template[module]) for name, module in oracle.names.items()}
        items, labels = plain.client_rows(rows, position)
        state = oracle.begin(start, len(items))
        phases = zip((oracle.federation, *oracle.then), procedure.phases, strict=True)
        for place, (federation, phase) in enumerate(phases):
            stream = shuffle.child(f"phase {place}") if place else shuffle
            orders = plain.epoch_orders(rows, position, phase.epochs, stream)
            state = federation.train_client(state, items, labels, orders).state_dict()
        params = {name: state[module].view(held[name].shape) for name, module in oracle.names.items()}
        trained.append(PlainClient(int(client), set(items.tolist()), len(items), params))
    return sorted(trained, key=lambda client: client.number)


def oracle_round(oracle: Oracle, people: People, before: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What the state should be after round 1."""
    clients = plain_clients(oracle, people, before, 1)
    expected = {}
    for name, value in before.items():
        side, param = name.split(".", 1)
        trained = [client.params[param] for client in clients]
        expected[name] = (
            torch.stack(trained) if side == "client" else _merge(oracle.merge[param], value, trained, clients)
        )
    return expected


def _of_client(before: dict[str, torch.Tensor], name: str, client: int) -> torch.Tensor:
    return before[f"server.{name}"] if f"server.{name}" in before else before[f"client.{name}"][client]


def _merge(rule: str, before: torch.Tensor, values: list[torch.Tensor], clients: list[PlainClient]) -> Any:
    extra = {
        "weighted_mean": ([client.samples for client in clients],),
        "mean_over_holders": ([client.items for client in clients],),
    }
    return getattr(plain, rule)(before, values, *extra.get(rule, ()))
