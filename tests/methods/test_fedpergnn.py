"""FedPerGNN against its definition: attention with masks by loops, one client after another by autograd."""

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, leaky_relu

from confed.clients.backbones import UserGraph
from confed.clients.sampling import draw_rows
from confed.messages import Agreement, Upload
from confed.methods.registry import method_named
from confed.privacy.laplace import ClippedLaplace
from confed.privacy.pseudo import PseudoItems
from confed.random import Stream
from confed.testing import PeopleConformance, assert_equal_states, tiny
from confed.testing.conformance import SEED
from confed.testing.states import whole_state

PLAIN = {"gradient_clip": 0.0, "noise_scale": 0.0, "pseudo_items": 0}
SMALL = {"dim": 6, "history": 5, "neighbours": 3, "clients_per_turn": 9, "learning_rate": 0.5, "dropout": 0.0, **PLAIN}
NETS = [spec.name for spec in UserGraph(3, 6, 5).params if spec.role == "net"]


def attended(logits):
    weights = torch.exp(torch.stack(logits) - max(logits))
    return weights / weights.sum()


def score(params, history, neighbours, item):
    """One client's score of an item, by the equations; `neighbours[k]` are vectors beside the k-th of `history`."""

    def layer(name, vector):
        return torch.sigmoid(params[f"{name}_weight"] @ vector + params[f"{name}_bias"])

    user, items, around = layer("user", params["user"]), [], []
    for place, own in enumerate(history):
        h = layer("item", params["items"][own])
        gathered = torch.zeros_like(h)
        passed = [params["neighbour_weight"] @ other for other in neighbours[place]]
        if passed:
            logits = [leaky_relu(params["neighbour_attention"] @ torch.cat([h, n]), 0.3) for n in passed]
            gathered = sum(weight * n for weight, n in zip(attended(logits), passed, strict=True))
        items.append(h)
        around.append(params["gathered_weight"] @ torch.cat([gathered, h]))
    weights = attended([leaky_relu(params["item_attention"] @ torch.cat([user, g]), 0.3) for g in around])
    joined = params["joined_weight"] @ torch.cat([sum(w * h for w, h in zip(weights, items, strict=True)), user])
    return params["head"] @ torch.cat([joined, layer("target", params["items"][item])]) + params["head_bias"]


def histories(data, most):
    return {u: np.unique(data.positives[u])[:most].tolist() for u in range(data.users)}


class FedPerGNNConformance(PeopleConformance):
    method = "fedpergnn"
    exchanges = 6  # three turns, of training and of what each client sent

    def test_two_rounds_equal_the_equations(self) -> None:
        config, trainer = self.terms().config, self.federation(chunk=4)
        data = self.people(trainer).data
        known = histories(data, config.history)
        sent_tokens: set[int] = set()
        for number in (1, 2):
            rows = draw_rows(data, np.arange(data.users), 4, Stream.of(SEED, "negatives", number), torch.float64)
            place_of = {client: place for place, client in enumerate(rows.clients.tolist())}
            state = {n.removeprefix("server."): v.clone() for n, v in whole_state(trainer).items()}
            for turn in trainer.server.strategy.turns(torch.arange(tiny.USERS), number):
                made, total = [], 0
                for client in turn.tolist():
                    names = ["items", *NETS]
                    held = {name: state[name].clone().requires_grad_() for name in names}
                    held["user"] = state["user"][client].clone().requires_grad_()
                    others = [
                        [state["user"][v] for v in sorted(sent_tokens) if v != client and item in known[v]]
                        if client in sent_tokens
                        else []
                        for item in known[client]
                    ]
                    place, count = place_of[client], int(rows.lengths[place_of[client]])
                    items = rows.touched[place][rows.local[place, :count]].tolist()
                    cached = {item: score(held, known[client], others, item) for item in set(items)}
                    logits = torch.cat([cached[item] for item in items])
                    loss = binary_cross_entropy_with_logits(logits, rows.labels[place, :count])
                    slopes = torch.autograd.grad(loss, list(held.values()), materialize_grads=True, allow_unused=True)
                    stepped = {
                        n: (v - config.learning_rate * s).detach()
                        for (n, v), s in zip(held.items(), slopes, strict=True)
                    }
                    made.append((client, count, stepped))
                    total += count
                for name in ["items", *NETS]:
                    state[name] = sum(count * stepped[name] for _, count, stepped in made) / total
                for client, _, stepped in made:
                    state["user"][client] = stepped["user"]
                if config.expand:
                    sent_tokens |= set(turn.tolist())
            trainer.round(number)
            after = {n.removeprefix("server."): v for n, v in whole_state(trainer).items() if n != "server.tokens"}
            state.pop("tokens")
            assert_equal_states(after, state, tolerance=1e-9)


class TestFedPerGNN(FedPerGNNConformance):
    options = {**SMALL, "neighbours": tiny.USERS}


class TestAlone(FedPerGNNConformance):
    options = {**SMALL, "expand": False}


