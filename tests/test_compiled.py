import os
import subprocess
import sys

import numpy as np

from confed.compiled import compiled


@compiled
def _total(values):
    total = 0.0
    for value in values:
        total += value
    return total


def test_a_compiled_loop_sums_and_respects_infinities():
    assert _total(np.arange(10.0)) == 45.0
    assert np.isnan(_total(np.array([np.inf, -np.inf])))
    assert np.isinf(_total(np.array([1.0, np.inf])))


def test_a_change_of_what_is_imported_is_noticed(tmp_path):
    """numba by itself looks at the caller's file only, and would go on with the old code."""
    below = "from confed.compiled import compiled\n\n@compiled\ndef number():\n    return {}\n"
    above = (
        "from confed.compiled import compiled\nfrom below import number\n\n"
        "@compiled\ndef asked():\n    return _through()\n\n@compiled\ndef _through():\n    return number()\n\n"
        "print(asked())\n"
    )
    (tmp_path / "above.py").write_text(above)
    said = []
    for value in (1, 1, 222):
        (tmp_path / "below.py").write_text(below.format(value))
        run = subprocess.run([sys.executable, "above.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
        said.append(run.stdout.strip())
    assert said == ["1", "1", "222"]
    assert list((tmp_path / "__pycache__").glob("above.asked*.nbc"))


def test_code_that_was_kept_gives_what_it_gave_when_it_was_compiled(tmp_path):
    """To the last bit, of a loop whose parts lie in several files."""
    script = """
import confed
run = confed.run("cofedrec", "synthetic:users=30,items=50,interactions_per_user=10", rounds=3,
                 options={"dim": 4, "batch_size": 32})
print([line["loss"].hex() for line in run.lines])
"""
    said = []
    for _ in range(2):
        command, env = [sys.executable, "-c", script], {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
        run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
        said.append(run.stdout)
    assert said[0] == said[1] and "0x1." in said[0]
    assert list((tmp_path / "kept").rglob("*.nbc"))
