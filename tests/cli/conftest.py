"""The command line, called as a user would, in an empty folder."""

import json
import sys

import pytest

from confed.cli.main import main


@pytest.fixture
def confed(tmp_path, monkeypatch, capsys):
    """Call the command line in an empty folder; (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["confed", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
            sys.exit(0)
        shown = capsys.readouterr()
        return exit_.value.code or 0, shown.out, shown.err

    return call


@pytest.fixture
def result(confed):
    """Call with --json; the object that was printed."""

    def call(*arguments):
        code, out, err = confed(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return call


@pytest.fixture
def failure(confed):
    """Call and expect exit code 2; the message."""

    def call(*arguments):
        code, out, err = confed(*arguments)
        assert (code, out) == (2, ""), err
        return " ".join(err.split()).removeprefix("loading… ")

    return call
