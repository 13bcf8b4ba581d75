from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.shelf import MANIFEST, is_domain_folder
from confed.errors import ConfedError

Rows = list[tuple[str, str, float]]


def part(rows: Rows) -> Interactions:
    users, items, ratings = zip(*rows, strict=True)
    frame = pl.DataFrame({"user": list(users), "item": list(items), "rating": list(ratings)})
    return Interactions.of(frame, time="none")


def rated(*pairs: str) -> Rows:
    """`1x4` is user 1, item x, rating 4; without a rating it is 5."""
    found = [re.fullmatch(r"(\d+|[a-z])([a-z])(\d*)", one).groups() for one in pairs]  # type: ignore[union-attr]
    return [(user, item, float(rating or 5)) for user, item, rating in found]


def make(**rows: Rows) -> Domains:
    return Domains({domain: part(some) for domain, some in rows.items()}, name="mine")


def rows_of(data: Domains) -> dict[str, Rows]:
    return {domain: one.frame.select("user", "item", "rating").rows() for domain, one in data.parts.items()}


@pytest.fixture
def three() -> Domains:
    return make(
        book=rated("1x5", "1y4", "2x3", "10y5"),
        music=rated("2p5", "2q2", "1p4"),
        movie=rated("1m5", "3m1", "2n4"),
    )


# --- what it is -------------------------------------------------------------------------------------------


def test_the_parts_and_their_order(three: Domains) -> None:
    assert three.names == ("book", "music", "movie")
    assert three.users == ["1", "2", "3", "10"]
    assert (three.n_users, len(three)) == (4, 10)
    assert three["music"].users == ["1", "2"]
    assert [one.name for one in three.parts.values()] == ["book", "music", "movie"]
    with pytest.raises(ConfedError, match="unknown domain 'musik': did you mean music"):
        three["musik"]


def test_repr_is_short(three: Domains) -> None:
    assert repr(make(a=rated("1x"), b=rated("1y", "2y"))) == (
        "Domains(mine: 2 users, 3 interactions; a: 1 items, 1; b: 1 items, 2)"
    )


def test_who_is_known_where(three: Domains) -> None:
    assert three.known_to() == {1: 2, 2: 0, 3: 2}
    assert three.shared() == ["1", "2"]
    facts = three.describe()
    assert facts["shared"] == {"book & music": 2, "book & movie": 2, "music & movie": 2}
    assert (facts["users"], facts["interactions"], facts["known_to"]) == (4, 10, three.known_to())
    assert facts["domains"]["movie"] == three["movie"].describe()
    assert facts["content_hash"] == three.content_hash


def test_the_hash_knows_names_order_and_content(three: Domains) -> None:
    again = Domains(dict(three.parts), name="other")
    assert again.content_hash == three.content_hash
    backwards = Domains(dict(reversed(three.parts.items())))
    renamed = Domains({"tome" if name == "book" else name: one for name, one in three.parts.items()})
    changed = Domains({**three.parts, "book": part(rated("1x5", "1y4", "2x3", "10y4"))})
    assert len({three.content_hash, backwards.content_hash, renamed.content_hash, changed.content_hash}) == 4


rows = st.lists(
    st.tuples(st.integers(0, 12).map(str), st.integers(0, 6).map(str), st.integers(1, 5).map(float)),
    min_size=1,
    max_size=40,
)


@given(st.lists(rows, min_size=2, max_size=4))
def test_overlap_against_plain_sets(several: list[Rows]) -> None:
    known = [{user for user, _, _ in some} for some in several]
    everybody = set().union(*known)
    lonely = [k for k, users in enumerate(known) if not users & set().union(*known[:k], *known[k + 1 :])]
    named = {f"d{k}": some for k, some in enumerate(several)}
    if lonely:
        with pytest.raises(ConfedError, match=f"domain d{lonely[0]} shares no user"):
            make(**named)
        return
    data = make(**named)
    assert data.users == sorted(everybody, key=int)
    counts = Counter(sum(one in users for users in known) for one in everybody)
    assert data.known_to() == {k: counts[k] for k in range(1, len(several) + 1)}
    assert data.shared() == sorted(set.intersection(*known), key=int)


