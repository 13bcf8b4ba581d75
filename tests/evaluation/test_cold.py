import re

import numpy as np
import pytest
import torch

from confed.data.domain_split import split_domains
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.evaluation.cold import ColdEvaluator
from confed.protocol import COLD

FEW = COLD.model_copy(update={"negatives": 12, "select_metric": "mrr@13", "cutoffs": (5, 10)})


def part(name="a"):
    data = synthetic_domains(domains=2, users=80, items=40, interactions_per_user=8, overlap=0.9, seed=1)
    return split_domains(data, COLD, 0).parts[name]


def scores(cut):
    return torch.rand(cut.users, cut.items, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def filled(cut, values, chunk=7):
    card = ColdEvaluator(cut, FEW, 0).scorecard()
    for clients in card.clients.split(chunk):
        card.add(clients, values[clients])
    return card.result()


def test_only_new_users_are_asked_for():
    cut = part()
    card = ColdEvaluator(cut, FEW, 0).scorecard()
    assert card.clients.tolist() == np.flatnonzero(cut.training.positives.lengths == 0).tolist()


def test_ranks_by_brute_force():
    """Every held-out interaction against its candidates, and against all items that somebody trained on."""
    cut, evaluator = part(), None
    values = scores(cut)
    evaluator = ColdEvaluator(cut, FEW, 0)
    result = filled(cut, values)
    trained = set(cut.training.positives.values.tolist())
    for name, held in (("validation", cut.validation), ("test", cut.test)):
        candidates = evaluator._candidates[name]
        for case, (user, item) in enumerate(zip(held.row_of, held.values, strict=True)):
            drawn = candidates[case].tolist()
            assert len(set(drawn)) == 12
            assert set(drawn) <= trained - set(held[user].tolist())
            above = sum(float(values[user, one]) > float(values[user, item]) for one in drawn)
            assert result.sampled[name].above[case] == above
            everything = trained - set(held[user].tolist())
            above = sum(float(values[user, one]) > float(values[user, item]) for one in everything)
            assert result.full[name].above[case] == above


def test_metrics_are_means_over_interactions():
    cut = part()
    result = filled(cut, scores(cut))
    ranks = result.sampled["test"].above
    assert len(ranks) == len(cut.test.values)
    assert result.metrics("test")["hr@10"] == pytest.approx(100 * np.mean(ranks < 10))
    assert result.metrics("test")["mrr@13"] == pytest.approx(100 * np.mean(1 / (1 + ranks)))


def test_chunks_do_not_matter():
    cut = part("b")
    values = scores(cut)
    assert filled(cut, values, 1).metrics("test") == filled(cut, values, 50).metrics("test")


def test_too_few_items_for_the_candidates():
    """And the advice is good: with the settings that the message names, it works."""
    few = COLD.model_copy(update={"cutoffs": (5, 10)})
    with pytest.raises(ConfedError, match=r"options=.\"negatives\": ") as error:
        ColdEvaluator(part(), few, 0)
    advice = dict(re.findall(r"--set (\w+)=([\w@]+)", error.value.message))
    assert set(advice) == {"negatives", "select_metric"}
    advised = few.model_copy(update={"negatives": int(advice["negatives"]), "select_metric": advice["select_metric"]})
    assert ColdEvaluator(part(), advised, 0).scorecard()
