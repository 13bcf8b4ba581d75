import errno
import re

import polars as pl
import pytest

import confed
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.report.sections import sections
from confed.runs.prepare import Experiment
from confed.testing import tiny
from tests.runs.short import train, train_companies


def test_a_run_knows_its_metrics_and_history(tmp_path):
    run = train(out=tmp_path)
    assert {"hr@10", "ndcg@5", "full_mrr@10"} <= set(run.metrics)
    assert [line["round"] for line in run.lines] == [1, 2, 3]


def test_recommendations_leave_out_what_the_user_has(tmp_path):
    run = train(out=tmp_path)
    known = set(tiny.interactions().frame.filter(pl.col("user") == "3")["item"])
    items = [r.item for r in run.recommend("3", k=20)]
    assert len(items) == 20 and not set(items) & known
    everything = [r.item for r in run.recommend("3", k=1000, filter_seen=False)]
    assert len(everything) == tiny.ITEMS


def test_recommendations_are_in_the_order_of_the_evaluated_scores(tmp_path):
    """What is recommended is what was measured: rank the held-out test item by hand."""
    run = train(out=tmp_path)
    cut = run._prepared().cut
    client = cut.user_ids.index("5")
    full = [r.item for r in run.recommend("5", k=1000, filter_seen=False)]
    hidden = {cut.item_ids[i] for i in [*cut.training.positives[client], cut.validation[client]]}
    rank = [item for item in full if item not in hidden].index(cut.item_ids[cut.test[client]])
    experiment = Experiment.prepare(run.settings, tiny.interactions())
    trainer = experiment.trainer()
    for number in range(1, run.summary["best_round"] + 1):
        done = trainer.round(number, ["local"])
    result = experiment.examination.grading.result(done.tallies["local"])
    assert result.full["test"].above[client] == rank


def test_data_handed_over_in_memory_can_be_opened_again(tmp_path):
    run = train(tiny.interactions().frame, out=tmp_path)
    again = confed.Run.open(run.folder.path)
    assert again.recommend("3", 5) == run.recommend("3", 5)


@pytest.mark.parametrize(
    ("user", "k", "message"), [("nobody", 5, "'nobody' is nobody whom this run knows"), ("3", 0, "at least one")]
)
def test_bad_requests(tmp_path, user, k, message):
    with pytest.raises(confed.ConfedError, match=message):
        train(out=tmp_path).recommend(user, k)


def test_a_run_can_be_opened_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    run = train(tiny.interactions().frame, out="runs")
    path, expected = run.folder.path.absolute(), run.recommend("3", 5)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert confed.Run.open(path).recommend("3", 5) == expected


