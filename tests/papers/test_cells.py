import json

from papers.cells import Cell, load_results, pooled, run_cells

TINY = "synthetic:users=40,items=80,seed=2"
OPTIONS = {"negatives": 20}


def cells(*seeds):
    return [Cell("popularity", TINY, "strict", seed, variant="v", options=OPTIONS) for seed in seeds]


def test_cells_are_written_once_and_never_run_again(tmp_path):
    run_cells(cells(0), tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), "marked": True}))
    run_cells(cells(0, 1), tmp_path)
    results = load_results(tmp_path)
    assert [r["seed"] for r in results] == [0, 1]
    assert [r.get("marked", False) for r in results] == [True, False]
    assert results[1]["hr@10"] > 0 and results[1]["options"] == OPTIONS


def test_names_tell_configurations_apart():
    names = {c.name for c in cells(0, 1)} | {Cell("popularity", TINY, "paper", 0).name}
    assert len(names) == 3


def test_pooled():
    results = [{"hr@10": 1.0, "views": {"local": {"hr@10": 5.0}}}, {"hr@10": 3.0, "views": {"local": {"hr@10": 5.0}}}]
    assert pooled(results, "hr@10") == "2.00 ± 1.41"
    assert pooled(results[:1], "hr@10") == "1.00"
    assert pooled(results, "hr@10", "local") == "5.00 ± 0.00"
    assert pooled([], "hr@10") == "–"
