import numpy as np
import pytest
from papers.cells import load_results, unpacked
from papers.fppdm import activity, recipe, tables
from papers.fppdm.figures import compactness, drawn
from papers.marks import rendered

import confed
from confed.methods.registry import METHODS, method_named
from tests import realdata

CELLS = [cell for part in recipe.PARTS.values() for cell in part()]


def test_the_docs_show_the_committed_results():
    text = tables.DOCS.read_text("utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in tables.TABLES)
    assert text == rendered(text, tables.TABLES, load_results(recipe.RESULTS))


def test_every_result_belongs_to_a_cell_of_the_recipe():
    cells = {cell.path(recipe.RESULTS).name for cell in CELLS}
    assert {path.name for path in recipe.RESULTS.glob("*.json")} <= cells


def test_cells_have_names_of_their_own():
    names = [cell.name for cell in CELLS]
    assert len(names) == len(set(names))
    assert all(name.isascii() for name in names)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_every_cell_has_valid_options(cell):
    assert cell.method in METHODS
    method_named(cell.method).config(cell.dataset, cell.options)


def test_hit_rates_and_ndcg_can_belong_together():
    """methods.md appendix B, on every committed result: one held-out item bounds NDCG by HR, and its growth too."""
    checked = 0
    for result in load_results(recipe.RESULTS):
        for views in result["own_round"].values():
            for values in views.values():
                for prefix in ("", "full_"):
                    hr5, n5, hr10, n10 = (values[f"{prefix}{m}@{k}"] for k in (5, 10) for m in ("hr", "ndcg"))
                    gained = hr10 - hr5
                    assert gained >= -1e-6
                    assert gained / 3.4595 - 0.01 <= n10 - n5 <= gained / 2.8073 + 0.01
                    checked += 1
    assert checked or not list(recipe.RESULTS.glob("*.json"))


def test_counts_are_of_the_users_whose_ranks_are_kept():
    counts = activity.counts_of_users()
    for result in load_results(recipe.RESULTS):
        if result["dataset"] in counts and result["protocol"] == "warm":
            for domain, ranks in result["ranks"][result["view"]].items():
                assert len(unpacked(ranks).above) == len(counts[result["dataset"]][domain])


def test_counts_are_those_of_the_data():
    assert activity.counted(realdata.require("douban")) == activity.counts_of_users()["douban"]


def test_thirds_keep_users_with_as_many_items_together():
    few, some, many = activity.thirds([5, 1, 1, 1, 9, 2, 3, 4, 8])
    assert np.flatnonzero(few).tolist() == [1, 2, 3]
    assert np.flatnonzero(some).tolist() == [5, 6, 7]
    assert np.flatnonzero(many).tolist() == [0, 4, 8]


def test_published_figures():
    assert tables.PUBLISHED["game"]["FPPDM++"] == [7.53, 5.20, 10.87, 6.05]
    assert tables.PUBLISHED["book"]["FPPDM"][2] == 40.20
    three = [tables.PUBLISHED[domain]["FPPDM++"][2] for domain in ("movie", "book", "music")]
    assert sum(three) / 3 == pytest.approx(tables.PUBLISHED["table 4"]["M = 15"][2], abs=0.01)


def test_pictures_show_what_was_run():
    figures = {"round": 1, "hr@10": 40.0, "ndcg@10": 20.0}
    shown = {"variant": "FPPDM++", "protocol": "warm", "seed": 0, "view": "local"}
    own = {"local": {"game": figures, "video": figures}}
    result = {**shown, "dataset": "amazon-game-video", "own_round": own}
    douban = {**shown, "dataset": "douban", "own_round": {"local": {"book": figures, "music": figures}}}
    pictures = drawn([result, douban])
    assert pictures["figure-3"].data[0].y == (40.0,)
    assert [trace.y for trace in pictures["figure-4"].data] == [(40.0,), (40.0,)]


def test_measures_of_a_run(tmp_path):
    options = {"dim": 4, "local_epochs": 1, "negatives": 15, "cutoffs": [5, 10], "more_negatives": []}
    run = confed.run("fppdm++", recipe.SYNTHETIC, rounds=1, options=options, out=tmp_path)
    assert set(recipe.agreement(run)["agreement"]) == {"a", "b", "c"}
    assert all(0 < value < 1 for domain in compactness(run).values() for value in domain.values())
