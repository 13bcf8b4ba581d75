"""MSDCR: what a user's histories in two domains have in common, and what not (Zhao et al. 2022; decisions.md "msdcr").

A history are `history` items e_h of a user in a domain, and H is what self-attention makes of them (one head, with
residual and layer norm; weights by domain). Then, with a vector u of the person and weights that both domains share,

    g_h = σ(W_a [H_h ; u]) ⊙ (W'_a [H_h ; u]),   aspect a = Σ_h softmax_h(v_a · g_h) g_h       7 common, 7 specific ones
    gate = σ(G [C_A − C_B ; C_A ⊙ C_B]),   E_A = tanh(F [gate ⊙ C_A ; C_A])                 C: specific ones of A and B
    s(u, i in A) = MLP [E_A ; common_A ; e_i],   ReLU, widths 256 and 128
    L = Σ_domains mean softplus(s_uj − s_ui) + ω (BCE(T(specific), domain) + BCE(T'(reversed(common)), domain))

over triples of a user, a positive i and a sampled negative j. Two networks tell the domains apart: T is helped by the
specific aspects, and T', behind a layer that turns gradients round, is misled by the common ones.

The history of a training row is drawn anew in every epoch, without the row's own positive; in scoring it is drawn once.
Who has no items in a domain has specific aspects of 0 there, and the other domain's common aspects stand for the
missing ones: a cold user is scored with these. Users with a single item meet the same in training.

Deviations from the published code: items have no features but themselves (D-34); its classifiers' losses are added with
both signs before a step and cancel, here gradients are turned round; aspects are not mixed across users; the MLP has
ReLUs, and BPR acts on its output as it is; aspects have no biases, and there is no dropout; attention's values are as
wide as items. Its BPR is a sum over a batch of 256 beside the mean of the judges, hence ω = 1/256 beside our mean. Not
told: how long histories are (12), and which items they have (drawn).
"""

from __future__ import annotations

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from confed.config import MethodConfig
from confed.data.domain_split import DomainSplit
from confed.data.negatives import draw_negatives
from confed.initial import Layers, glorot, linear_layer, normal, ones, zeros
from confed.models.histories import History, cyclic, paired, places, shuffled
from confed.models.reversal import reversed_gradient
from confed.models.two_domains import Rows, TwoDomainModel, in_steps, persons
from confed.ragged import Ints, Ragged
from confed.random import Stream
from confed.scoring import Scorer

ASPECTS = 7
"""Common ones, and as many specific ones."""
_KEY, _JUDGE, _WIDE, _NARROW = 16, 128, 256, 128
"""Widths: of attention's keys, of the networks that tell domains apart, of the two layers of the MLP."""
_SCORED_TOGETHER = 512
"""Users whose aspects are found at once in scoring."""


class MSDCRConfig(MethodConfig):
    dim: int = Field(default=32, ge=1)
    """Width of items, people and aspects."""
    learning_rate: float = Field(default=0.001, gt=0)
    """Adam's step size."""
    weight_decay: float = Field(default=0.001, ge=0)
    """L2 pull of all parameters towards 0, added to the gradient."""
    batch_size: int = Field(default=256, ge=1)
    """Triples per step, of both domains together."""
    judging: float = Field(default=1 / 256, ge=0)
    """ω, the weight of telling the domains apart."""
    history: int = Field(default=12, ge=1)
    """Items of a history, at most."""
    init_deviation: float = Field(default=0.1, gt=0)
    """Standard deviation of the initial vectors of items and people."""