def test_a_run_finds_its_files_from_another_folder(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (tmp_path / "elsewhere").mkdir()
    home.mkdir()
    for name, part in synthetic_domains(domains=2, users=40, items=60, interactions_per_user=10).parts.items():
        part.frame.write_csv(home / f"{name}.csv")
    few = {"negatives": 15, "cutoffs": [5, 10], "more_negatives": []}
    monkeypatch.chdir(home)
    kept = [confed.run("popularity", data, options=few, out=tmp_path) for data in ("a.csv", "x=a.csv,y=b.csv")]
    monkeypatch.chdir(tmp_path / "elsewhere")
    user = kept[0]._prepared().cut.user_ids[0]
    for run, domain in zip(kept, (None, "y"), strict=True):
        opened = confed.Run.open(run.folder.path)
        assert opened.settings.dataset == run.settings.dataset, "it is still called what it was called"
        assert opened.recommend(user, domain=domain)
    (home / "a.csv").rename(home / "moved.csv")
    with pytest.raises(ConfedError, match=re.escape(f"its data was at {home / 'a.csv'}")):
        confed.Run.open(kept[0].folder.path).recommend(user)
    (tmp_path / "elsewhere" / "a.csv").write_bytes((home / "moved.csv").read_bytes())
    (home / "a.csv").write_text("user,item\n1,2\n1,3\n")
    assert confed.Run.open(kept[0].folder.path).recommend(user), "the same data, under the name it was called"


def test_what_is_asked_of_a_domain_names_one(tmp_path):
    run = train_companies(tmp_path, rounds=1)
    for ask in (run.ranks, run.training_items):
        with pytest.raises(ConfedError, match=r"several domains \(a, b, c\): say which"):
            ask()
        with pytest.raises(ConfedError, match="unknown domain 'q'"):
            ask(domain="q")
    users = run._prepared().cut.parts["b"].users
    assert len(run.ranks(domain="b").above) == len(run.training_items("b").lengths) == users
    with pytest.raises(ConfedError, match="no ranks of the view 'pushed'"):
        run.ranks("pushed", domain="b")
    with pytest.raises(ConfedError, match="one domain only"):
        train(out=tmp_path, rounds=1).ranks(domain="b")


@pytest.fixture
def kept_nowhere(tmp_path, monkeypatch):
    """A run that nobody asked to keep, made in an empty folder."""
    monkeypatch.chdir(tmp_path)
    options = {"dim": 4, "negatives": 15, "cutoffs": [5]}
    return confed.run("pfedrec", tiny.interactions(), rounds=2, options=options, all_views=True)


def test_nothing_is_written_that_nobody_asked_for(kept_nowhere, tmp_path):
    assert list(tmp_path.iterdir()) == []
    assert kept_nowhere.recommend("3", 2)
    saved = kept_nowhere.save(tmp_path / "mine")
    assert saved.summary["run_dir"] == str(tmp_path / "mine")
    assert saved.recommend("3", 2) == kept_nowhere.recommend("3", 2)
    with pytest.raises(ConfedError, match="is there already"):
        kept_nowhere.save(tmp_path / "mine")


def test_a_copy_is_whole_or_not_there(kept_nowhere, tmp_path, monkeypatch):
    (kept_nowhere.folder.path / ".lock").touch()
    assert not (kept_nowhere.save(tmp_path / "mine").folder.path / ".lock").exists()

    def refuse(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("confed.runs.finished.shutil.copy2", refuse)
    with pytest.raises(ConfedError, match=r"cannot be written \(No space left on device\); make room"):
        kept_nowhere.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_run_shows_itself(kept_nowhere):
    shown = repr(kept_nowhere)
    assert shown.startswith("Run(pfedrec on data, strict, negatives=15, seed 0: HR@10 ")
    assert (
        f"{kept_nowhere.summary['ndcg@10']:.2f} (popularity {kept_nowhere.summary['popularity']['ndcg@10']:.2f})"
        in shown
    )
    kept_nowhere.summary["dataset"] = "<script>"
    assert "&lt;script&gt;" in kept_nowhere._repr_html_() and "<script>" not in kept_nowhere._repr_html_()


def test_the_history_is_a_frame(kept_nowhere):
    history = kept_nowhere.history
    assert history["round"].to_list() == [1, 2]
    line = kept_nowhere.lines[1]["views"]
    assert history["validation_hr@10"][1] == line["local"]["validation"]["hr@10"]
    assert history["global_test_ndcg@5"][1] == line["global"]["test"]["ndcg@5"]


def test_the_reports_pictures_and_its_page(kept_nowhere, tmp_path):
    figures = kept_nowhere.figures()
    drawn = [picture for section in sections(kept_nowhere) for picture in every_picture(section)]
    assert len(figures) == len(drawn) > 3 and all(title.strip() for title in figures)
    page = kept_nowhere.report(tmp_path / "page.html", samples=False)
    assert page == tmp_path / "page.html" and "pfedrec on data" in page.read_text("utf-8")
    assert kept_nowhere.report().parent == kept_nowhere.folder.path


def every_picture(section):
    return [*section.pictures, *(section.fold.pictures if section.fold else ())]
