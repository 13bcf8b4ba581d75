"""Bytes and text of files: only regular ones, only so much, only in encodings of text."""

from __future__ import annotations

import gzip
import os
import socket
from pathlib import Path

import pytest

from confed.data.contents import content, decoded, exists, first_line, own_path, require_file
from confed.data.readers import read
from confed.errors import ConfedError

CSV = b"user,item\n1,2\n"


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """A pipe would wait for somebody to write, a device never ends."""
    os.mkfifo(tmp_path / "pipe.csv")
    plug = socket.socket(socket.AF_UNIX)
    plug.bind(str(tmp_path / "plug.csv"))
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "gone.csv").symlink_to("nowhere")
    for name, message in {
        "pipe.csv": "is a pipe",
        "plug.csv": "is a socket",
        "folder.csv": "is a folder",
        "zero.csv": "is a device",
        "gone.csv": ": no such file",
    }.items():
        for format_name in (None, "csv", "parquet", "excel", "jsonl"):
            with pytest.raises(ConfedError, match=rf"{name} ?{message}"):
                read(tmp_path / name, format_name)
    plug.close()


def test_a_link_to_a_file_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(CSV)
    (tmp_path / "b.csv").symlink_to("a.csv")
    assert read(tmp_path / "b.csv").frame.rows() == [("1", "2", 1.0)]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx", ".jsonl", ""])
@pytest.mark.parametrize(
    ("stem", "message"),
    [
        ("a\0b", r"'a\\x00b.*' cannot be the name of a file"),
        ("\ud800", r"'\\ud800.*' cannot be the name of a file"),
        ("x" * 300, "x{80}…: cannot be read .*name too long"),
        ("x/" * 5000, "(x/)+…: cannot be read .*name too long"),
        ("~nobody-has-this-name/a", "no such file"),
    ],
)
def test_names_that_no_file_can_have(stem: str, message: str, suffix: str) -> None:
    with pytest.raises(ConfedError, match=message):
        read(stem + suffix)
    assert not exists(own_path(stem + suffix))


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(CSV + bytes(5_000_000)))
    assert len(content(path)) == 5_000_000 + len(CSV)
    monkeypatch.setenv("CONFED_MAX_BYTES", "1000000")
    with pytest.raises(ConfedError, match=r"bomb\.csv\.gz holds more than 1 MB .*set CONFED_MAX_BYTES to more"):
        read(path)
    large = tmp_path / "large.csv"
    large.write_bytes(CSV * 100_000)
    with pytest.raises(ConfedError, match=r"large\.csv has 1\.4 MB, the limit is 1 MB"):
        read(large)


@pytest.mark.parametrize(
    "encoding",
    [
        "undefined",
        "punycode",
        "idna",
        "hex",
        "rot13",
        "base64",
        "zlib",
        "nul\0",
        "",
        "x" * 10_000,
        "\ud800",
        "latin-7000",
    ],
)
def test_what_is_no_encoding_of_text(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(CSV)
    with pytest.raises(ConfedError, match=r"a\.csv: unknown text encoding .{2,100}; usual ones are utf-8"):
        read(path, encoding=encoding)


@pytest.mark.parametrize(
    ("data", "encoding"), [(b"user,item\n1,2\n+2AA-,2\n", "utf-7"), (b"user,item\n1,2\n\\udfff,2\n", "unicode_escape")]
)
def test_half_a_character_is_refused_with_its_line(tmp_path: Path, data: bytes, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    with pytest.raises(ConfedError, match=r"a\.csv, line 3: half a character \(the lone surrogate U\+D"):
        read(path, encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "utf8", "UTF_8", "utf-8-sig", "utf-16-le"])
def test_a_mark_of_the_encoding_is_no_part_of_an_id(encoding: str) -> None:
    text = "\ufeff7,8\n".encode("utf-16-le" if encoding == "utf-16-le" else "utf-8")
    assert decoded(Path("a.csv"), text, encoding) == "7,8\n"


def test_the_first_line_is_the_first_that_says_something() -> None:
    assert first_line("\n \t\r\n  a b\r\nc") == "  a b"
    assert first_line(" " * 100_000) == ""


def test_the_size_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(CSV)
    assert require_file(tmp_path / "a") == len(CSV)
