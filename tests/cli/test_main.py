import subprocess
import sys

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
