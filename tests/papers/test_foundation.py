"""The tables in the documentation are the committed results, not a copy that may age."""

import math

from papers.cells import load_results
from papers.foundation import recipe
from papers.marks import rendered


def test_the_page_shows_the_committed_results():
    text = recipe.PAGE.read_text("utf-8")
    assert "<!-- table: foundation/" in text
    assert text == rendered(text, recipe.TABLES, load_results(recipe.RESULTS))


def test_arithmetic_of_every_committed_result():
    """decisions.md "Checks": the bounds of NDCG, and the canary."""
    for result in load_results(recipe.RESULTS):
        for values in (result, result["validation"], *result["views"].values()):
            for prefix in ("", "full_"):
                hr, ndcg = values[f"{prefix}hr@10"], values[f"{prefix}ndcg@10"]
                assert hr / math.log2(11) - 1e-3 <= ndcg <= hr + 1e-3
        if result["method"] == "scalar":
            assert result["hr@10"] >= 90 if result["protocol"] == "paper" else result["hr@10"] <= 12
