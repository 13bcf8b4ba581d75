"""Data is what it holds, not what it is called."""

from dataclasses import replace

import polars as pl
import pytest

from confed.data.catalogue import DOMAINS, REGISTRY, Copy, DatasetEntry, DomainFile, DomainsEntry
from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.recognition import as_catalogued, identified, recognised
from confed.data.registry import load
from confed.data.shelf import domains_at_hand, find_local
from tests.realdata import require

ROWS = [("1", "x", 5.0), ("1", "y", 4.0), ("2", "y", 3.0), ("2", "x", 5.0), ("3", "z", 1.0)]
NUMBERED = pl.DataFrame(ROWS, schema=["user", "item", "rating"], orient="row").with_columns(
    timestamp=pl.int_range(1, pl.len() + 1).over("user")
)
"""Stamps that count a user's rows: time or none, as the catalogue says. The last user has too few."""


@pytest.fixture
def made_up(monkeypatch):
    """An entry without time whose filter leaves two of three users, and whose first copy nobody has hashed."""
    held = Interactions.of(NUMBERED[:4], time="none")
    entry = DatasetEntry(
        name="made-up",
        title="Made up",
        copies=(Copy("made-up/a.csv", "real"), Copy("made-up/b.csv", "none", held.content_hash)),
        users=2,
        items=2,
        interactions=4,
        min_interactions=2,
        pseudo_time="item-order",
        terms="",
        citation="",
    )
    monkeypatch.setitem(REGISTRY, "made-up", entry)
    return entry


@pytest.fixture
def pair(monkeypatch):
    """Two domains; ratings below 4 go, then users with fewer than two rows in each."""
    held = Domains.of({"a": NUMBERED, "b": NUMBERED}, time="none").positive(4).core(1, 1)
    files = {name: DomainFile((), 2, 2, 3, held[name].content_hash) for name in held.names}
    entry = DomainsEntry("pair", "Pair", files, terms="", citation="", min_rating=4, core=(1, 1))
    monkeypatch.setitem(DOMAINS, "pair", entry)
    return entry


@pytest.mark.parametrize("rows", [NUMBERED, NUMBERED[:4], NUMBERED.drop("timestamp")])
def test_before_and_after_the_filter_with_and_without_time(made_up, rows):
    data = Interactions.of(rows)
    assert recognised(data) == "made-up"
    found = as_catalogued(data, "made-up")
    assert (found.users, found.time, found.pseudo_time) == (["1", "2"], "none", "item-order")
    assert found.content_hash == made_up.copies[1].content_hash


@pytest.mark.parametrize(
    ("column", "values"),
    [("item", list("xyyzz")), ("rating", [5.0, 4.0, 3.0, 4.0, 1.0]), ("user", ["1", "1", "1", "2", "3"])],
)
def test_a_changed_row_is_not_recognised(made_up, column, values):
    assert recognised(Interactions.of(NUMBERED.with_columns(pl.Series(column, values)))) is None


def test_rows_that_the_filter_drops_do_not_matter(made_up):
    other = NUMBERED.with_columns(item=pl.Series(["x", "y", "y", "x", "another"]))
    assert recognised(Interactions.of(other)) == "made-up"


def test_what_is_not_recognised_stays_as_it_is(made_up):
    """Such as data that the registry loaded from a copy which nobody has hashed."""
    other = Interactions.of(NUMBERED[:3])
    assert as_catalogued(other, "made-up") is other
    assert as_catalogued(other, None) is other
    assert identified("made-up", other) == "made-up"
    assert identified("made-up.csv", other) is None


def test_several_domains(pair):
    data = Domains.of({"a": NUMBERED, "b": NUMBERED})
    assert recognised(data) == "pair"
    assert [len(part) for part in as_catalogued(data, "pair").parts.values()] == [3, 3]
    assert recognised(replace(data, parts={"b": data["b"], "a": data["a"]})) is None, "the order counts"
    assert recognised(Domains.of({"a": NUMBERED, "c": NUMBERED})) is None
    changed = NUMBERED.with_columns(rating=pl.Series([5.0, 4.0, 5.0, 5.0, 1.0]))
    assert recognised(Domains.of({"a": NUMBERED, "b": changed})) is None
    low = NUMBERED.with_columns(rating=pl.lit(1.0))
    assert recognised(Domains.of({"a": low, "b": low})) is None, "the filter leaves nothing"


@pytest.mark.parametrize("name", sorted(REGISTRY.keys() - {"qb-article"}))
def test_every_dataset_is_recognised_by_its_file(name):
    by_path = load(find_local(require(name)))
    by_name = load(name)
    assert identified("a file", by_path) == name
    found = as_catalogued(by_path, name)
    assert (found.content_hash, found.pseudo_time) == (by_name.content_hash, by_name.pseudo_time)
    assert (found.time == "none") == (by_name.time == "none")


@pytest.mark.parametrize("name", sorted(DOMAINS))
def test_every_dataset_of_several_domains_is_recognised_by_its_files(name):
    files = domains_at_hand(require(name))
    by_path = load({domain: files[domain] for domain in DOMAINS[name].domains})
    assert recognised(by_path) == name
    assert as_catalogued(by_path, name).content_hash == load(name).content_hash
