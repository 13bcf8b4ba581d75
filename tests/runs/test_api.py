from collections import Counter

import pandas as pd
import polars as pl
import pytest

import confed
from confed.clients.store import ClientStore
from confed.errors import ConfedError
from confed.runs import api, prepare
from confed.runs.settings import Settings, resolve
from confed.testing import tiny
from tests.runs.short import FEW, train


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "csv", "interactions"])
def test_any_source_gives_the_same_run(tmp_path, kind):
    frame = tiny.interactions().frame
    path = tmp_path / "own.csv"
    frame.write_csv(path)
    sources = {
        "pandas": lambda: pd.read_csv(path),
        "polars": lambda: frame,
        "arrow": frame.to_arrow,
        "csv": lambda: path,
        "interactions": tiny.interactions,
    }
    assert train(sources[kind](), out=tmp_path).metrics == train(out=tmp_path).metrics


def test_resume_of_a_finished_run_changes_nothing(tmp_path):
    run = train(tiny.interactions().frame, out=tmp_path)
    assert confed.resume(run.folder.path).metrics == run.metrics


def test_recommender(tmp_path):
    fitted = confed.Recommender("fedmf", rounds=2, **FEW).fit(tiny.interactions(), out=tmp_path)
    assert len(fitted.recommend(3, k=4)) == 4


def test_columns_of_a_frame_are_named(tmp_path):
    frame = tiny.interactions().frame.rename({"user": "who", "item": "what", "timestamp": "on"})
    fitted = confed.Recommender("fedmf", rounds=2, **FEW).fit(
        frame, user="who", item="what", timestamp="on", out=tmp_path
    )
    assert fitted.run.settings.content_hash == tiny.interactions().content_hash
    assert fitted.run.settings.reading == {}, "the copy that is kept has the usual names"
    opened = confed.Run.open(fitted.run.folder.path)
    assert opened.recommend(3, k=4) == fitted.recommend(3, k=4)
    summaries = confed.compare(
        ["popularity"], frame, user="who", item="what", options={"negatives": 15, "cutoffs": [5]}, out=tmp_path
    )
    assert summaries[0]["users"] == len(tiny.interactions().users)
    with pytest.raises(ConfedError, match=r"an Interactions takes no options, got user="):
        train(user="who", out=tmp_path)


def test_unknown_settings_name_the_nearest(tmp_path):
    with pytest.raises(confed.ConfedError, match="unknown setting 'chunks': did you mean chunk"):
        train(out=tmp_path, chunks=3)


