import numpy as np
import pytest
import torch

from confed.data.domain_split import split_domains
from confed.data.domains import Domains
from confed.data.synthetic import synthetic
from confed.errors import ConfedError
from confed.evaluation.domains import DomainEvaluator
from confed.evaluation.evaluator import Evaluator
from confed.protocol import COLD
from tests import tiny_domains


def test_every_domain_is_evaluated_as_it_would_be_alone_and_the_mean_counts_each_once():
    cut = tiny_domains.cut()
    card = DomainEvaluator(cut, tiny_domains.TINY_WARM, 0).scorecard()
    alone = {}
    for name, part in cut.parts.items():
        values = torch.rand(part.users, part.items, generator=torch.Generator().manual_seed(1))
        single = Evaluator(part, tiny_domains.TINY_WARM, 0).scorecard()
        for one in (single, card[name]):
            one.add(torch.arange(part.users), values)
        alone[name] = single.result()
    result = card.result()
    for half in ("validation", "test"):
        found = result.metrics(half)
        assert found["domains"] == {name: one.metrics(half) for name, one in alone.items()}
        for metric in ("hr@10", "neg20_ndcg@5", "full_hr@10"):
            expected = np.mean([one.metrics(half)[metric] for one in alone.values()])
            assert found[metric] == pytest.approx(expected)
    ranks = result.rank_arrays()
    assert set(ranks) == {f"{name}.{kind}" for name in cut.parts for kind in ("above", "equal")}
    assert ranks["a.above"].tolist() == alone["a"].sampled["test"].above.tolist()


@pytest.mark.parametrize("names", [("large", "small"), ("small", "large")])
def test_a_ranking_that_one_domain_has_not_is_in_no_mean(names):
    """200 candidates take more items than the small domain has: only the large one reports them."""
    items = {"large": 800, "small": 60}
    parts = {name: synthetic(users=40, items=items[name], seed=1) for name in names}
    wide = tiny_domains.TINY_WARM.model_copy(update={"more_negatives": (20, 200)})
    found = DomainEvaluator(split_domains(Domains(parts), wide, 0), wide, 0).scorecard().result().metrics("test")
    assert "neg20_hr@10" in found and "neg200_hr@10" not in found
    assert {name: "neg200_hr@10" in found["domains"][name] for name in names} == {"large": True, "small": False}


def test_an_error_names_its_domain():
    wide = tiny_domains.TINY_WARM.model_copy(update={"negatives": 70})
    with pytest.raises(ConfedError, match=r"^domain a: "):
        DomainEvaluator(tiny_domains.cut(), wide, 0)


def test_the_cold_protocol_selects_by_the_whole_mrr():
    assert COLD.select_metric == f"mrr@{COLD.negatives + 1}"
