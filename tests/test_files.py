import os
from pathlib import Path
from typing import Any

import pytest

from confed import files
from confed.files import keep_folder, temporary_folder, written_beside


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
    dead, own, other = (tmp_path / f".a[b].txt.{pid}-01234567.part" for pid in (2**22 + 1, os.getpid(), 2**22 + 2))
    stranger = tmp_path / ".c.txt.4194305-01234567.part"
    for draft in (dead, own, other, stranger):
        draft.write_text("torn")
    with written_beside(tmp_path / "a[b].txt") as draft:
        draft.write_text("one")
    assert {path.name for path in tmp_path.iterdir()} == {"a[b].txt", own.name, stranger.name}


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
    names = [f"confed-run-{pid}-abcdefgh" for pid in (2**22 + 1, os.getpid())]
    gone, own, kept, strange = (tmp_path / name for name in (*names, "confed-run-4194306-abcdefgh", "confed-run-x-y"))
    for folder in (gone, own, kept, strange):
        (folder / "run").mkdir(parents=True)
    keep_folder(kept)
    assert temporary_folder() == tmp_path / f"confed-run-{os.getpid()}-fresh"
    assert {path.name for path in tmp_path.iterdir()} == {own.name, kept.name, strange.name}
