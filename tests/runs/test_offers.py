import polars as pl
import pytest
import torch

import confed
from confed.errors import ConfedError
from confed.testing import tiny
from tests.runs.short import train

FEW = {"negatives": 15, "cutoffs": [5]}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(out=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def ease(tmp_path_factory):
    return confed.run("ease", tiny.interactions(), out=tmp_path_factory.mktemp("runs"), options=FEW)


def test_everybody_gets_what_each_would_get(run):
    frame = run.recommend_all(3)
    assert frame.columns == ["user", "rank", "item", "score"], "there are no titles"
    assert frame["user"].n_unique() == tiny.USERS
    of_three = frame.filter(pl.col("user") == "3")
    assert of_three["item"].to_list() == [one.item for one in run.recommend("3", 3)]
    assert of_three["rank"].to_list() == [1, 2, 3]


@pytest.fixture(scope="module")
def with_few():
    """Two people with two items each, and one with an item that nobody else has."""
    few = [("few", "3"), ("few", "7"), ("less", "5"), ("less", "5"), ("alone", "nobody's")]
    frame = pl.DataFrame(
        [(*pair, 1.0, at) for at, pair in enumerate(few)], tiny.interactions().frame.schema, orient="row"
    )
    return pl.concat([tiny.interactions().frame, frame])


def test_everybody_is_everybody_in_the_data(with_few, tmp_path):
    heard = []
    run = train(with_few, out=tmp_path, notice=heard.append)
    heard.clear()
    frame = run.recommend_all(3, notice=heard.append)
    assert set(frame["user"]) == {*run.user_ids(), "few", "less"}
    for user in ("few", "less"):
        offered = run.recommend(user, 3)
        assert frame.filter(pl.col("user") == user)["item"].to_list() == [one.item for one in offered]
        assert frame.filter(pl.col("user") == user)["score"].to_list() == pytest.approx([one.score for one in offered])
    assert heard == [
        "2 of 27 users are served as somebody new: the run did not train on them",
        "1 of 27 users are left out: they have no item that the run knows",
    ]


def test_whom_a_method_cannot_serve_is_counted(with_few, tmp_path):
    run = confed.run("mf", with_few, rounds=1, out=tmp_path, options=FEW, notice=lambda _: None)
    everybody = run.offers(k=2).to_everybody()
    assert (everybody.newcomers, everybody.left_out) == (0, 3)
    assert everybody.notes[0].startswith("3 of 27 users are left out: mf serves only those it trained on")
    assert everybody.frame["user"].n_unique() == tiny.USERS


def test_progress_is_heard(run):
    heard = []
    run.recommend_all(1, progress=lambda done, of: heard.append((done, of)))
    assert heard[-1] == (tiny.USERS, tiny.USERS)


def test_titles_come_along(tmp_path):
    data = tiny.interactions()
    titled = confed.Interactions.of(data.frame, titles={item: f"the {item}" for item in data.items})
    run = confed.run("popularity", titled, out=tmp_path, options=FEW)
    assert run.recommend_all(1)["title"].str.starts_with("the ").all()


def test_somebody_new_with_the_items_of_somebody_known_gets_the_same_by_a_closed_form(ease):
    cut = ease._prepared().cut
    items = [cut.item_ids[item] for item in cut.training.positives[3]]
    offered = ease.recommend(history=items, k=60, filter_seen=False)
    known = ease.recommend(cut.user_ids[3], k=60, filter_seen=False)
    assert [one.item for one in offered] == [one.item for one in known]


def test_somebody_new_gets_nothing_that_the_history_has(run):
    history = run._prepared().cut.item_ids[:5]
    assert not {one.item for one in run.recommend(history=history, k=60)} & set(history)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "give one of the two"),
        ({"user": "1", "history": ["2"]}, "give one of the two"),
        ({"history": []}, "name at least one item"),
        ({"history": ["no such item"]}, "unknown item"),
    ],
)
def test_bad_requests(run, asked, message):
    with pytest.raises(ConfedError, match=message):
        run.recommend(**asked)


def test_a_method_that_knows_nobody_new_says_which_do(tmp_path):
    run = confed.run("mf", tiny.interactions(), rounds=1, out=tmp_path, options=FEW)
    with pytest.raises(ConfedError, match=r"mf serves only those it trained on: .* takes ease"):
        run.recommend(history=["1"])


def test_similar_items_are_those_at_a_small_angle(run):
    cut = run._prepared().cut
    vectors = run.item_vectors()
    found = run.similar(cut.item_ids[7], 4)
    cosines = torch.nn.functional.cosine_similarity(vectors.double(), vectors[7].double(), dim=1)
    cosines[7] = -2
    best = torch.topk(cosines, 4)
    assert [one.item for one in found] == [cut.item_ids[i] for i in best.indices]
    assert [one.score for one in found] == pytest.approx(best.values.tolist())


def test_who_has_no_vectors_says_so(tmp_path, run):
    popular = confed.run("popularity", tiny.interactions(), out=tmp_path, options=FEW)
    with pytest.raises(ConfedError, match="popularity has no vectors of items"):
        popular.similar("1")
    with pytest.raises(ConfedError, match="unknown item 'none'"):
        run.similar("none")


def test_somebody_new_who_has_nearly_everything(run):
    with pytest.raises(ConfedError, match="somebody new: 1 of 1 users have so many of the 60 items"):
        run.recommend(history=run._prepared().cut.item_ids[:-1])


def test_one_item_is_a_history(run):
    item = run._prepared().cut.item_ids[3]
    assert run.recommend(history=item, k=3) == run.recommend(history=[item], k=3)


def test_vectors_are_those_of_items_whatever_shape_networks_have(tmp_path):
    """FedNCF's first layer is as wide here as there are items."""
    run = confed.run("fedncf", tiny.interactions(), rounds=2, out=tmp_path, options={**FEW, "dim": 30})
    assert run.item_vectors().shape == (tiny.ITEMS, 60)
