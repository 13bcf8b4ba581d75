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
