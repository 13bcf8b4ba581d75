"""A cell that another recipe has run, under whatever name, is found by its settings."""

from types import SimpleNamespace

from papers.cells import Cell, run_cells
from papers.elsewhere import measured

TINY = "synthetic:users=40,items=80,seed=2"


def recipe(path, cells):
    run_cells(cells, path)
    return SimpleNamespace(RESULTS=path, cells=lambda: cells)


def test_the_same_settings_are_the_same_cell(tmp_path):
    theirs = Cell("popularity", TINY, "strict", 0, variant="as they call it", options={"negatives": 20})
    other = recipe(tmp_path / "results.jsonl", [theirs])
    ours = Cell("popularity", TINY, "strict", 0, options={"negatives": 20})
    found = measured([ours], [other])
    assert found.keys() == {ours.name} != {theirs.name}
    assert found[ours.name]["variant"] == "" and found[ours.name]["name"] == ours.name
    assert found[ours.name]["hr@10"] > 0


def test_other_settings_and_unfinished_cells_are_not(tmp_path):
    theirs = Cell("popularity", TINY, "strict", 0, options={"negatives": 20})
    other = recipe(tmp_path / "results.jsonl", [theirs])
    missing = SimpleNamespace(RESULTS=tmp_path / "none.jsonl", cells=other.cells)
    changed = [
        Cell("popularity", TINY, "strict", 0, options={"negatives": 21}),
        Cell("popularity", TINY, "paper", 0, options={"negatives": 20}),
        Cell("popularity", TINY, "strict", 1, options={"negatives": 20}),
    ]
    assert measured(changed, [other]) == {}
    assert measured([theirs], [missing]) == {}