# --- where it comes from ----------------------------------------------------------------------------------


def test_of_takes_files_frames_and_interactions(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("who;what;when\n1;x;3\n1;y;1\n")
    frame = pd.DataFrame({"who": [1, 2], "what": ["p", "q"], "when": [5, 6]})
    told = {"user": "who", "item": "what", "timestamp": "when"}
    data = Domains.of({"book": tmp_path / "a.csv", "music": frame}, **told)
    assert (data.name, data.names, data.shared()) == ("book+music", ("book", "music"), ["1"])
    assert data["book"].frame["item"].to_list() == ["y", "x"]
    same = Domains.of({"book": data["book"], "music": data["music"]}, name="both")
    assert (same.name, same.content_hash) == ("both", data.content_hash)
    assert Domains.of(same) is same
    assert Domains.of(same, name="renamed").name == "renamed"


def test_of_says_what_it_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(ConfedError, match="cannot read domains from a DataFrame: give a mapping"):
        Domains.of(pl.DataFrame({"user": ["1"], "item": ["x"]}))
    with pytest.raises(ConfedError, match=r"domain music: .*nowhere\.csv: no such file"):
        Domains.of({"book": part(rated("1x")), "music": tmp_path / "nowhere.csv"})
    with pytest.raises(ConfedError, match="domain music: the data frame has no rows"):
        Domains.of({"book": part(rated("1x")), "music": pl.DataFrame({"user": [], "item": []})})
    with pytest.raises(ConfedError, match=r"not a folder of domains \(it has no domains\.json\)"):
        Domains.of(tmp_path)


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("domains", "got"), [((), "none"), (("book",), "book")])
def test_one_domain_is_not_several(domains: tuple[str, ...], got: str) -> None:
    with pytest.raises(ConfedError, match=rf"at least two, got {got}; give one file per domain"):
        make(**dict.fromkeys(domains, rated("1x")))


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ü", "a.b", "a\n", 1])
def test_names_that_no_domain_can_have(name: str) -> None:
    with pytest.raises(ConfedError, match=r"domain name .*: use letters, digits, dashes and underscores"):
        Domains({"fine-1_A": part(rated("1x")), name: part(rated("1x"))})


def test_no_shared_user_is_refused_with_examples() -> None:
    with pytest.raises(ConfedError) as caught:
        make(book=rated("1x", "2x"), music=rated("3x", "4x"))
    message = str(caught.value)
    assert "mine: domain book shares no user with music: " in message
    assert "book has whole numbers such as '1', music has whole numbers such as '3'" in message
    assert "the same id in every domain" in message
    assert "another type" not in message


@pytest.mark.parametrize(
    ("ids", "kind"),
    [(["u17", "u3"], "text"), (["17.0", "3.0"], "numbers with a decimal point"), (["17", "x"], "text")],
)
def test_ids_of_another_type_are_named(ids: list[str], kind: str) -> None:
    numbers: Rows = [("5", "x", 1.0), ("3", "x", 1.0)]
    texts: Rows = [(one, "x", 1.0) for one in ids]
    with pytest.raises(ConfedError) as caught:
        make(book=numbers, music=texts)
    message = str(caught.value)
    assert "domain book has user ids of another type" in message
    assert "book has whole numbers such as '3'" in message
    assert f"music has {kind} such as '{min(ids)}'" in message
    assert "user=" in message


def test_every_domain_must_meet_another_one() -> None:
    with pytest.raises(ConfedError, match="domain c shares no user with a, b; domain c has user ids of another type"):
        make(a=rated("1x", "2x"), b=rated("2y"), c=rated("ux"))
    chain = make(a=rated("1x", "2x"), b=rated("2y", "3y"), c=rated("3z"))
    assert (chain.shared(), chain.known_to()) == ([], {1: 1, 2: 2, 3: 0})


