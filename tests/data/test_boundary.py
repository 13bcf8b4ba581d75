"""What libraries raise is an error of ours; what is a bug of ours keeps its traceback."""

from __future__ import annotations

import csv
import zlib

import polars as pl
import pytest

from confed.data.boundary import in_our_words
from confed.errors import ConfedError


class PanicException(BaseException):
    """Not an Exception, and of no class that one could import."""


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (pl.exceptions.ComputeError("odd\nmore"), "odd"),
        (csv.Error("odd"), "odd"),
        (zlib.error("odd"), "odd"),
        (OSError(5, "Input/output error"), "Input/output error"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "odd"), "can't decode"),
        (OverflowError("odd"), "odd"),
        (RecursionError(), "RecursionError"),
        (PanicException("odd"), "odd"),
    ],
)
def test_the_source_the_reason_and_the_remedy(error: BaseException, reason: str) -> None:
    message = rf"^a\.csv: not a readable file \(.*{reason}.*\); mend it$"
    with pytest.raises(ConfedError, match=message), in_our_words("a.csv", "file", "mend it"):
        raise error


def test_too_little_memory() -> None:
    message = r"^a\.csv: there is not enough memory"
    with pytest.raises(ConfedError, match=message), in_our_words("a.csv", "file", "mend it"):
        raise MemoryError


@pytest.mark.parametrize("error", [TypeError("x"), KeyError("x"), KeyboardInterrupt(), ConfedError("as it was")])
def test_other_errors_pass(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, in_our_words("a.csv", "file", "mend it"):
        raise error
    assert caught.value is error