class MSDCRModel(TwoDomainModel):
    """Items, attention, the enhancement and the MLP by domain; people, aspects and both judges for all."""

    def __init__(self, config: MSDCRConfig, cut: DomainSplit, seed: int, dtype: str) -> None:
        super().__init__("msdcr", cut, seed, dtype)
        self.config = config
        self.persons = persons(cut)
        self.elsewhere = {name: self._elsewhere(name) for name in self.names}
        """Of every user of a domain the number that the other one has for him, or −1."""
        self.begin(self._layers(), config.learning_rate, config.weight_decay)

    def _elsewhere(self, name: str) -> Ints:
        found = np.full(self.data[name].users, -1)
        found[self.shared[name].numpy()] = self.shared[self.other(name)].numpy()
        return found

    def _layers(self) -> Layers:
        dim, begin = self.config.dim, normal(self.config.init_deviation)
        layers: Layers = {"people": ((self.people, dim), begin), "aspect": ((2 * ASPECTS, dim), glorot)}
        for name, data in self.data.items():
            layers[f"{name}.items"] = (data.items, dim), begin
            layers |= {f"{name}.query": ((dim, _KEY), glorot), f"{name}.key": ((dim, _KEY), glorot)}
            layers |= {f"{name}.value": ((dim, dim), glorot)}
            layers |= {f"{name}.norm": ((dim,), ones), f"{name}.norm_bias": ((dim,), zeros)}
        for part in ("sigmoid", "linear"):
            layers[f"{part}.item"] = (2 * ASPECTS, dim, dim), normal(dim**-0.5)
            layers[f"{part}.person"] = (2 * ASPECTS, dim, dim), normal(dim**-0.5)
        for judge in ("common", "specific"):
            layers |= linear_layer(f"{judge}.judge", ASPECTS * dim, _JUDGE)
            layers |= linear_layer(f"{judge}.verdict", _JUDGE, 1)
        for name in self.names:
            layers |= linear_layer(f"{name}.gate", 2 * dim, dim) | linear_layer(f"{name}.enhance", 2 * dim, dim)
            layers |= linear_layer(f"{name}.wide", (2 * ASPECTS + 1) * dim, _WIDE)
            layers |= linear_layer(f"{name}.narrow", _WIDE, _NARROW) | linear_layer(f"{name}.score", _NARROW, 1)
        return layers

    def train(self, number: int) -> float:
        """The mean BPR loss of all triples, each before the step it takes part in; the judges' is not in it."""
        items = self.shuffled(number)
        rows = {name: self.triples(name, number, items) for name in self.names}
        total = sum(map(self._step, in_steps(rows, self.config.batch_size)))
        return total / sum(len(users) for users, *_ in rows.values())

    def triples(self, name: str, number: int, items: dict[str, Ragged]) -> Rows:
        """Users, positives, negatives; the items of both histories, and which of them are there."""
        data, other = self.data[name], self.other(name)
        users, place = items[name].row_of, places(items[name])
        drawn = draw_negatives(data, np.arange(data.users), 1, Stream.of(self.seed, f"negatives {name}", number))
        own = cyclic(items[name], users, place + 1, self.config.history).without(items[name].values)
        others = cyclic(items[other], self.elsewhere[name][users], place, self.config.history)
        order = torch.from_numpy(Stream.of(self.seed, f"rows {name}", number).order(len(users)))
        found = (*map(torch.from_numpy, (users, items[name].values, drawn[:, 0])), own.items, own.there)
        return tuple(column[order] for column in (*found, others.items, others.there))

    def shuffled(self, number: int) -> dict[str, Ragged]:
        """By domain, every user's items in the random order of an epoch; that of 0 is for scoring."""
        return {
            name: shuffled(data.positives, Stream.of(self.seed, f"history {name}", number))
            for name, data in self.data.items()
        }

    def _step(self, rows: dict[str, Rows]) -> float:
        """One step of Adam; the sum of the triples' losses before it."""
        loss, total = self.params["people"].new_zeros(()), 0.0
        for name, (users, positives, negatives, *histories) in rows.items():
            if len(users):
                rating, judged = self.losses(name, users, positives, negatives, paired(histories))
                loss = loss + rating.mean() + judged
                total += float(rating.detach().sum())
        self.learner.step(loss)
        return total

    def losses(
        self, name: str, users: Tensor, positives: Tensor, negatives: Tensor, histories: tuple[History, History]
    ) -> tuple[Tensor, Tensor]:
        """BPR of every triple; and the judges' losses."""
        aspects = self.aspects(name, users, histories)
        seen = self._seen(name, self.profile(name, aspects, histories))
        better, worse = (self._scored(name, seen, self._items(name, items)) for items in (positives, negatives))
        judged = seen.new_zeros(())
        for of, history, found in zip((name, self.other(name)), histories, aspects, strict=True):
            here = history.there.any(dim=1)
            if bool(here.any()):
                common, specific = torch.split(found[here], ASPECTS, dim=1)
                judged = judged + self.judged("common", reversed_gradient(common), of)
                judged = judged + self.judged("specific", specific, of)
        return functional.softplus(worse - better), self.config.judging * judged

    def aspects(self, name: str, users: Tensor, histories: tuple[History, History]) -> tuple[Tensor, Tensor]:
        """(n, 2 · ASPECTS, d) of the history in the domain, and of that in the other: the common ones, the specific."""
        people = self.params["people"].index_select(0, self.persons[name].index_select(0, users))
        own, others = (
            self._aspects(self._attended(of, history), history.there, people)
            for of, history in zip((name, self.other(name)), histories, strict=True)
        )
        return own, others

    def _items(self, name: str, items: Tensor) -> Tensor:
        return self.params[f"{name}.items"].index_select(0, items.flatten()).view(*items.shape, -1)

    def _attended(self, name: str, history: History) -> Tensor:
        """(n, length, d): what every item of a history becomes among the others."""
        items = self._items(name, history.items)
        query, key = (items @ self.params[f"{name}.{part}"] for part in ("query", "key"))
        weights = _shares(query @ key.mT / _KEY**0.5, history.there[:, None], dim=2)
        found = items + weights @ (items @ self.params[f"{name}.value"])
        norm, bias = self.params[f"{name}.norm"], self.params[f"{name}.norm_bias"]
        return functional.layer_norm(found, (self.config.dim,), norm, bias)

    def _aspects(self, attended: Tensor, there: Tensor, people: Tensor) -> Tensor:
        """W [h ; u] is W_h h + W_u u: a person's part is found once for all items of a history."""
        sigmoid, linear = (
            torch.einsum("nld,ade->nale", attended, self.params[f"{part}.item"])
            + torch.einsum("nd,ade->nae", people, self.params[f"{part}.person"])[:, :, None]
            for part in ("sigmoid", "linear")
        )
        gated = torch.sigmoid(sigmoid) * linear
        weights = _shares(torch.einsum("nale,ae->nal", gated, self.params["aspect"]), there[:, None], dim=2)
        return torch.einsum("nal,nale->nae", weights, gated)

    def profile(self, name: str, aspects: tuple[Tensor, Tensor], histories: tuple[History, History]) -> Tensor:
        """(n, 2 · ASPECTS · d): specific aspects, enhanced by the other domain's, and the common ones."""
        (own_common, own), (other_common, other) = (torch.split(found, ASPECTS, dim=1) for found in aspects)
        gate = torch.sigmoid(self.linear(f"{name}.gate", torch.cat([own - other, own * other], dim=2)))
        enhanced = torch.tanh(self.linear(f"{name}.enhance", torch.cat([gate * own, own], dim=2)))
        here = histories[0].there.any(dim=1)[:, None, None]
        return torch.cat([enhanced, torch.where(here, own_common, other_common)], dim=1).flatten(1)

    def judged(self, judge: str, aspects: Tensor, name: str) -> Tensor:
        """The cross-entropy of telling from all aspects of a kind which domain they are of."""
        hidden = functional.leaky_relu(self.linear(f"{judge}.judge", aspects.flatten(1)))
        logits = self.linear(f"{judge}.verdict", hidden)
        return functional.softplus(logits if name == self.names[0] else -logits).mean()

    def _seen(self, name: str, profile: Tensor) -> Tensor:
        """What the MLP's first layer makes of a user, before the item is added."""
        weight = self.params[f"{name}.wide"][:, : profile.shape[1]]
        return functional.linear(profile, weight, self.params[f"{name}.wide_bias"])

    def _scored(self, name: str, seen: Tensor, items: Tensor) -> Tensor:
        """Scores of what was seen of users (…, 256) and items (…, d); the axes in front broadcast."""
        hidden = torch.relu(seen + items @ self.params[f"{name}.wide"][:, -self.config.dim :].T)
        return self.linear(f"{name}.score", torch.relu(self.linear(f"{name}.narrow", hidden)))[..., 0]

    @torch.no_grad()
    def scorer_of(self, domain: str) -> Scorer:
        items = self.shuffled(0)
        users, length = np.arange(self.data[domain].users), self.config.history
        begin = np.zeros_like(users)
        own = cyclic(items[domain], users, begin, length)
        others = cyclic(items[self.other(domain)], self.elsewhere[domain], begin, length)
        found = []
        for some in torch.split(torch.from_numpy(users), _SCORED_TOGETHER):
            histories = own[some], others[some]
            found.append(self._seen(domain, self.profile(domain, self.aspects(domain, some, histories), histories)))
        seen = torch.cat(found)

        @torch.no_grad()
        def score(clients: Tensor) -> Tensor:
            return self._scored(domain, seen.index_select(0, clients)[:, None], self.params[f"{domain}.items"])

        return score

    def values_of(self, domain: str) -> int:
        return _WIDE * self.data[domain].items


def _shares(logits: Tensor, there: Tensor, dim: int) -> Tensor:
    """The softmax over what is there; 0 where nothing is."""
    least = torch.finfo(logits.dtype).min
    return torch.softmax(logits.masked_fill(~there, least), dim=dim) * there
