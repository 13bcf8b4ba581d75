"""The line between us and the libraries that read for us: what they raise about a source becomes an error of ours.

Values that are known to be wrong are found before (values.py), with the row and the remedy. This is for the rest.
"""

from __future__ import annotations

import csv
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from confed.errors import ConfedError

# pandas and Arrow know time zones such as +05:30, polars does not; only the moment counts, whatever its zone is called.
os.environ.setdefault("POLARS_IGNORE_TIMEZONE_PARSE_ERROR", "1")

_RAISED = (pl.exceptions.PolarsError, csv.Error, zlib.error, OSError, ValueError, ArithmeticError, RecursionError)
"""Not TypeError, KeyError and the like: these are bugs of ours."""


@contextmanager
def in_our_words(label: str, kind: str, remedy: str) -> Iterator[None]:
    """Errors of libraries from inside say which source is no readable file of its kind, why, and what to do."""
    try:
        yield
    except MemoryError:
        raise ConfedError(f"{label}: there is not enough memory to read it") from None
    except _RAISED as error:
        raise _unreadable(label, kind, error, remedy) from error
    except BaseException as error:
        # Rust's panics are not Exceptions, and every extension module has a class of its own for them.
        if type(error).__name__ != "PanicException":
            raise
        raise _unreadable(label, kind, error, remedy) from None


def _unreadable(label: str, kind: str, error: BaseException, remedy: str) -> ConfedError:
    return ConfedError(f"{label}: not a readable {kind} ({reason(error)}); {remedy}")


def reason(error: BaseException) -> str:
    """The first line of what a library says."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return said.strip().partition("\n")[0][:300] or type(error).__name__
