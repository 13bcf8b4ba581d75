import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from confed.evaluation.domains import Examination
from confed.evaluation.evaluator import Evaluator
from confed.evaluation.sample import examined, sample_of
from confed.testing import tiny, tiny_domains


@given(st.integers(0, 1000), st.integers(1, 30))
def test_so_many_are_examined_wherever_they_are_held(seed, most):
    cut = tiny.cut()
    (largest,) = sample_of(cut, seed, most).values()
    chosen = examined(cut.training.ids, seed, largest)
    assert len(chosen) == min(most, cut.users)
    halves = [np.arange(0, cut.users, 2), np.arange(1, cut.users, 2)]
    apart = [half[examined(cut.take(half).training.ids, seed, largest)] for half in halves]
    assert sorted(np.concatenate(apart).tolist()) == chosen.tolist()


def test_seeds_choose_others():
    cut = tiny.cut()
    chosen = {tuple(examined(cut.training.ids, seed, *sample_of(cut, seed, 8).values())) for seed in range(5)}
    assert len(chosen) == 5


def test_every_domain_has_its_own():
    cut = tiny_domains.cut()
    sample = sample_of(cut, 0, 7)
    judges = Examination.of(cut, tiny_domains.TINY_WARM, 0, sample=sample).judges
    assert [len(judge.users) for judge in judges.values()] == [7] * len(cut.parts)


@pytest.mark.parametrize("users", [[3], [1, 5, 20], list(range(24))])
def test_some_are_ranked_as_among_everybody(users):
    """Against the same candidates, whoever else is examined."""
    cut = tiny.cut()
    scores = torch.randn(cut.users, cut.items, generator=torch.Generator().manual_seed(0))
    whole = Evaluator(cut, tiny.TINY_STRICT, 0)
    some = Evaluator(cut, tiny.TINY_STRICT, 0, users=np.array(users), rankings=whole.rankings)
    tallies = []
    for evaluator in (whole, some):
        card = evaluator.scorecard()
        for clients in torch.split(card.clients, 2):
            card.add(clients, scores[clients])
        tallies.append(card.tally())
    expected, found = tallies[0].of(torch.tensor(users)), tallies[1]
    for way in ("cases", "above", "equal"):
        for name, values in getattr(expected, way).items():
            assert torch.equal(getattr(found, way)[name], values), (way, name)
