import json
import subprocess
import sys
from pathlib import Path

import pytest
from papers.results import Results

from confed.errors import ConfedError

ROOT = Path(__file__).parent.parent.parent
ADD_TWENTY = """
import sys
from pathlib import Path
from papers.results import Results
for number in range(20):
    Results(Path(sys.argv[1])).add(f"{sys.argv[2]}{number:02}", {"value": number})
"""


def test_a_line_for_every_cell_sorted_by_name(tmp_path):
    results = Results(tmp_path / "results.jsonl")
    assert results.read() == {}
    for name in "bca":
        results.add(name, {"value": f"{name}\u2028"})
    lines = [json.loads(line) for line in results.path.read_text().splitlines()]
    assert [line["name"] for line in lines] == ["a", "b", "c"]
    assert "a" in results and "d" not in results
    results.add("a", {"value": 2})
    assert results.read()["a"] == {"name": "a", "value": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]


def test_processes_side_by_side_lose_nothing(tmp_path):
    path = tmp_path / "results.jsonl"
    both = [subprocess.Popen([sys.executable, "-c", ADD_TWENTY, path, name], cwd=ROOT) for name in "ab"]
    assert [process.wait() for process in both] == [0, 0]
    assert list(Results(path).read()) == [f"{name}{number:02}" for name in "ab" for number in range(20)]


def test_a_change_that_fails_changes_nothing(tmp_path):
    results = Results(tmp_path / "results.jsonl")
    results.add("a", {})
    before = results.path.read_text()
    with pytest.raises(RuntimeError), results.changed() as cells:
        del cells["a"]
        raise RuntimeError
    assert results.path.read_text() == before
    results.add("b", {})  # the lock is not held any more


@pytest.mark.parametrize("line", ["{", "{}", "3"])
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "results.jsonl"
    path.write_text(f'{{"name": "a"}}\n{line}\n')
    with pytest.raises(ConfedError, match=r"results\.jsonl, line 2: not a finished cell .* restore the line"):
        Results(path).read()