def test_nothing_is_written_when_the_data_is_wrong(tmp_path):
    frame = pl.DataFrame({"user": ["a", "a", "b"], "item": ["x", "y", "x"]})
    with pytest.raises(confed.ConfedError, match="nobody has 3 items"):
        train(frame, out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_comparison_checks_every_method_before_the_first_run(tmp_path):
    several = "synthetic:domains=2,users=40,items=60,interactions_per_user=10"
    three, one = several.replace("domains=2", "domains=3"), "synthetic:users=40,items=300"
    for last, data, wrong in (
        ("pfedrec", several, "several domains"),
        ("fppdm", one, "several domains"),
        ("etl", three, "etl is for two domains"),
        ("pfedrec", "ml-100", "unknown dataset 'ml-100': did you mean ml-100k"),
    ):
        with pytest.raises(ConfedError, match=wrong):
            confed.compare(
                ["popularity", last], data, rounds=1, options={"negatives": 15, "cutoffs": [5]}, out=tmp_path
            )
    with pytest.raises(ConfedError, match=r"unknown option 'cluters': did you mean clusters"):
        confed.compare(["fppdm", "fppdm++"], several, options={"cluters": 3}, out=tmp_path)
    with pytest.raises(ConfedError, match=r"chunk does nothing here, leave it out: fppdm"):
        confed.compare(["fppdm", "fppdm++"], several, chunk=8, out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_comparison_is_checked_with_the_data_cut_once_and_nobody_trained(tmp_path, monkeypatch):
    """Candidates and the cut are the same for all methods; what clients would keep may be much."""
    counts = Counter()

    def counted(owner, name):
        real = getattr(owner, name)

        def call(*arguments, **named):
            counts[name] += 1
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, call)

    counted(prepare, "split")
    counted(prepare.Examination, "of")
    counted(ClientStore, "__init__")
    runs = []
    monkeypatch.setattr(api, "run_seeds", lambda method, *_, **__: runs.append((method, dict(counts))) or {})
    methods = ["pfedrec", "cofedrec", "fed3cr", "popularity", "mf"]
    confed.compare(methods, "synthetic:users=40,items=80", rounds=1, options={"negatives": 20}, out=tmp_path)
    assert [method for method, _ in runs] == methods
    assert all(done == {"split": 1, "of": 1} for _, done in runs)
    assert not list(tmp_path.iterdir())


def test_other_methods_share_what_was_prepared():
    first, other = (resolve(method, "tiny", options=FEW, rounds=1) for method in ("pfedrec", "fedmf"))
    experiment = prepare.Experiment.prepare(first, tiny.interactions())
    shared = experiment.of_method(other)
    assert shared.cut is experiment.cut and shared.examination is experiment.examination
    alone = prepare.Experiment.prepare(other, tiny.interactions())
    assert shared.method is alone.method and shared.terms == alone.terms and shared.settings == alone.settings
    with pytest.raises(ConfedError, match="several domains"):
        experiment.of_method(resolve("fppdm", "tiny", rounds=1))
    with pytest.raises(ConfedError, match="view = 'local': mf can be scored under global"):
        experiment.of_method(resolve("mf", "tiny", options={**FEW, "view": "local"}, rounds=1))


def test_in_a_comparison_those_with_devices_take_the_chunk(tmp_path):
    confed.compare(
        ["popularity", "pfedrec"],
        "synthetic:users=40,items=80",
        chunk=8,
        rounds=1,
        options={"negatives": 20},
        out=tmp_path,
    )
    taken = {found.method: found.chunk for found in map(Settings.from_toml, tmp_path.glob("*/config.toml"))}
    assert taken == {"popularity": None, "pfedrec": 8}


def test_in_a_comparison_those_with_several_views_rank_all(tmp_path):
    data, options = tiny.interactions(), {"negatives": 15, "cutoffs": [5]}
    pooled = confed.compare(["pfedrec", "ease"], data, rounds=2, all_views=True, options=options, out=tmp_path)
    assert [set(one["views"]) for one in pooled] == [{"local", "global"}, {"global"}]
    with pytest.raises(ConfedError, match="all_views does nothing here"):
        confed.compare(["ease", "popularity"], data, all_views=True, options=options)


def test_more_rounds_are_run_also_where_patience_had_ended_the_run(tmp_path):
    data, few = "synthetic:users=40,items=80,seed=2", {"negatives": 20}
    ended = confed.run("popularity", data, rounds=30, patience=2, options=few, out=tmp_path)
    assert ended.summary["rounds"] == 3
    assert confed.resume(ended.folder.path).summary["rounds"] == 3
    assert confed.resume(ended.folder.path, rounds=7).summary["rounds"] == 7
    short = confed.run("popularity", data, rounds=2, patience=2, options=few, out=tmp_path)
    assert confed.resume(short.folder.path, rounds=7).summary["rounds"] == 7


def test_nothing_is_recommended_before_something_is_learned():
    with pytest.raises(ConfedError, match="call fit"):
        confed.Recommender().recommend("a")


def test_what_data_is_known_to_be_cannot_be_claimed(tmp_path):
    with pytest.raises(ConfedError, match="known follows from the data"):
        confed.run("popularity", tiny.interactions(), known="ml-100k", out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_recommender_has_parameters():
    one = confed.Recommender("ease", regularisation=100.0)
    assert one.get_params() == {"method": "ease", "rounds": None, "seed": 0, "regularisation": 100.0}
    assert repr(one) == "Recommender(method='ease', seed=0, regularisation=100.0)"
    assert one.set_params(seed=3, regularisation=50.0) is one
    assert one.get_params()["seed"] == 3 and one.options == {"regularisation": 50.0}


def test_a_recommender_trains_on_everything(tmp_path):
    fitted = confed.Recommender("fedmf", rounds=1, dim=4).fit(tiny.interactions(), holdout=False)
    assert fitted.run.summary["protocol"] == "everything"
    assert fitted.recommend("3", 2) and fitted.recommend(history=["1"], k=2)
