from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confed.data.columns import ROLES
from confed.data.interactions import Interactions, Time
from confed.errors import ConfedError


def make(rows: list[tuple[object, object, float, int]], time: Time = "real") -> Interactions:
    users, items, ratings, stamps = zip(*rows, strict=True)
    return Interactions.of(
        pl.DataFrame(
            {
                "user": [str(user) for user in users],
                "item": [str(item) for item in items],
                "rating": [float(rating) for rating in ratings],
                "timestamp": list(stamps),
            }
        ),
        time=time,
    )


def rows_of(data: Interactions) -> list[tuple[str, str, float, int]]:
    return data.frame.rows()


SHUFFLED = [("10", "b", 1.0, 5), ("2", "a", 2.0, 9), ("2", "c", 3.0, 1), ("10", "a", 4.0, 5)]


def test_real_time_orders_by_user_stamp_and_item() -> None:
    data = make(SHUFFLED)
    assert rows_of(data) == [("2", "c", 3.0, 1), ("2", "a", 2.0, 9), ("10", "a", 4.0, 5), ("10", "b", 1.0, 5)]
    assert data.frame.schema == {
        "user": pl.String,
        "item": pl.String,
        "rating": pl.Float64,
        "timestamp": pl.Int64,
    }


def test_no_time_keeps_the_rows_and_counts_them_per_user() -> None:
    data = make(SHUFFLED, time="none")
    assert rows_of(data) == [("10", "b", 1.0, 1), ("2", "a", 2.0, 1), ("2", "c", 3.0, 2), ("10", "a", 4.0, 2)]


def test_order_sorts_like_real_time() -> None:
    assert rows_of(make(SHUFFLED, time="order")) == rows_of(make(SHUFFLED, time="real"))


def test_integer_ids_sort_as_numbers_and_mixed_ids_as_text() -> None:
    numbers = make([(user, 1, 1, 1) for user in ("10", "9", "-3", "123456789012345678901")])
    assert numbers.users == ["-3", "9", "10", "123456789012345678901"]
    mixed = make([(user, 1, 1, 1) for user in ("10", "9", "x")])
    assert mixed.users == ["10", "9", "x"]


def test_ids_that_are_equal_as_numbers_stay_apart() -> None:
    data = make([("1", "a", 1, 1), ("01", "a", 1, 1), ("2", "a", 1, 1)])
    assert data.users == ["01", "1", "2"]


def test_indices_point_into_users_and_items() -> None:
    data = make(SHUFFLED, time="none")
    assert [data.users[i] for i in data.user_index] == data.frame["user"].to_list()
    assert [data.items[i] for i in data.item_index] == data.frame["item"].to_list()
    assert (data.n_users, data.n_items, len(data)) == (2, 3, 4)
    assert data.user_index.dtype == data.item_index.dtype == np.int64


interactions = st.lists(
    st.tuples(
        st.integers(0, 5).map(str) | st.text("abé", min_size=1, max_size=2),
        st.integers(0, 20).map(str),
        st.integers(1, 5).map(float),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=30,
)


@given(interactions, st.randoms(use_true_random=False), st.sampled_from(["real", "order"]))
def test_row_order_of_the_source_does_not_matter(
    rows: list[tuple[str, str, float, int]], rng: random.Random, time: Time
) -> None:
    permuted = rows.copy()
    rng.shuffle(permuted)
    a, b = make(rows, time), make(permuted, time)
    assert rows_of(a) == rows_of(b)
    assert a.content_hash == b.content_hash


@given(interactions, st.sampled_from(["real", "order", "none"]))
def test_canonical_order_is_a_fixed_point(rows: list[tuple[str, str, float, int]], time: Time) -> None:
    once = make(rows, time)
    again = Interactions.of(once.frame, time=time)
    assert rows_of(once) == rows_of(again)
    assert once.content_hash == again.content_hash


@given(interactions, interactions)
def test_the_hash_tells_different_data_apart(
    rows: list[tuple[str, str, float, int]], others: list[tuple[str, str, float, int]]
) -> None:
    same = sorted(rows) == sorted(others)
    assert (make(rows).content_hash == make(others).content_hash) == same


def test_the_hash_without_time_depends_on_the_order() -> None:
    assert make(SHUFFLED, "none").content_hash != make(SHUFFLED[::-1], "none").content_hash


def test_the_hash_does_not_know_how_numbers_were_written() -> None:
    whole = pl.DataFrame({"user": [1, 2], "item": [3, 4], "rating": [5, 0], "timestamp": [7, 8]})
    text = pl.DataFrame({"user": ["1", "2"], "item": ["3", "4"], "rating": [5.0, -0.0], "timestamp": [7.0, 8.0]})
    assert Interactions.of(whole).content_hash == Interactions.of(text).content_hash


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table, lambda d: pl.DataFrame(d).lazy()])
def test_frames_of_any_library(frame) -> None:  # type: ignore[no-untyped-def]
    columns = {"user_id": [3, 1], "movieId": ["x", "y"], "score": [4, 2], "ts": [20, 10]}
    data = Interactions.of(frame(columns), name="mine")
    assert rows_of(data) == [("1", "y", 2.0, 10), ("3", "x", 4.0, 20)]
    assert (data.name, data.time) == ("mine", "real")


