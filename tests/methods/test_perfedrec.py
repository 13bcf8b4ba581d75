"""PerFedRec against its definition: every client's graph as a matrix, groups and ensembles one client after another."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import logsigmoid

from confed.clients.propagating import RankAround, Star
from confed.clients.sampling import draw_rows
from confed.data.interactions import ONLY
from confed.messages import Upload
from confed.privacy.laplace import LaplaceRows
from confed.random import Stream
from confed.server.selection import HalfByGroup
from confed.testing import PeopleConformance, Recorder, tiny
from confed.testing.conformance import SEED
from confed.testing.states import whole_state

SMALL = {"dim": 8, "groups": 3, "noise_scale": 0.0, "dropout": 0.0, "learning_rate": 0.05, "decay": 0.3}


def adjacency(items):
    """Of the client, who comes first, and these items: itself and them, each of them itself and the client."""
    matrix = torch.zeros(1 + len(items), 1 + len(items), dtype=torch.float64)
    matrix[0, :] = 1.0
    matrix[:, 0] = 1.0
    matrix += torch.diag(torch.ones(len(items) + 1, dtype=torch.float64))
    matrix[0, 0] = 1.0
    return matrix / matrix.sum(dim=1, keepdim=True)


def stepped(config, user, table, pairs):
    """One client's vector and whole table after its step."""
    user, table = user.clone().requires_grad_(), table.clone().requires_grad_()
    inside = sorted({i for i, _ in pairs})
    matrix, begin = adjacency(inside), torch.cat([user[None], table[inside]])
    passes = [begin]
    for _ in range(config.layers):
        passes.append(matrix @ (begin if config.reproduction.layers_apart else passes[-1]))
    out = torch.stack(passes).mean(dim=0)
    around = {item: out[1 + place] for place, item in enumerate(inside)}
    loss, lengths = 0.0, 0.0
    for i, j in pairs:
        loss = loss - logsigmoid(out[0] @ around[i] - out[0] @ table[j]) / len(pairs)
        lengths = lengths + out[0].square().sum() + around[i].square().sum() + table[j].square().sum()
    loss = loss + config.decay * lengths / (2 * 1024)
    optimiser = (torch.optim.Adam if config.optimiser == "adam" else torch.optim.SGD)([user, table], lr=0.05)
    loss.backward()
    optimiser.step()
    return user.detach(), table.detach()


def drawn_pairs(data, client, number):
    rows = draw_rows(data, np.array([client]), 1, Stream.of(SEED, "negatives", number), torch.float64, draw="pairs")
    items = rows.touched[0][rows.local[0, : int(rows.lengths[0])]].tolist()
    return list(zip(items[::2], items[1::2], strict=True))


class PerFedRecConformance(PeopleConformance):
    method = "perfedrec"
    served = "ensemble"
    exchanges = 3  # training, the participants' vectors, and the means of their groups

    def test_three_rounds_equal_the_definition(self) -> None:
        """Local steps, means and groups; and everybody's ensemble after each."""
        recorders = Recorder.of(self.cut())
        trainer = self.federation(chunk=5, judges=recorders, options={"most": 9})
        config, data = self.terms().config, self.people(trainer).data
        for number in (1, 2, 3):
            before = {name.removeprefix("server."): value.clone() for name, value in whole_state(trainer).items()}
            clients = trainer.server.participants(number).tolist()
            assert len(clients) == 9
            own = {}
            for client in clients:
                table = before["group_means"][before["group_of"][client]]
                own[client] = stepped(config, before["user"][client], table, drawn_pairs(data, client, number))
            trainer.round(number, ["ensemble"])
            after = {name.removeprefix("server."): value for name, value in whole_state(trainer).items()}
            for client in range(tiny.USERS):
                expected = own[client][0] if client in own else before["user"][client]
                torch.testing.assert_close(after["user"][client], expected, rtol=1e-9, atol=1e-9)
            everybody = torch.stack([table for _, table in own.values()]).mean(dim=0)
            torch.testing.assert_close(after["items"], everybody, rtol=1e-9, atol=1e-9)
            for client in range(tiny.USERS):
                group = after["group_of"][client]
                members = [own[k][1] for k in own if after["group_of"][k] == group]
                mean = torch.stack(members).mean(dim=0) if members else everybody
                torch.testing.assert_close(after["group_means"][group], mean, rtol=1e-9, atol=1e-9)
                tables = [everybody, mean, *([own[client][1]] if client in own else [])]
                expected = torch.stack([table @ after["user"][client] for table in tables]).mean(dim=0)
                torch.testing.assert_close(recorders[ONLY].scores[client], expected, rtol=1e-8, atol=1e-8)


