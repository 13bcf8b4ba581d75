import math
from types import SimpleNamespace

import pytest

import confed
from confed.errors import ConfedError
from confed.runs.execute import execute
from confed.runs.folder import RunFolder
from confed.runs.loop import Loop
from confed.runs.prepare import Experiment
from confed.runs.settings import resolve
from confed.testing import tiny

NOT_COMPARED = {"seconds", "seconds_per_round", "peak_rss_mb", "run_dir"}
FEW = {"negatives": 15, "cutoffs": [5, 10]}


def settings(method="pfedrec", options=None, **more):
    small = {"dim": 4} if method not in ("popularity", "scalar") else {}
    return resolve(method, "tiny", options={**FEW, **small, **(options or {})}, **{"rounds": 6, **more})


def start(tmp_path, chosen, listener=None):
    folder = RunFolder.create(chosen, tmp_path)
    return execute(Experiment.prepare(chosen, tiny.interactions()), folder, listener), folder


class BrokenOffError(Exception):
    pass


def interrupt_at(number):
    def listen(line, _):
        if line["round"] == number:
            raise BrokenOffError

    return listen


@pytest.mark.parametrize("checkpoint_seconds", [0.0, 1e9])
@pytest.mark.parametrize("method", ["pfedrec", "fedncf", "local-only"])
def test_a_broken_run_ends_as_an_unbroken_one(tmp_path, method, checkpoint_seconds):
    """With a checkpoint of every round, and with none at all before the break."""
    chosen = settings(method, checkpoint_seconds=checkpoint_seconds)
    unbroken, whole = start(tmp_path, chosen)
    with pytest.raises(BrokenOffError):
        start(tmp_path / "b", chosen, interrupt_at(4))
    folder = RunFolder.open(next((tmp_path / "b").iterdir()))
    resumed = execute(Experiment.prepare(chosen, tiny.interactions()), folder)
    assert {k: v for k, v in resumed.items() if k not in NOT_COMPARED} == {
        k: v for k, v in unbroken.items() if k not in NOT_COMPARED
    }
    assert strip(folder.metrics()) == strip(whole.metrics())


def strip(lines):
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


def test_the_reported_round_is_the_best_on_validation(tmp_path):
    summary, folder = start(tmp_path, settings(all_views=True))
    values = [line["views"]["local"]["validation"]["ndcg@10"] for line in folder.metrics()]
    assert summary["best_round"] == values.index(max(values)) + 1
    best = folder.metrics()[summary["best_round"] - 1]
    assert summary["hr@10"] == best["views"]["local"]["test"]["hr@10"]
    assert summary["views"]["global"]["hr@10"] == best["views"]["global"]["test"]["hr@10"]


def test_other_views_are_ranked_if_they_are_asked_for_and_change_nothing(tmp_path):
    one, other = (start(tmp_path / str(asked), settings(all_views=asked)) for asked in (False, True))
    for line, more in zip(one[1].metrics(), other[1].metrics(), strict=True):
        assert list(line["views"]) == ["local"] and list(more["views"]) == ["local", "global"]
        assert line["views"]["local"] == more["views"]["local"]
    assert list(one[0]["views"]) == ["local"] and one[0]["best_round"] == other[0]["best_round"]


def test_a_run_begun_when_all_views_were_always_ranked_goes_on_so():
    trainer, chosen = SimpleNamespace(views=("local", "global"), view="local"), SimpleNamespace(all_views=False)

    def ranked(*lines):
        return Loop._views.fget(SimpleNamespace(trainer=trainer, settings=chosen, lines=list(lines)))

    assert ranked() == ranked({"views": {"local": {}}}) == ("local",)
    assert ranked({"views": {"local": {}, "global": {}}}) == ("local", "global")


def test_all_views_of_a_sample_cannot_be_asked_for():
    with pytest.raises(ConfedError, match=r"all_views and eval_users: .* leave one of them out"):
        settings(all_views=True, eval_users=5)


