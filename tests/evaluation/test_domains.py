import numpy as np
import pytest
import torch

from confed.data.domain_split import split_domains
from confed.data.domains import Domains
from confed.data.synthetic import synthetic
from confed.errors import ConfedError
from confed.evaluation.domains import Examination, Grading
from confed.evaluation.evaluator import Evaluator
from confed.protocol import COLD
from confed.testing import tiny, tiny_domains


def scored(judge, part, seed=1):
    """A card of random scores, the same for every judge of a part."""
    card = judge.scorecard()
    card.add(
        torch.arange(part.users), torch.rand(part.users, part.items, generator=torch.Generator().manual_seed(seed))
    )
    return card


def graded(examination, cut):
    judges = examination.judges
    tallies = {name: scored(judges[name], part).tally() for name, part in cut.parts.items()}
    return examination.grading.result(tallies)


def test_every_domain_is_evaluated_as_it_would_be_alone_and_the_mean_counts_each_once():
    cut = tiny_domains.cut()
    result = graded(Examination.of(cut, tiny_domains.TINY_WARM, 0), cut)
    alone = {
        name: scored(Evaluator(part, tiny_domains.TINY_WARM, 0), part).result() for name, part in cut.parts.items()
    }
    for half in ("validation", "test"):
        found = result.metrics(half)
        assert found["domains"] == {name: one.metrics(half) for name, one in alone.items()}
        for metric in ("hr@10", "neg20_ndcg@5", "full_hr@10"):
            expected = np.mean([one.metrics(half)[metric] for one in alone.values()])
            assert found[metric] == pytest.approx(expected)
    ranks = result.rank_arrays()
    assert set(ranks) == {f"{name}.{kind}" for name in cut.parts for kind in ("above", "equal")}
    assert ranks["a.above"].tolist() == alone["a"].sampled["test"].above.tolist()


def test_one_domain_is_graded_as_it_is():
    """It has no name, and no mean over others."""
    examination = Examination.of(tiny.cut(), tiny.TINY_STRICT, 0)
    result = graded(examination, tiny.cut())
    alone = scored(Evaluator(tiny.cut(), tiny.TINY_STRICT, 0), tiny.cut()).result()
    for half in ("validation", "test"):
        assert result.metrics(half) == alone.metrics(half)
    assert set(examination.judges) == set(examination.grading.rankings) == {""}
    assert set(result.rank_arrays()) == {"above", "equal"}


def test_grading_knows_rankings_and_no_held_out_item():
    """A server has it whose clients are examined elsewhere."""
    examination = Examination.of(tiny_domains.cut(), tiny_domains.TINY_WARM, 0)
    assert vars(examination.grading).keys() == {"protocol", "rankings"}
    assert examination.grading.rankings == dict.fromkeys("abc", ("", "neg20_", "full_"))
    told = Grading(tiny_domains.TINY_WARM, {name: ["", "neg20_", "full_"] for name in "abc"})
    parts = tiny_domains.cut().parts
    tallies = {name: scored(judge, parts[name]).tally() for name, judge in examination.judges.items()}
    assert told.result(tallies).metrics("test") == examination.grading.result(tallies).metrics("test")


def test_some_domains_are_examined_under_the_rankings_agreed_on():
    whole = Examination.of(tiny_domains.cut(), tiny_domains.TINY_WARM, 0)
    agreed = dict.fromkeys("abc", ("", "full_"))
    some = Examination.of(tiny_domains.cut().take(np.array([2, 0])), tiny_domains.TINY_WARM, 0, agreed)
    assert list(some.judges) == ["c", "a"]
    assert some.grading.rankings == {"c": ("", "full_"), "a": ("", "full_")}
    for name, judge in some.judges.items():
        part = tiny_domains.cut().parts[name]
        one, other = scored(judge, part).tally(), scored(whole.judges[name], part).tally()
        assert one.above.keys() < other.above.keys()
        assert all(torch.equal(values, other.above[ranking]) for ranking, values in one.above.items())


@pytest.mark.parametrize("names", [("large", "small"), ("small", "large")])
def test_a_ranking_that_one_domain_has_not_is_in_no_mean(names):
    """200 candidates take more items than the small domain has: only the large one reports them."""
    items = {"large": 800, "small": 60}
    parts = {name: synthetic(users=40, items=items[name], seed=1) for name in names}
    wide = tiny_domains.TINY_WARM.model_copy(update={"more_negatives": (20, 200)})
    cut = split_domains(Domains(parts), wide, 0)
    found = graded(Examination.of(cut, wide, 0), cut).metrics("test")
    assert "neg20_hr@10" in found and "neg200_hr@10" not in found
    assert {name: "neg200_hr@10" in found["domains"][name] for name in names} == {"large": True, "small": False}


def test_an_error_names_its_domain():
    wide = tiny_domains.TINY_WARM.model_copy(update={"negatives": 70})
    with pytest.raises(ConfedError, match=r"^domain a: "):
        Examination.of(tiny_domains.cut(), wide, 0)


def test_the_cold_protocol_selects_by_the_whole_mrr():
    assert COLD.select_metric == f"mrr@{COLD.negatives + 1}"