class TestPerFedRec(PerFedRecConformance):
    options = SMALL


class TestApart(PerFedRecConformance):
    options = {**SMALL, "reproduction": {"layers_apart": True}, "optimiser": "sgd", "layers": 2}


def star(dropout, seed=0):
    rows = draw_rows(tiny.cut().training, np.arange(6), 1, Stream.of(seed, "n"), torch.float64, draw="pairs")
    inside = torch.ones(rows.touched.shape, dtype=torch.float64) * (rows.touched < tiny.ITEMS)
    return Star.of(rows, inside, dropout, Stream.of(seed, "dropped")), inside, rows


def test_of_the_graph_about_as_many_entries_are_dropped_as_asked_and_the_rest_makes_up_for_it():
    whole, inside, rows = star(0.0)
    some, _, _ = star(0.3)
    for kind in ("from_items", "items", "from_user"):
        one, other = getattr(whole, kind)[inside > 0], getattr(some, kind)[inside > 0]
        kept = other > 0
        assert 0.55 < float(kept.double().mean()) < 0.85
        torch.testing.assert_close(other[kept], one[kept] / 0.7)
    alone, _, _ = star(0.3)
    again = Star.of(replace(rows), inside, 0.3, Stream.of(0, "dropped"))
    assert torch.equal(alone.items, again.items)
    assert not torch.equal(alone.items > 0, alone.from_user > 0)


def test_who_is_in_no_pair_is_left_as_it_is():
    visit = RankAround(("user", "items"), 0.1, "adam", 3, chained=True, dropout=0.0, decay=0.0)
    rows = draw_rows(tiny.cut().training, np.arange(4), 1, Stream.of(0, "n"), torch.float64, draw="pairs")
    user = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    table = torch.randn(*rows.touched.shape, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    table.requires_grad_()
    slopes = torch.autograd.grad(
        visit.loss(None, {"user": user}, {"items": table}, rows, Stream.of(0, "s")).sum(), table
    )[0]
    padding = rows.touched == tiny.ITEMS
    assert not slopes[padding].any() and bool(slopes[~padding].any(dim=1).all())


def test_participants_half_evenly_half_by_the_size_of_their_groups():
    groups = np.array([0] * 90 + [1] * 10)
    counts = np.zeros(100)
    for number in range(300):
        chosen = HalfByGroup(1.0, 20).participants(np.arange(100) * 3, 0, number, groups)
        assert len(chosen) == 20 and (np.diff(chosen) > 0).all()
        counts[chosen] += 1
    assert counts[:90].mean() > 1.3 * counts[90:].mean() > 0
    assert len(HalfByGroup(1.0, 20).participants(np.arange(7), 0, 1, np.zeros(7, dtype=np.int64))) == 7
    with pytest.raises(ValueError, match="there are none"):
        HalfByGroup(1.0, 2).participants(np.arange(4), 0, 1)


def test_noise_falls_on_some_rows_of_every_client_and_on_others_of_each():
    tables = torch.zeros(3, 400, 50, dtype=torch.float64)
    found = LaplaceRows("items", 100, 0.02).leaving(
        Upload(torch.tensor([5, 7, 9]), {"items": tables}), None, {}, (0, 1)
    )
    sent = found.tensor("items")
    touched = sent.any(dim=2)
    assert all(70 < int(rows.sum()) <= 100 for rows in touched) and not torch.equal(touched[0], touched[1])
    assert not tables.any()
    once = sent[touched]
    assert abs(float(once.mean())) < 1e-3
    assert 0.02 < float(once.abs().median()) * 1.4427 < 0.03  # the median of |x| is scale · ln 2; some rows got two
