"""Small data of one's own: what is done about it, and said."""

import polars as pl
import pytest

import confed
from confed.errors import ConfedError


def made(lengths, items):
    """A frame of users with so many items each, from a catalogue of so many."""
    rows = [
        (f"u{user}", f"i{(user * 29 + place) % items}")
        for user, length in enumerate(lengths)
        for place in range(length)
    ]
    return pl.DataFrame(rows, schema=["user", "item"], orient="row")


def ran(frame, tmp_path, method="popularity", **arguments):
    said = []
    run = confed.run(method, frame, folder=tmp_path / "run", notice=said.append, **arguments)
    return run, said


def test_few_items_mean_few_candidates_and_a_notice(tmp_path):
    run, said = ran(made([20] * 12 + [50], 80), tmp_path)
    assert run.summary["negatives"] == 30
    assert run.summary["protocol"] == "strict, negatives=30"
    assert len(said) == 1 and "against 30 sampled candidates instead of 99" in said[0] and "full ranking" in said[0]
    assert confed.Run.open(run.folder.path).recommend("u3", 2), "a run that is opened again ranks as it did"


def test_cutoffs_that_no_list_is_long_enough_for_are_left_out(tmp_path):
    run, _ = ran(made([40] * 12, 55), tmp_path)
    assert run.summary["negatives"] == 15
    assert "hr@10" in run.metrics and "hr@20" not in run.metrics


def test_what_somebody_asks_for_is_refused_instead(tmp_path):
    with pytest.raises(ConfedError, match=r"but 98 sampled candidates are asked for"):
        ran(made([20] * 12, 80), tmp_path, options={"negatives": 98})


def test_somebody_who_has_nearly_everything(tmp_path):
    """Neither the user nor how many he has is anybody's business; what to do is."""
    with pytest.raises(ConfedError, match=r"^data: too small to measure on.* 80 items, and 1 of 13 users") as error:
        ran(made([20] * 12 + [77], 80), tmp_path, "fedmf", rounds=7)
    assert error.value.message.endswith(
        "Bring more items, leave these users out, or train on all of it and measure nothing: "
        "`confed run fedmf data --no-holdout --rounds 7`"
    )
    run, _ = ran(made([20] * 12 + [70], 80), tmp_path, "fedmf", rounds=2, holdout=False)
    assert run.recommend("u12", 2), "the remedy is one"


def test_too_few_are_left_to_train_against(tmp_path):
    with pytest.raises(ConfedError, match=r"^data: 1 of 13 users .* fewer than 4 .*\"train_negatives\": 3"):
        ran(made([20] * 12 + [77], 80), tmp_path, "fedmf", rounds=1, holdout=False)
    with pytest.raises(
        ConfedError, match=r"training negatives: leave these users out, or take a method that draws none"
    ):
        ran(made([20] * 12 + [80], 80), tmp_path, "fedmf", rounds=1, holdout=False)


def test_several_domains_have_as_many_as_the_smallest(tmp_path):
    run, said = ran({"book": made([20] * 12, 70), "music": made([10] * 12, 75)}, tmp_path)
    assert run.summary["negatives"] == 50 and len(said) == 1


def test_users_with_too_few_items_are_left_out_and_it_is_said(tmp_path):
    run, said = ran(made([30] * 12 + [2, 1], 300), tmp_path)
    assert run.summary["users"] == 12
    assert len(said) == 1 and said[0].startswith("2 of 14 users are left out, who have fewer than 3 items")


def test_who_was_left_out_is_served_as_somebody_new(tmp_path):
    frame = made([30] * 12 + [2], 300)
    run, _ = ran(frame, tmp_path, "ease")
    offered = run.recommend("u12", 5)
    assert offered == run.recommend(history=["i48", "i49"], k=5)
    assert not {"i48", "i49"} & {one.item for one in offered}


def test_nobody_with_enough_items(tmp_path):
    with pytest.raises(ConfedError, match=r"^data: nobody has 3 items.*confed\.run\(\"popularity\".*holdout=False\)"):
        ran(made([2] * 12, 300), tmp_path)


def test_a_notice_is_heard_once_for_all_methods_and_seeds(tmp_path):
    said = []
    confed.compare(["popularity", "ease"], made([20] * 12, 80), seeds=2, out=tmp_path, notice=said.append)
    assert len(said) == 1