def test_pandas_works_without_the_arrow_interface() -> None:
    class Plain:
        """A frame as old pandas offers it: columns and nothing of Arrow."""

        columns = ("uid", "iid")

        def __getitem__(self, name: str) -> pd.Series:
            return pd.Series({"uid": [2, 1], "iid": ["a", "b"]}[name])

        def itertuples(self) -> None: ...

    assert rows_of(Interactions.of(Plain())) == [("2", "a", 1.0, 1), ("1", "b", 1.0, 1)]


def test_missing_columns_mean_rating_one_and_no_time() -> None:
    data = Interactions.of(pl.DataFrame({"user": ["b", "a", "b"], "item": ["x", "x", "y"]}))
    assert data.time == "none"
    assert rows_of(data) == [("b", "x", 1.0, 1), ("a", "x", 1.0, 1), ("b", "y", 1.0, 2)]


def test_unusual_columns_are_named_either_way() -> None:
    frame = pl.DataFrame({"who": ["a"], "what": ["x"], "when": [4]})
    by_mapping = Interactions.of(frame, columns={"user": "who", "item": "what", "timestamp": "when"})
    by_option = Interactions.of(frame, user="who", item="what", timestamp="when")
    assert rows_of(by_mapping) == rows_of(by_option) == [("a", "x", 1.0, 4)]


def test_dates_become_seconds_and_fractions_microseconds() -> None:
    moments = [dt.datetime(1970, 1, 1, 0, 1), dt.datetime(1970, 1, 2)]
    whole = Interactions.of(pl.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "time": moments}))
    assert whole.frame["timestamp"].to_list() == [60, 86_400]
    fine = [moments[0], moments[0] + dt.timedelta(milliseconds=5)]
    broken = Interactions.of(pl.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "time": fine}))
    assert broken.frame["timestamp"].to_list() == [60_000_000, 60_005_000]
    floats = Interactions.of(pl.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "time": [1.5, 0.25]}))
    assert floats.frame["timestamp"].to_list() == [250_000, 1_500_000]


def test_whole_float_ids_lose_their_point() -> None:
    assert Interactions.of(pd.DataFrame({"user": [2.0, 1.0], "item": [1, 2]})).users == ["1", "2"]


def test_time_can_be_overruled() -> None:
    frame = pl.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "timestamp": [9, 3]})
    assert Interactions.of(frame, time="none").frame["item"].to_list() == ["x", "y"]
    assert Interactions.of(frame).frame["item"].to_list() == ["y", "x"]
    trusted = Interactions.of(frame.drop("timestamp"), time="order")
    assert (trusted.time, trusted.frame["timestamp"].to_list()) == ("order", [1, 2])
    with pytest.raises(ConfedError, match='time="real" needs a column of time stamps'):
        Interactions.of(frame.drop("timestamp"), time="real")
    with pytest.raises(ConfedError, match="unknown time 'reel': did you mean real"):
        Interactions.of(frame, time="reel")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("user", ["a", None], r"row 2: the user id is empty"),
        ("user", ["", "a"], r"row 1: the user id is empty"),
        ("item", ["x", "  "], r"row 2: the item id is empty"),
        ("rating", [1.0, float("nan")], r"row 2: the rating is nan"),
        ("rating", [float("inf"), 1.0], r"row 1: the rating is inf"),
        ("rating", ["good", "1"], r"row 1: the rating is 'good'"),
        ("rating", [1.0, None], r"row 2: the rating is empty"),
        ("rating", [[1], [2]], r"ratings of type List"),
        ("timestamp", [1, None], r"row 2: the time stamp is empty"),
        ("timestamp", [1.0, float("inf")], r"row 2: the time stamp is inf"),
        ("timestamp", ["2020-01-01", "soon"], r"row 2: the time stamp is 'soon'"),
        ("user", [[1], [2]], r"user ids of type List"),
        ("user", [{"id": 1}, {"id": 2}], r"user ids of type Struct"),
    ],
)
def test_bad_values_are_named(column: str, values: list[object], message: str) -> None:
    columns = {
        "user": ["a", "b"],
        "item": ["x", "y"],
        "rating": [1.0, 2.0],
        "timestamp": [1, 2],
        column: values,
    }
    with pytest.raises(ConfedError, match=message):
        Interactions.of(pl.DataFrame(columns))


def test_frames_that_cannot_be_interactions() -> None:
    with pytest.raises(ConfedError, match="no rows"):
        Interactions.of(pl.DataFrame({"user": [], "item": []}))
    with pytest.raises(ConfedError, match=r"no column looks like the item id; its columns are user, thing: .* item="):
        Interactions.of(pl.DataFrame({"user": ["a"], "thing": ["x"]}))
    with pytest.raises(ConfedError, match="there is no column 'what'"):
        Interactions.of(pl.DataFrame({"user": ["a"], "item": ["x"]}), columns={"item": "what"})
    with pytest.raises(ConfedError, match="unknown column role 'items': did you mean item"):
        Interactions.of(pl.DataFrame({"user": ["a"], "item": ["x"]}), columns={"items": "item"})
    with pytest.raises(ConfedError, match="cannot read interactions from a int"):
        Interactions.of(3)
    with pytest.raises(ConfedError, match="separator: these options are for files"):
        Interactions.of(pl.DataFrame({"user": ["a"], "item": ["x"]}), separator=";")


