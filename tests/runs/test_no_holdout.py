"""Runs that hold nothing out: a model for use."""

import re
import shutil
import signal
from pathlib import Path

import polars as pl
import pytest

import confed
from confed.errors import ConfedError
from confed.runs.settings import followed, resolve

DATA = "synthetic:users=30,items=60,seed=1"
FEW = {"dim": 4, "negatives": 20}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    return confed.run(
        "pfedrec", DATA, rounds=4, options=FEW, folder=tmp_path_factory.mktemp("measured") / "run", seed=3
    )


@pytest.mark.parametrize("method", ["pfedrec", "fedmf", "local-only"])
def test_everything_is_trained_on_and_nothing_measured(method, tmp_path):
    run = confed.run(method, DATA, holdout=False, rounds=2, options={"dim": 4}, folder=tmp_path / "run")
    assert run.summary["protocol"] == "everything"
    assert run.metrics == {} and run.summary["best_round"] == 2
    data = confed.load_dataset(DATA)
    assert len(run.training_items().values) == data.describe()["interactions"]
    had = set(data.frame.filter(pl.col("user") == "1")["item"])
    offered = [one.item for one in confed.Run.open(tmp_path / "run").recommend("1", 60)]
    assert not had & set(offered) and len(offered) == 60 - len(had)


def test_users_with_one_item_are_trained_too(tmp_path):
    frame = pl.DataFrame([("a", f"i{n}") for n in range(30)] + [("b", "i3")], schema=["user", "item"], orient="row")
    run = confed.run("ease", frame, holdout=False, folder=tmp_path / "run")
    assert run.summary["users"] == 2
    assert run.recommend("b", 3)


def test_several_domains(tmp_path):
    run = confed.run(
        "fppdm",
        "synthetic:domains=2,users=40,items=60",
        holdout=False,
        rounds=1,
        options={"dim": 4},
        folder=tmp_path / "r",
    )
    assert run.summary["protocol"] == "everything" and run.recommend("1", 3, domain="a")


def test_somebody_has_to_say_how_many_rounds(tmp_path):
    with pytest.raises(ConfedError, match="nothing can choose the round: say rounds=, or like="):
        confed.run("pfedrec", DATA, holdout=False, folder=tmp_path / "run")
    with pytest.raises(ConfedError, match=r"protocol=.strict. holds something out"):
        confed.run("pfedrec", DATA, holdout=False, protocol="strict", rounds=1, folder=tmp_path / "run")
    with pytest.raises(ConfedError, match=r"negatives = 20: does nothing under protocol=.everything"):
        confed.run("pfedrec", DATA, holdout=False, rounds=1, options=FEW, folder=tmp_path / "run")


def test_like_another_run(measured, tmp_path):
    told = confed.runs.api.as_in(measured, holdout=False)
    run = confed.run(**told, holdout=False, folder=tmp_path / "run")
    assert run.settings.method_options == measured.settings.method_options
    assert (run.settings.rounds, run.settings.seed) == (measured.summary["best_round"], 3)
    again = confed.run(**confed.runs.api.as_in(measured.folder.path, holdout=True), folder=tmp_path / "again")
    assert again.metrics == measured.metrics


@pytest.mark.apart
def test_in_processes_as_in_one(tmp_path):
    one, two = (
        confed.run("pfedrec", DATA, holdout=False, rounds=2, options={"dim": 4}, folder=tmp_path / str(n), **place)
        for n, place in enumerate(({}, {"engine": "processes", "workers": 2}))
    )
    assert [r.item for r in one.recommend("1", 5)] == [r.item for r in two.recommend("1", 5)]


def test_like_keeps_what_chose_the_round_and_what_acts_without_holdout(tmp_path):
    options = {**FEW, "view": "global", "dedupe": False}
    first = confed.run("pfedrec", DATA, rounds=4, eval_every=2, patience=1, options=options, folder=tmp_path / "a")
    again = confed.run(like=first, folder=tmp_path / "b")
    assert (again.settings.eval_every, again.settings.patience) == (2, 1)
    whole = confed.run(like=first, holdout=False, folder=tmp_path / "c")
    assert whole.summary["view"] == "global" and whole.settings.protocol.dedupe is False


SMALL, LARGE = "synthetic:users=30,items=60,seed=1", "synthetic:users=60,items=300,seed=2"


@pytest.mark.parametrize("holdout", [True, False])
def test_on_other_data_what_followed_from_the_data_follows_from_that(tmp_path, holdout):
    small = confed.run("fedmf", SMALL, rounds=2, options={"dim": 4}, folder=tmp_path / "a", notice=lambda _: None)
    assert small.settings.fitted and small.settings.protocol.negatives < 99
    options = {"dim": 4}
    fresh = confed.run("fedmf", LARGE, rounds=small.summary["best_round"], options=options, holdout=holdout)
    like = confed.run(like=small, dataset=LARGE, holdout=holdout, folder=tmp_path / "b")
    assert like.settings.method_options == fresh.settings.method_options and like.settings.facts == fresh.settings.facts
    assert like.settings.protocol == fresh.settings.protocol and like.settings.fitted == ()
    assert like.settings.method_options != small.settings.method_options, "or nothing was tested"
    again = confed.run(like=small, folder=tmp_path / "c", notice=lambda _: None)
    assert again.settings.protocol == small.settings.protocol and again.settings.fitted == small.settings.fitted
    assert again.settings.method_options == small.settings.method_options


def test_what_somebody_set_stays_on_other_data(tmp_path):
    told = {"dim": 4, "item_rate_factor": 7.5, "negatives": 20, "upload_clip": 2.0, "upload_noise": 0.1}
    small = confed.run("fedmf", SMALL, rounds=1, options=told, folder=tmp_path / "a")
    like = confed.run(like=small, dataset=LARGE, folder=tmp_path / "b")
    assert like.settings.method_options == small.settings.method_options
    assert like.settings.protocol.negatives == 20


def test_settings_that_are_a_datasets_own_stay_with_it():
    known = resolve("pfedrec", "lastfm-2k", known="lastfm-2k", options={"dim": 4})
    assert followed(known) == {"learning_rate", "item_rate_factor"}
    said = resolve("pfedrec", "lastfm-2k", known="lastfm-2k", options={"learning_rate": 0.2})
    assert followed(said) == {"item_rate_factor"}
    assert followed(resolve("pfedrec", "mine.csv")) == set()


def test_a_stopped_run_that_nobody_asked_to_keep_can_go_on(monkeypatch):
    stopped = confed.ConfedError

    def stop(line, settings):
        if line["round"] == 2 and "waiting" not in line:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(stopped, match=r'`confed\.resume\("(.*)"\)` goes on from round 3') as error:
        confed.run("pfedrec", DATA, rounds=4, options=FEW, listener=stop)
    folder = Path(re.search(r'resume\("(.*)"\)', str(error.value))[1])
    assert confed.resume(folder).summary["rounds"] == 4
    shutil.rmtree(folder.parent)
