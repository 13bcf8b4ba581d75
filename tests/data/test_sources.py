from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from confed.data import sources
from confed.data.sources import Download, Progress, Remote, Wheel, delivery
from confed.errors import ConfedError
from confed.locks import LOCK_FILES

CSV = b"user,item\n1,2\n"


def zipped(members: dict[str, bytes], packed: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packed) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


ARCHIVE = zipped({"set/titles.csv": b"item,title\n2,Two\n", "set/ratings.csv": CSV, "set/other": b"x" * 10})
MEMBERS = {"set/titles.csv": "made-up/titles.csv", "set/ratings.csv": "made-up/ratings.csv"}
PAGES = {"/set.zip": ARCHIVE, "/plain.csv": CSV, "/page.zip": b"<html>please log in</html>"}


class Handler(BaseHTTPRequestHandler):
    """Serves PAGES; /cut breaks off in the middle of the archive, /endless does not say how long it is."""

    def do_GET(self) -> None:
        body = PAGES.get(self.path)
        if self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):  # who has enough hangs up
                for _ in range(100):
                    self.wfile.write(bytes(1_000_000))
            return
        if self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", str(len(ARCHIVE)))
            self.end_headers()
            self.wfile.write(ARCHIVE[:100])
            return
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setenv("CONFED_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("CONFED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "own", tmp_path / "cache"


def find(name: str, files: list[str], remotes: Sequence[Remote] = (), **options: Any) -> tuple[str, Path]:
    """Without anybody who would look at it: what arrives is kept."""
    with delivery() as fetched:
        file, _ = fetched.find(name, files, remotes, **options)
        fetched.keep()
    found = sources.at_hand([file])
    assert found is not None
    return found


def fetch(remote: Remote, progress: Progress | None = None) -> str:
    wanted = list(remote.members.values())[-1]
    return find("made-up", [wanted], [remote], progress=progress, notice=lambda _: None)[0]


def files_below(folder: Path) -> set[str]:
    """But for what a lock leaves."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name not in LOCK_FILES)
    return {str(path.relative_to(folder)) for path in found}


def put(folder: Path, file: str) -> Path:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(CSV)
    return path


def test_folders_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert sources.cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("CONFED_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert sources.cache_dir() == tmp_path / "xdg" / "confed"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sources.cache_dir() == tmp_path / ".cache" / "confed"
    monkeypatch.setenv("CONFED_DATA", "~/mine")
    assert sources.data_dir() == tmp_path / "mine"
    monkeypatch.delenv("CONFED_DATA")
    assert sources.data_dir() is None


def test_the_users_folder_goes_before_the_cache(folders: tuple[Path, Path]) -> None:
    own, cache = folders
    cached = put(cache, "set/a.csv")
    assert find("set", ["set/a.csv", "set/b.csv"]) == ("set/a.csv", cached)
    mine = put(own, "set/b.csv")
    assert find("set", ["set/a.csv", "set/b.csv"]) == ("set/b.csv", mine)


def test_an_archive_is_checked_unpacked_and_announced(server: str, folders: tuple[Path, Path]) -> None:
    remote = Download(f"{server}/set.zip", MEMBERS, hashlib.sha256(ARCHIVE).hexdigest())
    notices: list[str] = []
    steps: list[tuple[str, int, int | None]] = []
    found = find(
        "made-up",
        ["made-up/ratings.csv"],
        [remote],
        terms="be kind",
        progress=lambda *step: steps.append(step),
        notice=notices.append,
    )
    assert found == ("made-up/ratings.csv", folders[1] / "made-up/ratings.csv")
    assert found[1].read_bytes() == CSV
    assert files_below(folders[1]) == set(MEMBERS.values())
    assert steps[-1] == (remote.url, len(ARCHIVE), len(ARCHIVE))
    assert len(notices) == 1
    assert "be kind" in notices[0]
    assert find("made-up", ["made-up/ratings.csv"], [remote], notice=notices.append) == found
    assert len(notices) == 1


def test_a_plain_file_needs_no_archive(server: str, folders: tuple[Path, Path]) -> None:
    assert fetch(Download(f"{server}/plain.csv", {"": "made-up/plain.csv"})) == "made-up/plain.csv"
    assert (folders[1] / "made-up/plain.csv").read_bytes() == CSV


def test_terms_go_to_standard_error(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    find("set", ["set/p.csv"], [Download(f"{server}/plain.csv", {"": "set/p.csv"})], terms="be kind")
    printed = capsys.readouterr()
    assert "be kind" in printed.err
    assert printed.out == ""


def test_changed_content_is_refused_and_not_kept(server: str, folders: tuple[Path, Path]) -> None:
    found = hashlib.sha256(ARCHIVE).hexdigest()
    with pytest.raises(ConfedError) as caught:
        find("made-up", ["made-up/ratings.csv"], [Download(f"{server}/set.zip", MEMBERS, "0" * 64)])
    for part in ("set.zip", "0" * 64, found, "CONFED_DATA"):
        assert part in str(caught.value)
    assert not files_below(folders[1])


def test_every_attempt_is_reported(server: str, folders: tuple[Path, Path]) -> None:
    own, cache = folders
    remotes = [
        Download(f"{server}/nowhere.zip", MEMBERS),
        Download(f"{server}/cut", MEMBERS),
        Download(f"{server}/page.zip", MEMBERS),
        Download(f"{server}/set.zip", {"set/gone.csv": "made-up/gone.csv"}),
        Download("http://127.0.0.1:9/closed.zip", MEMBERS),
    ]
    with pytest.raises(ConfedError) as caught:
        find("made-up", ["made-up/ratings.csv", "made-up/r.dat"], remotes)
    message = str(caught.value)
    for part in (
        f"CONFED_DATA ({own}): no made-up/ratings.csv or made-up/r.dat",
        f"cache ({cache}): no made-up/ratings.csv",
        "nowhere.zip: HTTP Error 404",
        f"/cut: the connection broke after 100 of {len(ARCHIVE)} bytes",
        "page.zip: File is not a zip file",
        "the archive has no set/gone.csv",
        "closed.zip: <urlopen error",
        f"put the file at {own}/made-up/ratings.csv or {own}/made-up/r.dat",
    ):
        assert part in message
    assert not files_below(cache)


def test_without_a_folder_of_ones_own_it_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONFED_DATA")
    with pytest.raises(ConfedError) as caught:
        find("made-up", ["made-up/r.dat"], terms="be kind")
    assert "Terms of the data: be kind" in str(caught.value)
    assert "CONFED_DATA: not set" in str(caught.value)
    assert "put the file at $CONFED_DATA/made-up/r.dat and set CONFED_DATA" in str(caught.value)


def test_the_next_remote_is_tried(server: str) -> None:
    remotes = [Download(f"{server}/nowhere", MEMBERS), Download(f"{server}/set.zip", MEMBERS)]
    file, path = find("made-up", ["made-up/ratings.csv"], remotes, notice=lambda _: None)
    assert (file, path.read_bytes()) == ("made-up/ratings.csv", CSV)


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wheel:
    """A wheel that pip finds without any network."""
    about = b"Metadata-Version: 2.1\nName: confed-made-up\nVersion: 1.0\n"
    tags = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    info = "confed_made_up-1.0.dist-info"
    content = zipped({"made_up/r.csv": CSV, f"{info}/METADATA": about, f"{info}/WHEEL": tags, f"{info}/RECORD": b""})
    links = tmp_path / "links"
    links.mkdir()
    (links / "confed_made_up-1.0-py3-none-any.whl").write_bytes(content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    return Wheel("confed-made-up==1.0", hashlib.sha256(content).hexdigest(), {"made_up/r.csv": "made-up/r.csv"})


def test_a_wheel_brings_its_file(wheel: Wheel, folders: tuple[Path, Path]) -> None:
    steps: list[tuple[str, int, int | None]] = []
    assert fetch(wheel, lambda *step: steps.append(step)) == "made-up/r.csv"
    assert files_below(folders[1]) == {"made-up/r.csv"}
    assert steps == [("the PyPI wheel confed-made-up==1.0", 0, None)]


def test_another_wheel_is_refused(wheel: Wheel, folders: tuple[Path, Path]) -> None:
    with pytest.raises(ConfedError, match=r"confed-made-up==1\.0: the file has SHA-256 .* expected 111"):
        find("made-up", ["made-up/r.csv"], [Wheel(wheel.requirement, "1" * 64, wheel.members)])
    assert not files_below(folders[1])


def test_pip_that_finds_nothing_is_reported(wheel: Wheel) -> None:
    with pytest.raises(ConfedError, match=r"the PyPI wheel confed-made-up==2\.0: .*No matching distribution"):
        find("made-up", ["made-up/r.csv"], [Wheel("confed-made-up==2.0", wheel.sha256, wheel.members)])


# --- nothing that nobody looked at --------------------------------------------------------------------------------


def test_what_nobody_keeps_is_gone(server: str, folders: tuple[Path, Path]) -> None:
    remote = Download(f"{server}/set.zip", MEMBERS)
    with pytest.raises(ConfedError, match="not what it should be"), delivery() as fetched:
        file, path = fetched.find("made-up", ["made-up/ratings.csv"], [remote], notice=lambda _: None)
        assert path.read_bytes() == CSV and sources.is_being_fetched(path)
        assert sources.at_hand([file]) is None, "nobody else finds it"
        raise ConfedError("not what it should be")
    assert not files_below(folders[1])


def test_some_of_it_may_be_kept(server: str, folders: tuple[Path, Path]) -> None:
    with delivery() as fetched:
        fetched.find("made-up", ["made-up/titles.csv"], [Download(f"{server}/set.zip", MEMBERS)], notice=lambda _: None)
        fetched.keep(["made-up/titles.csv"])
    assert files_below(folders[1]) == {"made-up/titles.csv"}


def test_what_a_killed_download_left_is_swept_away(server: str, folders: tuple[Path, Path]) -> None:
    cache = folders[1]
    put(cache / ".fetching", "made-up/older.csv")
    kept = put(cache, "made-up/others.csv")
    fetch(Download(f"{server}/set.zip", MEMBERS))
    assert kept.exists() and not (cache / ".fetching").exists()


def test_where_nothing_is_fetched_nothing_is_locked(folders: tuple[Path, Path]) -> None:
    """A cache that cannot be written is no trouble for data that nobody can download."""
    folders[1].write_text("no folder")
    put(folders[0], "made-up/ratings.csv")
    assert find("made-up", ["made-up/ratings.csv"], [Download("http://127.0.0.1:9/", MEMBERS)])
    with pytest.raises(ConfedError, match="dataset made-up was not found"):
        find("made-up", ["made-up/other.csv"])
    with pytest.raises(ConfedError, match=r"cannot be written .* set CONFED_CACHE"):
        find("made-up", ["made-up/other.csv"], [Download("http://127.0.0.1:9/", MEMBERS)])


def test_one_fetches_at_a_time(server: str, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("confed.data.sources._PIP_TIMEOUT", 0.1)
    said: list[str] = []
    wanted = ("made-up", ["made-up/ratings.csv"], [Download(f"{server}/set.zip", MEMBERS)])
    with delivery() as first, delivery(said.append) as second:
        first.find(*wanted, notice=said.append)
        with pytest.raises(ConfedError, match="the cache is in use by process"):
            second.find(*wanted)
        first.keep()
        assert second.find(*wanted), "what somebody else has fetched need not be fetched"
    assert said[0].startswith("made-up: downloaded") and said[1].endswith("waiting for it") and len(said) == 2


def test_a_download_has_a_limit(server: str, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zipped({"set/ratings.csv": bytes(3_000_000)}, zipfile.ZIP_DEFLATED)
    monkeypatch.setitem(PAGES, "/bomb.zip", bomb)
    monkeypatch.setenv("CONFED_MAX_BYTES", "1000000")
    for page, message in {
        "/bomb.zip": r"bomb\.zip \(set/ratings\.csv\): has more than 1 MB, .*set CONFED_MAX_BYTES to more",
        "/endless": r"endless: has more than 1 MB",
    }.items():
        with pytest.raises(ConfedError, match=message):
            fetch(Download(f"{server}{page}", {"set/ratings.csv": "made-up/ratings.csv"}))
    assert not files_below(folders[1])


def test_a_damaged_archive_is_reported(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = bytearray(zipped({"set/ratings.csv": CSV * 100}, zipfile.ZIP_DEFLATED))
    damaged[50] ^= 0xFF
    monkeypatch.setitem(PAGES, "/damaged.zip", bytes(damaged))
    with pytest.raises(ConfedError, match=r"damaged\.zip: "):
        fetch(Download(f"{server}/damaged.zip", {"set/ratings.csv": "made-up/ratings.csv"}))


def test_an_archive_without_the_file_is_reported(server: str) -> None:
    remote = Download(f"{server}/set.zip", MEMBERS)
    with pytest.raises(ConfedError, match=r"set\.zip: has no made-up/other\.csv"):
        find("made-up", ["made-up/other.csv"], [remote], notice=lambda _: None)
