import numpy as np
import pytest
from papers.cells import load_results, packed, unpacked
from papers.fppdm import recipe, tables, users
from papers.fppdm.figures import compactness, drawn
from papers.marks import rendered

import confed
from confed.evaluation.metrics import Ranks
from tests import realdata


def test_the_docs_show_the_committed_results():
    text = tables.DOCS.read_text("utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in tables.TABLES)
    assert text == rendered(text, tables.TABLES, load_results(recipe.RESULTS))


def test_hit_rates_and_ndcg_can_belong_together():
    """decisions.md "Checks", on every committed result: one held-out item bounds NDCG by HR, and its growth too."""
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
    assert checked


def test_users_are_those_whose_ranks_are_kept():
    known = users.kept()
    for result in load_results(recipe.RESULTS):
        if result["dataset"] in known and result["protocol"] == "warm":
            for domain, ranks in result["ranks"][result["view"]].items():
                assert len(unpacked(ranks).above) == len(known[result["dataset"]][domain].items)


@pytest.mark.parametrize("dataset", [*recipe.DATASETS, recipe.LARGER])
def test_users_are_those_of_the_data(dataset):
    found = users.described(realdata.require(dataset))
    assert found == users.kept()[dataset]
    shares = [len(places) / len(of.items) for of in found.values() for places in of.untrained.values()]
    assert max(shares) == 0 if dataset == "douban" else min(shares) > 0.03


def test_thirds_keep_users_with_as_many_items_together():
    few, some, many = users.Users([5, 1, 1, 1, 9, 2, 3, 4, 8], {}).thirds()
    assert np.flatnonzero(few).tolist() == [1, 2, 3]
    assert np.flatnonzero(some).tolist() == [5, 6, 7]
    assert np.flatnonzero(many).tolist() == [0, 4, 8]


def ranked(variant, seed, hits):
    """A result in which the users with a 1 have their item on top, the others at the end."""
    ranks = packed(Ranks(np.array([0 if hit else 50 for hit in hits]), np.zeros(len(hits), dtype=np.int64)))
    facts = {"variant": variant, "dataset": "douban", "protocol": "warm", "seed": seed, "view": "local"}
    return {**facts, "ranks": {"local": {"book": ranks}}}


def test_differences_are_of_the_seeds_that_both_have_and_of_users_who_count():
    results = [ranked("new", 2, [1, 1, 1, 0]), ranked("new", 0, [1, 1, 0, 0]), ranked("new", 1, [1, 1, 1, 1])]
    results += [ranked("old", 0, [0, 1, 1, 0]), ranked("old", 2, [0, 1, 0, 1])]
    both = tables.same_seeds(results, "new", "old", "douban")
    assert [[r["seed"] for r in side] for side in both] == [[0, 2], [0, 2]]
    assert tables.by_seed(*both, "book", "hr") == [0.0, 25.0]
    assert tables.difference(*both, "book", "hr").mean == pytest.approx(12.5)
    of = users.Users([1, 1, 1, 1], {0: [2], 2: [0, 3]})
    # Left: user 0 in seed 0 (+100), user 1 in both (0), user 2 in seed 2 (+100), user 3 in seed 0 (0).
    assert tables.difference(*both, "book", "hr", of.trained).mean == pytest.approx(50.0)


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
