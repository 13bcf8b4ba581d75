import errno
import os
import subprocess
import sys

import pytest

from confed.errors import ConfedError
from confed.locks import LOCK_FILES, locked

HOLD = """
import sys, time
from pathlib import Path
from confed.locks import locked

with locked(Path(sys.argv[1]), "the run"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "held\n"
    yield child
    child.kill()
    child.wait()


def test_who_comes_second_is_told_who_was_first(holder, tmp_path):
    told = rf"the run is in use by process {holder.pid} on .+ since 20"
    with pytest.raises(ConfedError, match=told), locked(tmp_path, "the run"):
        pass


def test_a_lock_ends_with_its_process(holder, tmp_path):
    holder.kill()
    holder.wait()
    with locked(tmp_path, "the run"):
        pass


def test_who_waits_gets_it(holder, tmp_path):
    """And hears of whom it waits for."""
    said = []

    def end(text):
        said.append(text)
        holder.kill()

    with locked(tmp_path, "the cache", wait=60, waiting=end):
        assert len(said) == 1
    assert f"the cache is in use by process {holder.pid} on " in said[0] and said[0].endswith(": waiting for it")


def test_nothing_is_left_that_says_who(tmp_path):
    with locked(tmp_path, "the run"):
        assert str(os.getpid()) in (tmp_path / ".lock-holder.json").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {".lock"} < LOCK_FILES


def test_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    no_folder = r"cannot be written .* its folder is not there"
    with pytest.raises(ConfedError, match=no_folder), locked(tmp_path / "file", "the run"):
        pass


@pytest.mark.parametrize(
    ("number", "remedy", "said"),
    [(errno.ENOSPC, "", "No space left on device.*make room"), (errno.EACCES, "go elsewhere", "denied.*go elsewhere")],
)
def test_what_keeps_it_from_being_taken_is_said_with_a_remedy(number, remedy, said, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    with pytest.raises(ConfedError, match=said), locked(tmp_path, "the run", remedy=remedy):
        pass