# --- filters ----------------------------------------------------------------------------------------------


def test_keep_users_filters_each_domain_alone() -> None:
    data = make(a=rated("1x", "1x", "2x", "2y"), b=rated("1p", "2p", "2q", "3p", "3q"))
    rows_kept = data.keep_users(2, distinct=False)
    assert (rows_kept["a"].users, rows_kept["b"].users) == (["1", "2"], ["2", "3"])
    items_kept = data.keep_users(2, distinct=True)
    assert (items_kept["a"].users, items_kept["b"].users) == (["2"], ["2", "3"])
    assert items_kept.name == "mine"


def test_keep_shared_asks_for_enough_in_every_domain() -> None:
    data = make(a=rated("1x", "1x", "2x", "2y", "4x"), b=rated("1p", "1q", "2p", "2q", "3p", "3q"))
    assert data.keep_shared(1, distinct=False).users == ["1", "2"]
    assert data.keep_shared(2, distinct=False).users == ["1", "2"]
    kept = data.keep_shared(2, distinct=True)
    assert rows_of(kept) == {"a": rated("2x", "2y"), "b": rated("2p", "2q")}


def test_positive_keeps_high_ratings(three: Domains) -> None:
    liked = three.positive(4)
    assert rows_of(liked)["music"] == rated("2p5", "1p4")
    assert liked["movie"].frame["timestamp"].to_list() == [1, 1]


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda d: d.positive(6), "keeping ratings of at least 6 leaves domain a no interactions"),
        (lambda d: d.positive(5), "keeping ratings of at least 5 leaves domain b no interactions"),
        (lambda d: d.keep_shared(3, distinct=False), "in every domain leaves domain a no inter"),
        (lambda d: d.core(2, 5), "2 rows per user in every domain and 5 per item leaves domain a no interactions"),
        (lambda d: d.keep_users(2, distinct=False), r"\(min_interactions=\) leaves domain a nobody whom another"),
    ],
)
def test_filters_that_leave_nothing(call, what: str) -> None:  # type: ignore[no-untyped-def]
    data = make(a=rated("1x5", "1y5", "2x5"), b=rated("1p4", "2p4", "2q4"))
    with pytest.raises(ConfedError, match=f"mine: .*{what}.*; ask for less"):
        call(data)


def test_keep_users_names_a_domain_without_active_users() -> None:
    with pytest.raises(ConfedError, match="b: no user has 2 interactions, the most active has 1"):
        make(a=rated("1x", "1y"), b=rated("1p")).keep_users(2, distinct=False)


def plain_core(several: dict[str, Rows], least_user: int, least_item: int) -> dict[str, Rows]:
    """One row's fate after another, until nothing changes; items first, unlike ours."""
    while True:
        kept = {}
        for domain, some in several.items():
            items = Counter(item for _, item, _ in some)
            kept[domain] = [row for row in some if items[row[1]] >= least_item]
        counts = {domain: Counter(user for user, _, _ in some) for domain, some in kept.items()}
        kept = {
            domain: [row for row in some if all(counts[other][row[0]] >= least_user for other in kept)]
            for domain, some in kept.items()
        }
        if kept == several:
            return kept
        several = kept


dense = st.lists(
    st.tuples(st.integers(0, 4).map(str), st.integers(0, 3).map(str), st.just(5.0)), min_size=10, max_size=60
)


@given(st.lists(dense, min_size=2, max_size=3), st.integers(1, 4), st.integers(1, 4))
def test_core_is_the_fixed_point(several: list[Rows], least_user: int, least_item: int) -> None:
    named = {f"d{k}": [("everybody", "i", 5.0), *some] for k, some in enumerate(several)}
    wanted = plain_core(named, least_user, least_item)
    if not all(wanted.values()):
        with pytest.raises(ConfedError, match="no interactions; ask for less"):
            make(**named).core(least_user, least_item)
        return
    kept = make(**named).core(least_user, least_item)
    assert rows_of(kept) == wanted
    assert kept.core(least_user, least_item).content_hash == kept.content_hash


