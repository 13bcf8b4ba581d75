"""How much is read at most, and that nothing larger is ever held."""

from __future__ import annotations

from pathlib import Path

import pytest

from confed.data.limits import BYTES, COLUMNS, DEPTH, HEADER, Limit, in_bytes
from confed.errors import ConfedError


class Endless:
    """A file without end that counts what was taken from it."""

    taken = 0

    def read(self, size: int) -> bytes:
        self.taken += size
        return bytes(size)


def test_the_environment_sets_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in (BYTES, COLUMNS, DEPTH, HEADER):
        monkeypatch.delenv(limit.variable, raising=False)
        assert limit.most == limit.usual() > 0
        monkeypatch.setenv(limit.variable, "7")
        assert limit.most == 7
        limit.require(7, "this has")
        with pytest.raises(ConfedError, match=rf"^this has 8.*, the limit is 7.*set {limit.variable} to more"):
            limit.require(8, "this has")


@pytest.mark.parametrize("told", ["0", "-1", "many", "1e9", "9" * 40, "²"])
def test_a_limit_is_a_whole_number(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFED_MAX_COLUMNS", told)
    with pytest.raises(ConfedError, match=r"CONFED_MAX_COLUMNS=.*: give a whole number above 0"):
        COLUMNS.require(1, "this has")


def test_what_never_ends_is_read_no_further_than_the_limit() -> None:
    endless, limit = Endless(), Limit("CONFED_MADE_UP", lambda: 3_000_000, in_bytes)
    with pytest.raises(ConfedError, match=r"^a\.gz holds more than 3 MB once it is unpacked, the limit is 3 MB"):
        limit.read(endless, Path("a.gz"))
    assert endless.taken < 2 * 3_000_000


def test_bytes_are_written_for_people() -> None:
    assert [in_bytes(n) for n in (7, 1500, 2_000_000_000, 10**17)] == ["7 bytes", "1.5 kB", "2 GB", "1e+05 TB"]
