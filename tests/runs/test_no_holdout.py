"""Runs that hold nothing out: a model for use."""

import re
import shutil
import signal
from pathlib import Path

import polars as pl
import pytest

import confed
from confed.errors import ConfedError

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
