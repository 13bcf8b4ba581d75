from tests.faults.corruptions import Shelf, cases, outcome


def test_no_corruption_of_a_run_folder_is_taken_for_what_was_written(tmp_path):
    """Every file and every change once; `make faults` has more of them."""
    shelf = Shelf(tmp_path / "shelf")
    assert set(shelf.files(finished=True)) == {
        "checkpoint/best",
        "checkpoint/manifest.json",
        "checkpoint/ranks",
        "checkpoint/state",
        "config.toml",
        "data.json",
        "data.parquet",
        "metrics.jsonl",
        "summary.json",
    }
    found = {case.name: outcome(case, shelf, tmp_path / "case") for case in cases(0, shelf, each=1)}
    assert {name: one.how for name, one in found.items() if not one.held} == {}
    assert len(found) > 150