def test_keep_users_counts_rows() -> None:
    data = make([("a", "x", 1, 1), ("a", "x", 1, 2), ("a", "x", 1, 3), ("b", "y", 1, 1), ("b", "x", 1, 1)])
    kept = data.keep_users(3)
    assert (kept.users, kept.items, len(kept)) == (["a"], ["x"], 3)
    assert data.keep_users(1) is data.keep_users(2) is data
    with pytest.raises(ConfedError, match="no user has 4 interactions, the most active has 3"):
        data.keep_users(4)


def test_keep_users_renumbers_nothing_without_time() -> None:
    data = make([("b", "z", 1, 0), ("a", "x", 1, 0), ("a", "w", 1, 0)], time="none")
    assert rows_of(data.keep_users(2)) == [("a", "x", 1.0, 1), ("a", "w", 1.0, 2)]


def test_describe() -> None:
    data = make([("a", "x", 1, 1), ("a", "x", 1, 2), ("a", "y", 1, 3), ("b", "y", 1, 1)])
    facts = data.describe()
    assert facts == {
        "users": 2,
        "items": 2,
        "interactions": 4,
        "distinct_pairs": 3,
        "density": 0.75,
        "min_per_user": 1,
        "median_per_user": 2.0,
        "max_per_user": 3,
        "time": "real",
        "columns": {**{role: role for role in ROLES}, "title": None, "ignored": []},
        "content_hash": data.content_hash,
    }
    read_back = replace(data, columns={}).describe()
    assert read_back == {name: value for name, value in facts.items() if name != "columns"}


@pytest.mark.parametrize("time", ["real", "order", "none"])
def test_save_keeps_everything(tmp_path, time: Time) -> None:  # type: ignore[no-untyped-def]
    titles = {"b": "Ein Titel, «zweisprachig»", "a": "A"}
    data = Interactions(make(SHUFFLED, time).frame, time, "mine", titles, "item-order")
    path = data.save(tmp_path / "deep" / "mine.parquet")
    back = Interactions.of(path)
    assert rows_of(back) == rows_of(data)
    assert (back.time, back.name, back.titles, back.pseudo_time) == (time, "mine", titles, "item-order")
    assert [p.name for p in path.parent.iterdir()] == ["mine.parquet"]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    path = make(SHUFFLED).save(tmp_path / "mine.parquet")
    before = path.read_bytes()

    def half(self: pl.DataFrame, target, **_: object) -> None:  # type: ignore[no-untyped-def]
        target.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", half)
    with pytest.raises(OSError, match="disk full"):
        make(SHUFFLED[:1]).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ConfedError, match=r"end in \.parquet"):
        make(SHUFFLED).save(tmp_path / "mine.csv")


def test_repr_is_short() -> None:
    assert repr(make(SHUFFLED)) == "Interactions(data: 2 users, 3 items, 4 interactions, time=real)"


def test_an_interactions_is_returned_as_it_is() -> None:
    data = make(SHUFFLED)
    assert Interactions.of(data) is data
    with pytest.raises(ConfedError, match=r"data: an Interactions takes no options, got user="):
        Interactions.of(data, user="who")


def test_an_empty_name_is_no_column(tmp_path: Path) -> None:
    """As a variable of a shell that was never set."""
    path = tmp_path / "a.csv"
    path.write_text("user,item\n1,2\n")
    for source in (path, pl.read_csv(path)):
        with pytest.raises(
            ConfedError, match=r"(a\.csv|the data frame): there is no column ''; its columns are user, item"
        ):
            Interactions.of(source, user="")


def test_errors_name_the_file_or_say_that_it_is_a_frame(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item\n1,2\n")
    with pytest.raises(ConfedError, match=r'a\.csv: time="real" needs a column of time stamps'):
        Interactions.of(path, time="real")
    with pytest.raises(ConfedError, match=r"^the data frame: encoding, separator: these options are for files"):
        Interactions.of(pl.read_csv(path), separator=";", encoding="utf-8")


def test_a_moment_is_the_same_in_every_time_zone(tmp_path: Path) -> None:
    """polars does not know +05:30, which pandas makes of such a text."""
    stamps = pd.to_datetime(["2024-01-01T05:30:00+05:30", "2024-01-02T05:30:00+05:30"])
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"], "timestamp": stamps})
    frame.to_parquet(tmp_path / "a.parquet")
    for source in (frame, pa.Table.from_pandas(frame), tmp_path / "a.parquet"):
        assert Interactions.of(source).frame["timestamp"].to_list() == [1_704_067_200, 1_704_153_600]
