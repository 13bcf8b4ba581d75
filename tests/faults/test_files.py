"""A part of the malformed files, and that the generator is what it promises to be."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.faults import files
from tests.faults.files import Case, cases, cases_of, groups, outcome

SEED, EACH = 7, 20


@pytest.mark.parametrize(("reader", "column"), groups())
def test_a_malformed_file_is_read_as_it_is_or_refused_with_its_name(reader: str, column: str, tmp_path: Path) -> None:
    found = [(case, outcome(case, tmp_path)) for case in cases_of(SEED, reader, column, EACH)]
    assert not [(case.name, case.options, told.how) for case, told in found if not told.held]


def test_cases_are_the_same_from_the_same_seed() -> None:
    first, again, other = (
        [case.digest for case in itertools.islice(cases(seed, each=3), 60)] for seed in (SEED, SEED, SEED + 1)
    )
    assert first == again != other


@pytest.mark.parametrize(("reader", "column"), [("csv", "rating"), ("parquet", "user"), ("gz", files.WHOLE)])
def test_cases_are_many_and_all_different(reader: str, column: str) -> None:
    made = list(cases_of(SEED, reader, column))
    assert len({case.digest for case in made}) == len({case.name for case in made}) == 200


def test_every_reader_and_column_has_its_cases() -> None:
    assert {(case.reader, case.column) for case in cases(SEED, each=1)} == set(groups())
    assert {"csv", "tsv", "jsonl", "excel", "parquet", "gz", "movielens", "recbole", "lastfm", "tenrec"} <= set(
        files.READERS
    )


# --- the judge sees what is broken ------------------------------------------------------------------------------

GOOD = b"user,item,rating,timestamp\n" + b"".join(b"u%d,i%d,1,%d\n" % (row, row, row) for row in range(files.ROWS))
ITEMS = frozenset(f"i{row}" for row in range(files.ROWS))


def made(data: bytes, items: frozenset[str] | None = ITEMS) -> Case:
    return Case("by hand", "csv", "user", "a.csv", data, {}, items)


def test_good_files_are_loaded_and_bad_ones_refused(tmp_path: Path) -> None:
    loaded, refused = outcome(made(GOOD), tmp_path), outcome(made(b"user,item\n"), tmp_path)
    assert (loaded.held, refused.held) == (True, True)
    assert loaded.how.startswith("loaded: Interactions(a") and refused.how.startswith("refused: ")


def test_rows_that_are_lost_are_seen(tmp_path: Path) -> None:
    assert outcome(made(GOOD.removesuffix(b"u7,i7,1,7\n")), tmp_path).how == "8 rows became 7"
    assert outcome(made(GOOD.replace(b"i7", b"j7")), tmp_path).how == "items that are gone: ['i7']"


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("x"), type("PanicException", (BaseException,), {})("x")])
def test_whatever_else_is_raised_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(files.Interactions, "of", broken)
    told = outcome(made(GOOD), tmp_path)
    assert not told.held and told.how.endswith(f".{type(error).__name__}: {error}")


def test_an_error_must_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object, **__: object) -> None:
        raise files.ConfedError("something is wrong")

    monkeypatch.setattr(files.Interactions, "of", silent)
    assert outcome(made(GOOD), tmp_path).how == "the message does not name a.csv: something is wrong"