class TestProtected(PeopleConformance):
    method = "fedpergnn"
    options = {**SMALL, "dropout": 0.2, "gradient_clip": 0.5, "noise_scale": 1e-4, "pseudo_items": 7}
    exchanges = 6


def test_others_are_those_with_the_same_item_and_no_more_than_asked():
    trainer = TestFedPerGNN().trained(1, TestFedPerGNN().federation(options={"neighbours": 3}))
    data = trainer.federation.site.gateway.data
    known = histories(data, 5)
    strategy = trainer.server.strategy
    found, vectors = strategy.download(torch.arange(tiny.USERS)).own["neighbours"], strategy.state()["user"]
    for client in range(tiny.USERS):
        for slot, item in enumerate(known[client]):
            alike = [v for v in range(tiny.USERS) if v != client and item in known[v]]
            given = found[client, slot][found[client, slot].any(dim=1)]
            assert len(given) == min(len(alike), 3)
            for vector in given:
                assert any(torch.equal(vector, vectors[v]) for v in alike)
        assert not found[client, len(known[client]) :].any()


def test_tokens_are_the_same_for_the_same_item_and_do_not_tell_it():
    trainer = TestFedPerGNN().trained(1)
    tokens, known = trainer.server.strategy.state()["tokens"], histories(trainer.federation.site.gateway.data, 5)
    by_token: dict[int, set[int]] = {}
    for client, items in known.items():
        for slot, item in enumerate(items):
            by_token.setdefault(int(tokens[client, slot]), set()).add(item)
    assert all(len(items) == 1 for items in by_token.values())
    assert len(by_token) == len({item for items in known.values() for item in items})
    assert not set(by_token) & set(range(tiny.ITEMS))


BASES = {"items": torch.zeros(50, 4, dtype=torch.float64), "net": torch.ones(3, dtype=torch.float64)}
AGREED = Agreement(50, torch.float64, {"items": (50, 4), "net": (3,)}, {}, frozenset(), {"items": "sum", "net": "sum"})


def upload():
    tables = torch.zeros(2, 50, 4, dtype=torch.float64)
    tables[:, :6] = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 3.0
    return Upload(torch.tensor([3, 8]), {"items": tables, "net": torch.full((2, 3), 5.0, dtype=torch.float64)})


def test_pseudo_items_are_changed_like_real_ones():
    sent = PseudoItems("items", 20).leaving(upload(), AGREED, BASES, (0, 1)).tensor("items")
    changed = sent.any(dim=2)
    assert changed.sum(dim=1).tolist() == [26, 26] and torch.equal(sent[:, :6], upload().tensor("items")[:, :6])
    assert not torch.equal(changed[0], changed[1])
    assert abs(float(sent[:, 6:][changed[:, 6:]].mean()) - 3.0) < 0.5
    everything = PseudoItems("items", 1000).leaving(upload(), AGREED, BASES, (0, 1)).tensor("items")
    assert bool(everything.any(dim=2).all())


def test_changes_are_clipped_as_one_and_get_noise():
    quiet = ClippedLaplace(0.5, 0.0).leaving(upload(), AGREED, BASES, (0, 1))
    lengths = sum((quiet.tensor(name) - BASES[name]).flatten(1).square().sum(dim=1) for name in BASES)
    torch.testing.assert_close(lengths, torch.full((2,), 0.25, dtype=torch.float64))
    noisy = ClippedLaplace(0.5, 0.1).leaving(upload(), AGREED, BASES, (0, 1))
    noise = (noisy.tensor("items") - quiet.tensor("items")).flatten()
    assert abs(float(noise.abs().mean()) - 0.1) < 0.02 and abs(float(noise.mean())) < 0.02
    short = ClippedLaplace(1e6, 0.0).leaving(upload(), AGREED, BASES, (0, 1))
    torch.testing.assert_close(short.tensor("items"), upload().tensor("items"))


def test_what_is_personal_is_clipped_and_blurred_with_all_else():
    began = {"user": torch.zeros(2, 4, dtype=torch.float64)}
    whole = Upload(
        torch.tensor([3, 8]), {**upload().tensors, "user": torch.ones(2, 4, dtype=torch.float64)}, began=began
    )
    quiet = ClippedLaplace(0.5, 0.0).leaving(whole, AGREED, BASES, (0, 1))
    lengths = sum((quiet.tensor(n) - of).flatten(1).square().sum(dim=1) for n, of in {**BASES, **began}.items())
    torch.testing.assert_close(lengths, torch.full((2,), 0.25, dtype=torch.float64))
    noisy = ClippedLaplace(0.5, 0.1).leaving(whole, AGREED, BASES, (0, 1))
    assert not torch.isclose(noisy.tensor("user"), quiet.tensor("user")).any()


def test_noise_without_a_clip_is_refused():
    with pytest.raises(ValueError, match="noise_scale=0 as well"):
        method_named("fedpergnn").config(None, {"gradient_clip": 0.0})


def test_without_expansion_little_is_sent():
    wide, narrow = (TestFedPerGNN().federation(options={"expand": of}).round(1).download_bytes for of in (True, False))
    assert wide > 1.5 * narrow
