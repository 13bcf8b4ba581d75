import os
from pathlib import Path
from typing import Any

import pytest

from confed import files
from confed.errors import UnwritableError
from confed.files import keep_folder, temporary_folder, written_beside

GONE = 2**22 + 1
"""No process has this number."""


def test_written_beside_replaces_or_leaves_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.txt"
    with written_beside(path) as draft:
        draft.write_text("one")
        assert not path.exists()
    assert path.read_text() == "one"
    with pytest.raises(RuntimeError), written_beside(path) as draft:
        draft.write_text("half")
        raise RuntimeError
    assert path.read_text() == "one"
    assert list(path.parent.iterdir()) == [path]


def test_drafts_of_processes_that_are_gone_are_swept_away(tmp_path: Path) -> None:
    here = files._here()
    dead, own, other = (tmp_path / f".a[b].txt.{here}-{pid}-01234567.part" for pid in (GONE, os.getpid(), GONE + 1))
    stranger = tmp_path / f".c.txt.{here}-{GONE}-01234567.part"
    far = tmp_path / f".a[b].txt.{here}x-{GONE}-01234567.part"
    for draft in (dead, own, other, stranger, far):
        draft.write_text("torn")
    with written_beside(tmp_path / "a[b].txt") as draft:
        draft.write_text("one")
    assert {path.name for path in tmp_path.iterdir()} == {"a[b].txt", own.name, stranger.name, far.name}


def test_what_cannot_be_written_is_said_with_a_remedy(tmp_path: Path) -> None:
    """Whatever says so: the system, or a library in its own words."""
    (tmp_path / "file").touch()
    told = r"file/a: cannot be written \(File exists\); its folder is not there"
    with pytest.raises(UnwritableError, match=told), written_beside(tmp_path / "file" / "a"):
        pass
    told = r"b: cannot be written \(No space left on device\); make room for it"
    with pytest.raises(UnwritableError, match=told), written_beside(tmp_path / "b"):
        raise RuntimeError("failed: No space left on device (os error 28)")


def test_content_and_names_are_on_the_disk_before_anybody_is_told(tmp_path: Path, monkeypatch: Any) -> None:
    """In this order: the folder's own name, the content, the name."""
    done = []
    monkeypatch.setattr(files, "sync", lambda path: done.append(("sync", path.name.partition(".")[0] or "draft")))
    monkeypatch.setattr(files.os, "replace", lambda draft, path: done.append(("rename", path.name)))
    with written_beside(tmp_path / "deep" / "a.txt") as draft:
        draft.write_text("one")
    assert done == [("sync", tmp_path.name), ("sync", "draft"), ("rename", "a.txt"), ("sync", "deep")]


def test_temporary_folders_of_processes_that_are_gone_are_removed(tmp_path: Path, monkeypatch: Any) -> None:
    """But for those that somebody wants to go on with."""
    monkeypatch.setattr(files, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(files, "mkdtemp", lambda prefix: str(tmp_path / f"{prefix}fresh"))
    here = f"confed-run-{files._here()}"
    names = [f"{here}-{who}-abcdefgh" for who in (GONE, os.getpid(), GONE + 1, "x", "9" * 30)]
    names += [f"confed-run-elsewhere-{GONE}-abcdefgh"]
    gone, own, kept, *strange = (tmp_path / name for name in names)
    for folder in (gone, own, kept, *strange):
        (folder / "run").mkdir(parents=True)
    keep_folder(kept)
    assert temporary_folder() == tmp_path / f"{here}-{os.getpid()}-fresh"
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in (own, kept, *strange)}
