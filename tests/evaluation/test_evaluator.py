import numpy as np
import pytest
import torch

from confed.data.registry import load_dataset
from confed.data.split import split
from confed.errors import DivergedError
from confed.evaluation.candidates import draw_candidates
from confed.evaluation.evaluator import Evaluator
from confed.protocol import PAPER, STRICT
from confed.testing.tiny import TINY_PAPER, TINY_STRICT, cut
from tests.realdata import require


def evaluate(protocol, scores, some=None, chunk=7, seed=0):
    some = some or cut(protocol)
    card = Evaluator(some, protocol, seed).scorecard()
    for users in torch.arange(some.users).split(chunk):
        card.add(users, scores[users])
    return card.result()


def ranks_by_loop(scores, target, others):
    above = [int((scores[u][o] > scores[u][t]).sum()) for u, (t, o) in enumerate(zip(target, others, strict=True))]
    equal = [int((scores[u][o] == scores[u][t]).sum()) for u, (t, o) in enumerate(zip(target, others, strict=True))]
    return above, equal


@pytest.mark.parametrize("chunk", [1, 7, 24])
def test_sampled_and_full_ranks_equal_a_plain_loop(chunk):
    some = cut()
    scores = torch.randint(0, 12, (some.users, some.items), generator=torch.Generator().manual_seed(0)).double()
    result = evaluate(TINY_STRICT, scores, chunk=chunk)
    for part, target, drawn in zip(
        ("validation", "test"),
        (some.validation, some.test),
        draw_candidates(some, TINY_STRICT, 0),
        strict=True,
    ):
        above, equal = ranks_by_loop(scores, target, drawn)
        assert result.sampled[part].above.tolist() == above
        assert result.sampled[part].equal.tolist() == equal
        rest = [
            np.setdiff1d(
                np.arange(some.items),
                [*some.training.positives[u], target[u], *([some.validation[u]] if part == "test" else [])],
            )
            for u in range(some.users)
        ]
        above, equal = ranks_by_loop(scores, target, rest)
        assert result.full[part].above.tolist() == above
        assert result.full[part].equal.tolist() == equal


def test_constant_scores():
    """Lost ties give 0; expected ties give chance exactly: 10 / (negatives + 1)."""
    scores = torch.zeros(24, 60)
    assert evaluate(TINY_PAPER, scores).metrics("test")["hr@10"] == 0
    assert evaluate(TINY_STRICT, scores).metrics("test")["hr@10"] == pytest.approx(100 * 10 / 16)


def test_saturated_probabilities_tie_where_logits_do_not():
    some = cut(TINY_PAPER)
    scores = torch.full((some.users, some.items), 30.0, dtype=torch.float64)
    scores[torch.arange(some.users), torch.from_numpy(some.test)] = 31.0
    assert evaluate(TINY_PAPER, scores).metrics("test")["hr@10"] == 0
    logit = TINY_PAPER.model_copy(update={"score_space": "logit"})
    assert evaluate(logit, scores).metrics("test")["hr@10"] == 100


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_scores_that_are_not_finite_are_not_ranked(value):
    scores = torch.zeros(cut().users, cut().items)
    scores[3, 5] = value
    with pytest.raises(DivergedError, match="a score of client 3 is not finite"):
        evaluate(TINY_STRICT, scores)


def test_a_held_out_item_that_is_also_a_training_item_is_still_ranked():
    """Data with repeated pairs under `paper`: nothing may hide the held-out item itself."""
    from tests.data.test_split import data

    rows = [("a", i, 1.0, t) for i, t in [(1, 1), (2, 2), (3, 3), (1, 4)]]
    rows += [(f"b{u}", 100 * u + i, 1.0, i) for u in range(1, 21) for i in range(3)]
    some = split(data(rows), PAPER, 0)
    assert some.test[0] in some.training.positives[0]
    scores = torch.zeros(some.users, some.items)
    scores[0, some.test[0]] = 1.0
    card = Evaluator(some, TINY_PAPER, 0).scorecard()
    card.add(torch.tensor([0]), scores[:1])
    full = card.result().full["test"]
    assert (full.above[0], full.equal[0]) == (0, 0)


@pytest.fixture(scope="module")
def movielens():
    return load_dataset(require("ml-100k"))


def test_random_scores_hit_at_chance(movielens):
    """decisions.md "Checks": 10 ± 1 and 4.54 ± 0.7 with 99 negatives; averaged over seeds to be stable."""
    some = split(movielens, STRICT, 0)
    reports = [
        evaluate(STRICT, torch.randn(some.users, some.items, generator=torch.Generator().manual_seed(s)), some, 943)
        for s in range(5)
    ]
    assert np.mean([r.metrics("test")["hr@10"] for r in reports]) == pytest.approx(10.0, abs=1.0)
    assert np.mean([r.metrics("test")["ndcg@10"] for r in reports]) == pytest.approx(4.54, abs=0.7)


def test_constant_scores_on_real_data(movielens):
    some = split(movielens, STRICT, 0)
    metrics = evaluate(STRICT, torch.zeros(some.users, some.items), some, 943).metrics("test")
    assert metrics["hr@10"] == pytest.approx(10.0)
    assert metrics["ndcg@10"] == pytest.approx(4.54, abs=0.005)


@pytest.mark.parametrize(("name", "hr", "ndcg"), [("ml-100k", 41.5, 23.0), ("filmtrust", 91.8, 82.5)])
def test_popularity_reference_lines(name, hr, ndcg):
    """decisions.md "Checks". ± 1.5: its ties were broken by one file's row order, ours by a hash; each is one draw."""
    some = split(load_dataset(require(name)), PAPER, 0)
    counts = np.bincount(some.training.positives.values, minlength=some.items)
    logit = PAPER.model_copy(update={"score_space": "logit"})  # counts saturate as probabilities
    scores = torch.from_numpy(counts).double().expand(some.users, -1)
    reports = [evaluate(logit, scores, some, some.users, seed).metrics("test") for seed in range(5)]
    assert np.mean([r["hr@10"] for r in reports]) == pytest.approx(hr, abs=1.5)
    assert np.mean([r["ndcg@10"] for r in reports]) == pytest.approx(ndcg, abs=1.5)
