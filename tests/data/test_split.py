import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confed.data.catalogue import REGISTRY
from confed.data.interactions import Interactions
from confed.data.registry import load_dataset
from confed.data.split import split
from confed.errors import ConfedError
from confed.protocol import PAPER, STRICT
from confed.runs.prepare import Experiment
from confed.runs.settings import resolve
from tests.realdata import require


def data(rows, time="real", **more):
    columns = ["user", "item", "rating", "timestamp"]
    frame = pl.DataFrame(rows, schema=columns, orient="row").with_columns(pl.col("user", "item").cast(pl.String))
    return Interactions(frame, time=time, **more)


def held_out(cut, user):
    return cut.item_ids[cut.test[user]], cut.item_ids[cut.validation[user]]


def training(cut, user):
    return [cut.item_ids[i] for i in cut.training.positives[user]]


def test_latest_is_test_and_the_one_before_is_validation():
    cut = split(data([("a", i, 1.0, t) for i, t in [(4, 40), (1, 10), (3, 30), (2, 20)]]), STRICT, 0)
    assert held_out(cut, 0) == ("4", "3")
    assert training(cut, 0) == ["1", "2"]


def test_paper_breaks_ties_alike_for_every_seed_and_every_copy():
    rows = [(u, i, 1.0, 9) for u in range(40) for i in range(5)]
    chosen = [split(data(order), PAPER, seed).test.tolist() for order, seed in ((rows, 0), (rows, 1), (rows[::-1], 0))]
    assert chosen[0] == chosen[1] == chosen[2]
    assert set(chosen[0]) == {0, 1, 2, 3, 4}


def test_strict_breaks_ties_by_seed():
    rows = [(u, i, 1.0, 9) for u in range(40) for i in range(5)]
    chosen = [split(data(order), STRICT, seed).test.tolist() for order, seed in ((rows, 0), (rows[::-1], 0), (rows, 1))]
    assert chosen[0] == chosen[1] != chosen[2]
    assert set(chosen[0]) == {0, 1, 2, 3, 4}


def test_ties_do_not_favour_small_item_ids():
    """MovieLens numbers popular films first; a rule by id would make test items popular."""
    cut = split(data([(u, i, 1.0, 9) for u in range(2000) for i in range(5)]), PAPER, 0)
    counts = np.bincount(cut.test, minlength=5)
    assert ((counts - 400) ** 2 / 400).sum() < 18.5  # 99.9 % quantile with 4 degrees of freedom


def test_dedupe_keeps_the_latest_of_a_pair():
    rows = [("a", 1, 1.0, 1), ("a", 2, 1.0, 2), ("a", 3, 1.0, 3), ("a", 1, 1.0, 4)]
    strict, paper = split(data(rows), STRICT, 0), split(data(rows), PAPER, 0)
    assert (held_out(strict, 0), training(strict, 0)) == (("1", "3"), ["2"])
    assert (held_out(paper, 0), training(paper, 0)) == (("1", "3"), ["1", "2"])


def test_negative_pools():
    rows = [("a", i, 1.0, i) for i in range(1, 6)] + [("b", i, 1.0, i) for i in range(4, 9)]
    strict, paper = split(data(rows), STRICT, 0), split(data(rows), PAPER, 0)
    assert [strict.item_ids[i] for i in strict.training.excluded[0]] == ["1", "2", "3"]
    assert [paper.item_ids[i] for i in paper.training.excluded[0]] == ["1", "2", "3", "4", "5"]


def test_published_pseudo_times():
    """File order: the last row. Item order: the item that appears last in the file for the first time."""
    rows = [("a", 9, 1.0, 0), ("a", 3, 1.0, 0), ("b", 5, 1.0, 0), ("a", 5, 1.0, 0), ("a", 1, 1.0, 0)]
    rows += [("b", 1, 1.0, 0), ("b", 9, 1.0, 0), ("b", 3, 1.0, 0)]
    by_file = split(data(rows, time="none", pseudo_time="file-order"), PAPER, 0)
    by_item = split(data(rows, time="none", pseudo_time="item-order"), PAPER, 0)
    assert held_out(by_file, 1) == ("3", "9")
    assert held_out(by_item, 1) == ("1", "5")


def test_without_time_strict_holds_out_at_random():
    rows = [(u, i, 1.0, 0) for u in range(60) for i in range(6)]
    first, again, other = (split(data(rows, time="none"), STRICT, seed) for seed in (0, 0, 1))
    assert first.test.tolist() == again.test.tolist() != other.test.tolist()
    assert set(first.test.tolist()) == set(range(6))


def test_a_random_hold_out_does_not_favour_repeated_pairs():
    """One of ten items occurs ten times: it is held out for a tenth of the users, not for half of them."""
    rows = [(u, i, 1.0, 0) for u in range(2000) for i in [*range(10), *[0] * 9]]
    cut = split(data(rows, time="none"), STRICT, 0)
    assert 0.07 < np.mean(cut.test == 0) < 0.13


def test_a_user_with_too_few_items_is_named():
    rows = [("a", i, 1.0, i) for i in range(5)] + [("bob", 1, 1.0, 1), ("bob", 1, 1.0, 2), ("bob", 2, 1.0, 3)]
    with pytest.raises(ConfedError, match=r"user 'bob' has 2 item\(s\).*min_interactions=3"):
        split(data(rows), STRICT, 0)
    assert split(data(rows), PAPER, 0).users == 2  # three rows are enough where duplicates are kept


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=60))
def test_every_interaction_lands_in_exactly_one_part(rows):
    full = [(u, 100 + i, 1.0, 0) for u in range(4) for i in range(3)] + [(u, i, 1.0, t) for u, i, t in rows]
    cut = split(data(full), PAPER, 0)
    parts = [sorted([*cut.training.positives[u].tolist(), int(cut.validation[u]), int(cut.test[u])]) for u in range(4)]
    index = {item: i for i, item in enumerate(cut.item_ids)}
    assert parts == [sorted(index[str(i)] for v, i, _, _ in full if v == u) for u in range(4)]


@pytest.mark.parametrize("name", sorted(REGISTRY.keys() - {"qb-article"}))
@pytest.mark.parametrize("protocol", ["strict", "paper"])
def test_every_registered_dataset_can_be_split(name, protocol):
    settings = resolve("popularity", require(name), known=name, protocol=protocol)
    experiment = Experiment.prepare(settings)
    assert experiment.cut.users > 1000 or name == "ml-100k"
    assert experiment.cut.training.positives.lengths.min() >= 1


def test_seen_and_held_out_on_real_data():
    """MovieLens-100K: the test item depends on the tie rule for about 44 % of the users (decisions.md "Splits")."""
    ml = load_dataset(require("ml-100k"))
    strict, paper = split(ml, STRICT, 0), split(ml, PAPER, 0)
    assert paper.seen.lengths.sum() == 100_000
    assert 0.2 < np.mean(strict.test != paper.test) < 0.45
