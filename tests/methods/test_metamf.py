"""MetaMF against its definition: one model of generator, vectors and devices, differentiated as a whole."""

import numpy as np
import torch

from confed.clients.sampling import draw_rows
from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.random import Stream
from confed.testing import PeopleConformance, assert_equal_states, tiny
from confed.testing.conformance import SEED
from confed.testing.states import whole_state

SMALL = {"dim": 8, "memory": 6, "hidden": 12, "rank": 3, "learning_rate": 0.02, "clients_per_turn": 7}


def scores(params, vector, dim, rank):
    """(items,) of one client, by the equations."""
    shared = vector @ params["memory"]

    def applied(name, to):
        return params[f"{name}.weight"] @ to + params[f"{name}.bias"]

    def made(name, part):
        return applied(name, torch.relu(applied(f"hidden_{part}", shared)))

    table = made("items_left", 2).view(-1, rank) @ made("items_right", 2).view(rank, dim)
    layer = torch.relu(table @ made("inner", 0).view(dim, dim // 4) + made("inner_bias", 0))
    return layer @ made("outer", 1) + made("outer_bias", 1)


class TestMetaMF(PeopleConformance):
    method = "metamf"
    options = SMALL
    exchanges = 8  # four turns, of training and of what each client sent
    single_precision = 1e-4  # Adam makes much of the last bit
    serves_newcomers = False

    def test_a_round_equals_adam_on_the_whole_model(self) -> None:
        """The devices' gradients, taken back by the server, are those of their losses by everything that it has."""
        config = self.terms().config
        trainer = self.federation(chunk=3)
        trainer.round(1)
        before = {name.removeprefix("server."): value.clone() for name, value in whole_state(trainer).items()}
        params = {n: v.requires_grad_() for n, v in before.items() if not n.startswith(("first.", "second.", "steps"))}
        optimiser = torch.optim.Adam(params.values(), lr=config.learning_rate, weight_decay=config.weight_decay)
        for name, param in params.items():
            optimiser.state[param] = {
                "step": torch.tensor(float(before["steps"])),
                "exp_avg": before[f"first.{name}"],
                "exp_avg_sq": before[f"second.{name}"],
            }
        data = self.people(trainer).data
        rows = draw_rows(data, np.arange(data.users), 4, Stream.of(SEED, "negatives", 2), torch.float64)
        place_of = {client: place for place, client in enumerate(rows.clients.tolist())}
        for turn in trainer.server.strategy.turns(torch.arange(tiny.USERS), 2):
            optimiser.zero_grad()
            losses = []
            for client in turn.tolist():
                place = place_of[client]
                own = slice(0, int(rows.lengths[place]))
                items = rows.touched[place][rows.local[place, own]]
                logits = scores(params, params["vectors"][client], config.dim, config.rank)[items]
                labels = rows.labels[place, own]
                losses.append(torch.nn.functional.binary_cross_entropy_with_logits(logits, labels))
            torch.stack(losses).mean().backward()
            torch.nn.utils.clip_grad_norm_(params.values(), config.gradient_clip)
            optimiser.step()
        trainer.round(2)
        expected = {f"server.{name}": value.detach() for name, value in params.items()}
        found = {name: value for name, value in whole_state(trainer).items() if name in expected}
        assert_equal_states(found, expected, tolerance=1e-9)


class TestClipped(TestMetaMF):
    options = {**SMALL, "gradient_clip": 0.01, "weight_decay": 0.0}


def trainer():
    method = method_named("metamf")
    return method.trainer(Terms(method.config(None, SMALL), seed=1, dtype="float64"), tiny.cut(), {})


def test_everybody_has_a_turn_in_another_order_every_round():
    strategy = trainer().server.strategy
    one, two = ([turn.tolist() for turn in strategy.turns(torch.arange(tiny.USERS), n)] for n in (1, 2))
    for turns in (one, two):
        assert sorted(client for turn in turns for client in turn) == list(range(tiny.USERS))
        assert [len(turn) for turn in turns] == [7, 7, 7, 3]
    assert one != two


def test_models_are_made_for_those_who_are_served_and_nobody_else():
    download = trainer().server.strategy.download(torch.tensor([5, 2]))
    assert download.table_of[[5, 2]].tolist() == [0, 1]
    assert len(download.tables["items"]) == 2 and int((download.table_of < 0).sum()) == tiny.USERS - 2
    assert torch.linalg.matrix_rank(download.tables["items"][0]) == 3
