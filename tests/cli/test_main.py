import json
import os
import subprocess
import sys

import pytest

import confed


def run(*arguments):
    command = [sys.executable, "-m", "confed.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_help_names_every_command():
    shown = run("--help").stdout
    assert all(name in shown for name in ("run", "compare", "recommend", "methods", "data", "doctor"))


def test_version():
    assert run("--version").stdout.strip() == confed.__version__


def test_no_arguments_show_help():
    assert "Usage" in run().stdout + run().stderr


SLOW = ["torch", "numpy", "scipy", "sklearn", "pandas", "polars", "pyarrow", "plotly", "numba", "implicit", "ray"]
SLOW += ["pydantic", "safetensors", "jinja2"]
"""What takes its time to load, and what only training, reading and drawing need."""
LOADED = """
import json, sys
sys.argv = ["confed", *json.loads(sys.argv[1])]
from confed.cli.main import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.mark.parametrize(
    "line",
    [
        "--help",
        "--version",
        "run --help",
        "recommend --help",
        "methods",
        "methods --json",
        "data list",
        "rnu",
        "run pfedrce ml-100k",
        "run pfedrec ml-100",
        "compare pfedrec esae --dataset ml-100k",
        "methods show pfedrce",
    ],
)
def test_quick_answers_load_nothing_slow(line, tmp_path):
    """Whatever needs no numbers is answered in the time that Python and typer take."""
    command = [sys.executable, "-c", LOADED, json.dumps(line.split())]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=tmp_path)
    loaded = json.loads(shown.stdout.splitlines()[-1])
    assert [name for name in SLOW if name in loaded] == []


def test_tab_loads_nothing_slow():
    asked = {"_CONFED_COMPLETE": "complete_bash", "COMP_WORDS": "confed run pfedrec ml", "COMP_CWORD": "3"}
    shown = subprocess.run(
        [sys.executable, "-c", LOADED, "[]"], capture_output=True, text=True, check=True, env={**os.environ, **asked}
    )
    loaded = json.loads(shown.stdout.splitlines()[-1])
    assert "ml-100k" in shown.stdout
    assert [name for name in SLOW if name in loaded] == []


def test_a_typo_is_answered_with_what_was_meant():
    assert "Did you mean 'run'" in run("rnu").stderr
    assert "did you mean pfedrec" in run("run", "pfedrce", "ml-100k").stderr
    assert "did you mean ml-100k" in run("run", "pfedrec", "ml-100").stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run pfedrce ml-100k", "unknown method 'pfedrce': did you mean pfedrec"),
        ("run pfedrec ml-100k --rouns 3", "No such option '--rouns'"),
        ("compare pfedrec", "Missing option '--dataset'."),
        ("run pfedrec ml-100k --seeds 0", "Invalid value for '--seeds': 0 is not in the range x>=1."),
    ],
)
def test_with_json_a_mistake_is_an_object_too(line, message):
    shown = run(*line.split(), "--json")
    told = json.loads(shown.stdout)
    assert told["error"].startswith(message) and told["exit_code"] == shown.returncode == 2
    assert message.partition(" ")[0] in shown.stderr and "Traceback" not in shown.stderr
    assert run(*line.split()).stdout == "", "and else nothing is on standard output"


def test_a_run_says_at_once_that_it_is_loading():
    said = run("run", "pfedrec", "synthetic:users=nobody").stderr
    assert said.startswith("loading…") and "nobody is not a whole number" in said