@pytest.mark.parametrize(("method", "options"), [("fedmf", {}), ("ease", {}), ("fppdm", {"variant": "alone"})])
def test_where_there_is_one_view_others_cannot_be_asked_for(method, options):
    with pytest.raises(ConfedError, match=r"all_views does nothing here, leave it out: .* under one view only"):
        resolve(method, "tiny", options=options, all_views=True)


@pytest.mark.parametrize(("ties", "expected"), [("earliest", 1), ("latest", 4)])
def test_ties_between_rounds(tmp_path, ties, expected):
    """Popularity never changes: every round is equally good."""
    summary, _ = start(tmp_path, settings("popularity", {"select_ties": ties}, rounds=4))
    assert summary["best_round"] == expected


def test_select_on_test_and_another_view(tmp_path):
    chosen = settings(options={"select_on": "test", "view": "global", "select_metric": "hr@5"})
    summary, folder = start(tmp_path, chosen)
    values = [line["views"]["global"]["test"]["hr@5"] for line in folder.metrics()]
    assert summary["hr@5"] == max(values)
    assert summary["view"] == "global"


def test_a_view_the_method_does_not_have(tmp_path):
    chosen = settings("mf", {"view": "local"})
    with pytest.raises(ConfedError, match=r"view = 'local': mf can be scored under global"):
        start(tmp_path, chosen)


def test_patience_stops_early_and_survives_a_resume(tmp_path):
    chosen = settings("popularity", rounds=50, patience=3)
    summary, folder = start(tmp_path, chosen)
    assert summary["rounds"] == 4
    again = execute(Experiment.prepare(chosen, tiny.interactions()), folder)
    assert again["rounds"] == 4


def test_eval_every_evaluates_the_last_round_too(tmp_path):
    _, folder = start(tmp_path, settings(rounds=5, eval_every=2))
    assert [line["round"] for line in folder.metrics() if line["views"]] == [2, 4, 5]


def test_summary_has_what_the_command_line_promises(tmp_path):
    summary, _ = start(tmp_path, settings(rounds=3))
    promised = {"method", "dataset", "protocol", "seed", "rounds", "best_round", "seconds", "seconds_per_round"}
    promised |= {"hr@10", "ndcg@10", "full_hr@10", "full_ndcg@10", "peak_rss_mb", "run_dir"}
    promised |= {"upload_bytes", "download_bytes"}
    assert not promised - set(summary)
    for way in ("upload_bytes", "download_bytes"):
        assert 0 < summary[way] / (3 * tiny.USERS) - 4 * tiny.ITEMS * 4 < 500
    assert summary["peak_rss_mb"] > 50


def test_arithmetic_of_every_line(tmp_path):
    """decisions.md "Checks": NDCG@K ∈ [HR@K / log2(K + 1), HR@K], HR@10 ≥ HR@5."""
    _, folder = start(tmp_path, settings("fedmf"))
    for line in folder.metrics():
        for metrics in line["views"]["global"].values():
            for prefix in ("", "full_"):
                hr, ndcg = metrics[f"{prefix}hr@10"], metrics[f"{prefix}ndcg@10"]
                assert hr / math.log2(11) - 1e-9 <= ndcg <= hr + 1e-9
                assert hr >= metrics[f"{prefix}hr@5"]


@pytest.mark.parametrize("said", [{"eval_every": 5}, {"holdout": False}])
def test_a_run_does_not_end_with_a_round_that_was_not_kept(tmp_path, said):
    options = {"dim": 4, **(FEW if said.get("holdout", True) else {})}
    with pytest.raises(BrokenOffError):
        confed.run(
            "pfedrec",
            tiny.interactions(),
            rounds=8,
            options=options,
            checkpoint_seconds=0,
            folder=tmp_path / "run",
            listener=interrupt_at(4),
            **said,
        )
    done = RunFolder.open(tmp_path / "run").load_progress().round
    with pytest.raises(ConfedError, match=f"round {done} was not meant to be the last.*rounds={done + 1}"):
        confed.resume(tmp_path / "run", rounds=done)
    assert confed.resume(tmp_path / "run", rounds=done + 1).summary["best_round"] == done + 1
