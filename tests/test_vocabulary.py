"""Names from files, in a reader's words."""

import pytest

from confed.evaluation.evaluator import FULL, SAMPLED, sampled_name
from confed.evaluation.metrics import METRICS
from confed.methods.registry import METHODS
from confed.vocabulary import Metric, view_in_words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hr@10", "HR@10, 99 sampled candidates"),
        ("neg999_mrr@1000", "MRR@1000, 999 sampled candidates"),
        ("full_ndcg@10", "NDCG@10, all items ranked"),
    ],
)
def test_a_metric_in_words(name, words):
    assert Metric.named(name).in_words(negatives=99) == words


@pytest.mark.parametrize("ranking", [SAMPLED, FULL, sampled_name(20)])
@pytest.mark.parametrize("kind", METRICS)
def test_every_metric_of_every_ranking_has_a_meaning(ranking, kind):
    metric = Metric.named(f"{ranking}{kind}@7")
    assert (metric.ranking, metric.kind, metric.cutoff) == (ranking, kind, 7)
    assert metric.meaning and "{" not in metric.meaning


@pytest.mark.parametrize("name", ["seconds", "half_hr@10", "hr@", "hr@10 "])
def test_other_names_are_no_metrics(name):
    with pytest.raises(ValueError, match="no metric"):
        Metric.named(name)


def test_every_view_has_a_meaning():
    views = {facts["view"] for method in METHODS.values() if (facts := method.facts(method.config(None, {})))}
    assert views == {"local", "global", "pushed", "reconstructed", "ensemble"}
    assert len({view_in_words(view) for view in views}) == 5
    assert view_in_words("global", has_clients=False) != view_in_words("global")
