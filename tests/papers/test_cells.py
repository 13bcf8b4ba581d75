import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from papers.cells import (
    Cell,
    kept_run,
    load_results,
    own_round,
    packed,
    pooled,
    run_cells,
    unpacked,
    write_result,
)
from papers.results import Results

from confed.evaluation.metrics import Ranks
from confed.protocol import WARM
from confed.runs.folder import RunFolder

TINY = "synthetic:users=40,items=80,seed=2"
OPTIONS = {"negatives": 20}


def cells(*seeds):
    return [Cell("popularity", TINY, "strict", seed, variant="v", options=OPTIONS) for seed in seeds]


def test_cells_are_written_once_and_never_run_again(tmp_path):
    path = tmp_path / "results.jsonl"
    run_cells(cells(0), path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "marked": True}) + "\n")
    run_cells(cells(0, 1), path)
    results = load_results(path)
    assert [r["seed"] for r in results] == [0, 1]
    assert [r.get("marked", False) for r in results] == [True, False]
    assert results[1]["hr@10"] > 0 and results[1]["options"] == OPTIONS


def test_a_cell_alone_gives_the_same_and_does_not_count_the_memory_of_others(tmp_path):
    beside, alone = cells(0)[0], replace(cells(1)[0], alone=True)
    much = np.ones(1 << 26)
    run_cells([beside, alone], tmp_path / "results.jsonl")
    first, second = load_results(tmp_path / "results.jsonl")
    assert first["hr@10"] > 0 and second["hr@10"] > 0
    assert second["peak_rss_mb"] < first["peak_rss_mb"] - 0.5 * much.nbytes / 1e6


def test_an_error_of_a_cell_alone_is_told(tmp_path):
    wrong = replace(cells(0)[0], options={"nonsense": 1}, alone=True)
    with pytest.raises(SystemExit, match="nonsense"):
        run_cells([wrong], tmp_path / "results.jsonl")


def test_a_detailed_cell_keeps_its_curve(tmp_path):
    cell = Cell("pfedrec", TINY, "strict", 0, 3, "v", {**OPTIONS, "dim": 4}, detailed=True)
    run_cells([cell], tmp_path / "results.jsonl")
    (result,) = load_results(tmp_path / "results.jsonl")
    for view, curve in result["curve"].items():
        own = result["own_round"][view]
        assert curve["round"] == [1, 2, 3]
        assert curve["hr@10"][own["round"] - 1] == pytest.approx(own["hr@10"], abs=0.01)
        assert curve["ndcg@10"][own["round"] - 1] == pytest.approx(own["ndcg@10"], abs=0.01)


def test_every_domain_has_the_round_that_its_own_validation_chooses():
    """Which is neither the best on the test, nor the one that the mean of the domains chooses."""
    validation = {"a": [10, 30, 20], "b": [50, 20, 30]}
    test = {"a": [60, 40, 50], "b": [10, 90, 30]}

    def line(number):
        parts = {
            name: {"domains": {d: {"hr@10": of[d][number], "ndcg@10": of[d][number]} for d in of}}
            for name, of in (("validation", validation), ("test", test))
        }
        return {"round": number + 1, "views": {"local": parts}}

    run = SimpleNamespace(settings=SimpleNamespace(protocol=WARM), lines=[line(number) for number in range(3)])
    assert own_round(run, "local", "a") == {"round": 2, "hr@10": 40, "ndcg@10": 40}
    assert own_round(run, "local", "b") == {"round": 1, "hr@10": 10, "ndcg@10": 10}


def test_a_cell_that_diverges_is_a_result_and_any_other_error_is_none(tmp_path):
    lost = Cell("fed3cr", TINY, "strict", 0, 4, "lost", {**OPTIONS, "dim": 4, "item_rate": 1e6})
    wrong = Cell("fed3cr", TINY, "strict", 0, 4, "wrong", {**OPTIONS, "dimm": 4})
    with pytest.raises(SystemExit, match="dimm"):
        run_cells([lost, wrong], tmp_path / "results.jsonl")
    assert load_results(tmp_path / "results.jsonl") == []
    (kept,) = load_results(tmp_path / "results.jsonl", diverged=True)
    assert kept["variant"] == "lost" and "lower the learning rate" in kept["diverged"]
    assert kept["provenance"]["settings"]["method_options"]["item_rate"] == 1e6
    run_cells([lost], tmp_path / "results.jsonl")


def test_names_tell_configurations_apart():
    names = {c.name for c in cells(0, 1)} | {Cell("popularity", TINY, "paper", 0).name}
    assert len(names) == 3


def test_an_item_that_was_never_ranked_is_no_hit():
    ranks = unpacked(packed(Ranks(np.array([-1, 0, 300]), np.array([0, 0, 2]))))
    assert ranks.per_user("hr", 10, "expected").tolist() == [0.0, 1.0, 0.0]


def test_pooled():
    results = [{"hr@10": 1.0, "views": {"local": {"hr@10": 5.0}}}, {"hr@10": 3.0, "views": {"local": {"hr@10": 5.0}}}]
    assert pooled(results, "hr@10") == "2.00 ± 1.41"
    assert pooled(results[:1], "hr@10") == "1.00"
    assert pooled(results, "hr@10", "local") == "5.00 ± 0.00"
    assert pooled([], "hr@10") == "–"


@pytest.mark.parametrize(("method", "own"), [("pfedrec", {}), ("fed3cr", {"item_rate": 1.0})])
def test_a_cell_that_was_broken_off_goes_on(tmp_path, method, own):
    """Also where options are not set, which a file cannot say (fed3cr)."""
    options = {**OPTIONS, "dim": 4, **own}
    whole, part = (tmp_path / name / "results.jsonl" for name in ("whole", "part"))
    cell = Cell(method, TINY, "strict", 0, 4, "v", options, {"checkpoint_seconds": 0.0})
    run_cells([cell], whole)

    def breaks(line, settings):
        if line["round"] == 3:
            raise RuntimeError("the power went")

    scratch = Results(part).unfinished / cell.name
    with pytest.raises(RuntimeError, match="power"):
        write_result(cell, Results(part), {"commit": "old"}, breaks)
    saved = RunFolder.open(scratch).load_checkpoint().progress.round
    assert saved in (1, 2), "a slow disk may leave a checkpoint out"
    seen = []
    write_result(
        cell, Results(part), {"commit": "new"}, lambda line, _: "waiting" in line or seen.append(line["round"])
    )
    assert seen == list(range(saved + 1, 5))
    assert not any(Results(part).unfinished.iterdir())
    one, other = (Results(path).read()[cell.name] for path in (whole, part))
    assert one["views"] == other["views"]
    assert one["provenance"]["settings"] == other["provenance"]["settings"]
    assert (other["provenance"]["commit"], other["provenance"]["begun_with"]) == ("new", {"commit": "old"})
    assert "begun_with" not in one["provenance"]


def test_an_unfinished_run_with_other_settings_is_not_gone_on_with(tmp_path):
    first, other = (Cell("pfedrec", TINY, "strict", 0, 2, "v", {**OPTIONS, "dim": dim}) for dim in (4, 5))
    kept_run(first, tmp_path / "run")
    found = kept_run(other, tmp_path / "run")
    assert found.settings.method_options["dim"] == 5