@given(st.lists(rows, min_size=2, max_size=3), st.integers(1, 3), st.booleans())
def test_keep_shared_against_plain_counts(several: list[Rows], least: int, distinct: bool) -> None:
    named = {f"d{k}": [*rated("zi", "zj", "zk"), *some] for k, some in enumerate(several)}
    held = {
        domain: Counter(u for u, _ in (set if distinct else list)((r[0], r[1]) for r in some))
        for domain, some in named.items()
    }
    users = {user for some in named.values() for user, _, _ in some}
    kept = make(**named).keep_shared(least, distinct=distinct)
    assert set(kept.users) == {one for one in users if all(held[domain][one] >= least for domain in named)}
    assert kept.known_to()[len(several)] == kept.n_users


# --- folders ----------------------------------------------------------------------------------------------


def test_a_saved_folder_reads_back_whole(three: Domains, tmp_path: Path) -> None:
    titled = Domains({**three.parts, "book": Interactions(three["book"].frame, "none", titles={"x": "Xanadu"})}, "mine")
    folder = titled.save(tmp_path / "deep" / "mine")
    back = Domains.of(folder)
    assert (back.name, back.names, back.content_hash) == ("mine", three.names, three.content_hash)
    assert back["book"].titles == {"x": "Xanadu"}
    assert Domains.of(str(folder), name="other").name == "other"
    assert is_domain_folder(folder)
    assert not is_domain_folder(tmp_path)
    with pytest.raises(ConfedError, match="separator: these options are for files"):
        Domains.of(folder, separator=";")


def test_saving_again_replaces_the_old_domains_and_nothing_else(three: Domains, tmp_path: Path) -> None:
    three.save(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    fewer = Domains({name: three[name] for name in ("movie", "book")})
    fewer.save(tmp_path)
    assert Domains.of(tmp_path).content_hash == fewer.content_hash
    assert len(list(tmp_path.iterdir())) == 4
    fewer.save(tmp_path)
    assert Domains.of(tmp_path).content_hash == fewer.content_hash
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("breaks_at", [1, 2])
def test_a_failed_save_leaves_the_old_domains(
    three: Domains, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks_at: int
) -> None:
    three.save(tmp_path)
    calls = []
    write = pl.DataFrame.write_parquet

    def half(self: pl.DataFrame, target: Path, **options: object) -> None:
        calls.append(target)
        if len(calls) == breaks_at:
            target.write_bytes(b"half")
            raise OSError("disk full")
        write(self, target, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(pl.DataFrame, "write_parquet", half)
    with pytest.raises(OSError, match="disk full"):
        three.positive(4).save(tmp_path)
    assert Domains.of(tmp_path).content_hash == three.content_hash
    assert len(list(tmp_path.iterdir())) == 4


def test_folders_that_cannot_be_used(three: Domains, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfedError, match="file is a file: domains are saved as a folder"):
        three.save(tmp_path / "file")
    folder = three.save(tmp_path / "mine")
    files = json.loads((folder / MANIFEST).read_text())["domains"]
    (folder / files["music"]).unlink()
    with pytest.raises(ConfedError, match=r"music-\w+\.parquet: no such file"):
        Domains.of(folder)
    for damaged in ("{", "[]", '{"name": "x"}', '{"name": "x", "domains": [1]}'):
        (folder / MANIFEST).write_text(damaged)
        with pytest.raises(ConfedError, match=r"domains\.json: damaged .*import the domains again"):
            Domains.of(folder)
    three.save(folder)
    assert Domains.of(folder).content_hash == three.content_hash
