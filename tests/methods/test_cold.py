"""What methods say of users who are new to a domain (protocol `cold`)."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from confed.data.domain_split import DomainSplit, split_domains
from confed.data.split import TrainingData
from confed.data.synthetic_domains import synthetic_domains
from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.protocol import COLD
from confed.ragged import Ragged

ALONE = {
    "mf": {"dim": 4},
    "neumf": {"dim": 4},
    "lightgcn": {"dim": 4},
    "pmlam": {"dim": 4},
}
"""They know a user by this domain only."""
BOLD = {"learning_rate": 0.02, "init_deviation": 0.5}
"""Steps with which two rounds tell something."""
ACROSS = {
    "fedmf-silo": {"dim": 4},
    "fedgnn-silo": {"dim": 4},
    "fppdm": {"dim": 4, **BOLD},
    "fppdm++": {"dim": 4, "clusters": 3, **BOLD},
    "etl-f": {"dim": 4},
    "etl-fc": {"dim": 4, "clusters": 3},
    "etl": {"dim": 4, "batch_size": 16},
    "doml": {"dim": 4, "batch_size": 64, **BOLD},
    "pricdr": {"dim": 4, "projected": 8, "column_epsilon": 100.0},
    "cdrib": {"dim": 4, "batch_size": 64, **BOLD},
    "msdcr": {"dim": 4, "batch_size": 64},
}


@cache
def cut():
    data = synthetic_domains(domains=2, users=60, items=40, interactions_per_user=8, overlap=1.0, seed=1)
    return split_domains(data, COLD, 0)


def scores(name, options, of, view=None):
    """(cold users, items) of domain b after two rounds, and who these users are."""
    method = method_named(name)
    terms = Terms(method.config("tiny", options), seed=0, dtype="float64", view=view)
    trainer = method.trainer(terms, of, {})
    for number in (1, 2):
        trainer.round(number)
    cold = np.flatnonzero(of.parts["b"].training.positives.lengths == 0)
    scorer = method.scorer(terms, of, trainer.serving_state(), 2, "b")
    return scorer(torch.from_numpy(cold)), cold


def with_other_items(of, user):
    """The same, but in domain a this user of domain b has other items."""
    part = of.parts["a"]
    there = int(np.flatnonzero(np.array(part.user_ids) == of.parts["b"].user_ids[user])[0])
    rows = [part.training.positives[one] for one in range(part.users)]
    rows[there] = np.array([item for item in range(part.items) if item not in rows[there]][: len(rows[there])])
    positives = Ragged.of(rows)
    training = TrainingData(part.items, positives, positives.unique())
    return DomainSplit({**of.parts, "a": replace(part, training=training)}, of.matching)


@pytest.mark.parametrize(("name", "options"), ALONE.items())
def test_who_is_new_to_a_domain_alone_is_like_everybody(name, options):
    found, cold = scores(name, options, cut())
    assert len(cold) > 2
    torch.testing.assert_close(found, found[:1].expand_as(found))
    assert float(found[0].std()) > 0
    method = method_named(name)
    config = method.config("tiny", options)
    data = cut().parts["b"].training
    model = method.model(config, data, 0, "float64")
    assert sorted(model.strangers.tolist()) == cold.tolist()


def test_strangers_have_what_the_others_have_on_average():
    model = method_named("mf").model(
        method_named("mf").config("tiny", {"dim": 4}), cut().parts["b"].training, 0, "float64"
    )
    table = torch.randn(60, 4, dtype=torch.float64)
    found = model.for_scoring(table)
    known = [user for user in range(60) if user not in model.strangers.tolist()]
    for user in range(60):
        torch.testing.assert_close(found[user], table[user] if user in known else table[known].mean(dim=0))


def _centred(scores):
    """What all items of a user have in common does not matter."""
    return scores - scores.mean(dim=1, keepdim=True)


@pytest.mark.parametrize(("name", "options"), ACROSS.items())
def test_who_is_new_to_a_domain_is_known_by_what_the_other_has_of_him(name, options):
    view = "global" if method_named(name).has_clients else None
    before, cold = scores(name, options, cut(), view)
    assert float((before - before.mean(dim=0)).abs().max()) > 0, "all are scored alike"
    after, _ = scores(name, options, with_other_items(cut(), cold[0]), view)
    changed = (_centred(after) - _centred(before)).abs().amax(dim=1)
    assert float(changed[0]) > 0
    assert float(changed[0]) > float(changed[1:].median()), "it is about him"


@pytest.mark.parametrize("name", [*ALONE, *ACROSS])
def test_what_is_done_for_a_cold_user_is_said(name):
    assert "cold" in "\n".join(method_named(name).paragraphs())
