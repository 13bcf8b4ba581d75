import numpy as np
import pytest
from papers.cells import load_results, packed, unpacked
from papers.cofedrec import recipe, tables
from papers.marks import rendered

from confed.evaluation.metrics import Ranks


def test_the_docs_show_the_committed_results():
    text = tables.DOCS.read_text("utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in tables.TABLES)
    assert text == rendered(text, tables.TABLES, load_results(recipe.RESULTS))


def test_metrics_follow_from_the_ranks_that_were_kept():
    for result in load_results(recipe.RESULTS):
        for view, ranks in result.get("ranks", {}).items():
            ties = tables.PROTOCOLS[result["protocol"]].rank_ties
            assert 100 * unpacked(ranks).per_user("hr", 10, ties).mean() == pytest.approx(
                result["views"][view]["hr@10"], abs=1e-3
            )


def test_ranks_survive_packing():
    ranks = Ranks(np.array([0, 99, 12]), np.array([0, 3, 0]))
    again = unpacked(packed(ranks))
    assert again.above.tolist() == [0, 99, 12] and again.equal.tolist() == [0, 3, 0]
