from __future__ import annotations

import csv
import gzip
import io
import json
import time
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from confed.data.delimited import FORMATS
from confed.data.interactions import Interactions
from confed.data.readers import read, read_titles
from confed.errors import ConfedError


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rows(path: Path, **options: object) -> list[tuple[object, ...]]:
    return read(path, **options).frame.rows()  # type: ignore[arg-type]


# --- what is understood -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        "user_id,item_id,rating,timestamp",
        "userId,movieId,score,time",
        "uid,iid,stars,ts",
        "User ID,ASIN,Overall,date",
    ],
)
def test_usual_names_are_found(tmp_path: Path, header: str) -> None:
    path = write(tmp_path, "a.csv", f"{header}\n1,x,2.5,10\n2,y,3,20\n")
    assert rows(path) == [("1", "x", 2.5, 10), ("2", "y", 3.0, 20)]


def test_columns_in_any_order_among_others(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "note,timestamp,item,user\nhello,5,x,1\n")
    assert rows(path) == [("1", "x", 1.0, 5)]


def test_named_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "who;what;how;when\na;x;2;3\n")
    assert rows(path, user="who", item="what", rating="how", timestamp="when") == [("a", "x", 2.0, 3)]
    swapped = write(tmp_path, "b.csv", "item,user\na,x\n")
    assert rows(swapped, user="item", item="user") == [("a", "x", 1.0)]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", "::", " ", "~", "<>"])
def test_any_separator(tmp_path: Path, separator: str) -> None:
    lines = [["user", "item", "rating", "timestamp"], ["1", "x", "2", "3"]]
    path = write(tmp_path, "a.txt", "\n".join(separator.join(line) for line in lines))
    told = {"separator": separator} if separator in "~<>" else {"header": True}
    assert rows(path, **told) == [("1", "x", 2.0, 3)]


def test_without_header(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "A1,B1,5.0,100\nA2,B2,4.0,90\n")
    assert rows(path) == [("A1", "B1", 5.0, 100), ("A2", "B2", 4.0, 90)]
    assert rows(path, user="2", item="1") == [("B1", "A1", 5.0, 100), ("B2", "A2", 4.0, 90)]
    words = write(tmp_path, "b.csv", "alice,song\nbob,tune\n")
    assert rows(words, header=False) == [("alice", "song", 1.0), ("bob", "tune", 1.0)]
    two = write(tmp_path, "c.csv", "1,7\n2,8\n")
    assert rows(two) == [("1", "7", 1.0), ("2", "8", 1.0)]
    dated = write(tmp_path, "d.csv", "alice,song,13.4.2024\nbob,tune,3.4.2024\n")
    assert rows(dated) == [("alice", "song", 1.0, 1_712_966_400), ("bob", "tune", 1.0, 1_712_102_400)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ratings.dat", "1::1193::5::978300760\n1::661::3::978302109\n"),
        ("u.data", "1\t1193\t5\t978300760\n1\t661\t3\t978302109\n"),
        (
            "x.inter",
            "user_id:token\titem_id:token\trating:float\ttimestamp:float\n1\t1193\t5\t978300760\n1\t661\t3\t978302109\n",
        ),
        ("x.tsv", "user\titem\trating\ttimestamp\n1\t1193\t5\t978300760\n1\t661\t3.0\t978302109\n"),
        ("crlf.csv", "user,item,rating,timestamp\r\n1,1193,5,978300760\r\n1,661,3,978302109\r\n"),
        ("cr.csv", "user,item,rating,timestamp\r1,1193,5,978300760\r1,661,3,978302109\r"),
        ("bom.csv", "\ufeffuser,item,rating,timestamp\n1,1193,5,978300760\n1,661,3,978302109"),
        ("blank.csv", "\n\nuser,item,rating,timestamp\n1,1193,5,978300760\n\n1,661,3,978302109\n\n\n"),
        ("spaces.csv", "user,item, rating, timestamp\n1,1193, 5, 978300760\n1,661, 3, 978302109\n"),
        (
            "quoted.csv",
            '"user","item","rating","timestamp"\n"1","1193","5","978300760"\n"1","661","3","978302109"\n',
        ),
        (
            "iso.csv",
            "user,item,rating,timestamp\n1,1193,5,2000-12-31T22:12:40Z\n1,661,3,2000-12-31 22:35:09\n",
        ),
        ("floats.csv", "user,item,rating,timestamp\n1,1193,5,978300760.0\n1,661,3,978302109.0\n"),
    ],
)
def test_formats(tmp_path: Path, name: str, text: str) -> None:
    expected = [("1", "1193", 5.0, 978300760), ("1", "661", 3.0, 978302109)]
    table = read(write(tmp_path, name, text))
    assert table.frame.rows() == expected
    assert table.time == "real"
    zipped = write(tmp_path, name + ".gz", gzip.compress(text.encode()))
    assert rows(zipped) == expected


def test_lastfm_listens_and_tags(tmp_path: Path) -> None:
    listens = write(tmp_path, "user_artists.dat", "userID\tartistID\tweight\n2\t51\t13883\n")
    assert read(listens).time == "none"
    assert rows(listens) == [("2", "51", 13883.0)]
    tags = write(
        tmp_path,
        "user_taggedartists-timestamps.dat",
        "userID\tartistID\ttagID\ttimestamp\n2\t52\t13\t1238536800000\n2\t53\t13\t1238536800\n",
    )
    assert rows(tags) == [("2", "52", 1.0, 1238536800), ("2", "53", 1.0, 1238536800)]
    days = write(
        tmp_path,
        "user_taggedartists.dat",
        "userID\tartistID\ttagID\tday\tmonth\tyear\n2\t52\t13\t1\t4\t2009\n",
    )
    with pytest.raises(ConfedError, match=r"user_taggedartists-timestamps\.dat"):
        read(days)


def test_tenrec_keeps_clicks(tmp_path: Path) -> None:
    header = "user_id,item_id,click,gender,age,exposure_count\n"
    path = write(tmp_path, "QB-article.csv", header + "1,7,1.0,0,2,9\n1,8,0,0,2,9\n2,7,1,1,3,\n")
    assert rows(path) == [("1", "7", 1.0), ("2", "7", 1.0)]
    assert read(path).time == "none"
    seen = write(tmp_path, "none.csv", header + "1,7,0,0,2,9\n")
    with pytest.raises(ConfedError, match="no row has a click above 0"):
        read(seen)
    own = write(tmp_path, "own.csv", "user_id,item_id,click,timestamp\n1,7,0,5\n")
    assert rows(own) == [("1", "7", 1.0, 5)]


def test_parquet_of_others(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame({"ts": [5, 4], "iid": [1, 2], "uid": ["a", "b"], "more": [0, 0]}).write_parquet(path)
    assert rows(path) == [("a", "1", 1.0, 5), ("b", "2", 1.0, 4)]
    nameless = path.rename(tmp_path / "log.bin")
    assert rows(nameless) == [("a", "1", 1.0, 5), ("b", "2", 1.0, 4)]


def test_encodings(tmp_path: Path) -> None:
    text = "user,item\nJosé,1\n"
    assert rows(write(tmp_path, "a.csv", text.encode("latin-1")), encoding="latin-1") == [("José", "1", 1.0)]
    assert rows(write(tmp_path, "b.csv", text.encode("utf-16")), encoding="utf-16") == [("José", "1", 1.0)]


def test_quotation_marks_inside_fields(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", 'user,item,rating\na,12" single,4\n"b\nb","x ""y""",5\n')
    assert rows(path) == [("a", '12" single', 4.0), ("b\nb", 'x "y"', 5.0)]


def test_a_strangers_file(tmp_path: Path) -> None:
    """Names, dates and titles as a shop writes them."""
    header = "Order ID;Customer Name;Customer ID;Product ID;Product Name;Order Date;Quantity"
    lines = ["1;Ann;A7;p1;Cup;3.4.2024 14:05;1", "1;Ann;A7;p2;Pot;13.4.2024;2", "2;Bob;B8;p1;Cup, large;4.4.2024;1"]
    table = read(write(tmp_path, "orders.csv", "\n".join([header, *lines])))
    assert table.frame.rows() == [
        ("A7", "p1", 1.0, 1_712_153_100),
        ("A7", "p2", 1.0, 1_712_966_400),
        ("B8", "p1", 1.0, 1_712_188_800),
    ]
    assert (table.titles, table.notes) == ({"p1": "Cup", "p2": "Pot"}, ())


def test_the_order_of_day_and_month(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "client,film,date\na,x,05/05/2024\n\nb,y,04/03/2024\n")
    (note,) = read(path).notes
    assert note.startswith(f"{path}, line 4: '04/03/2024' is read as 2024-04-03, with the month first")
    said = read(path, date_order="dmy")
    assert (said.notes, said.frame["timestamp"].to_list()) == ((), [1_714_867_200, 1_709_510_400])
    wrong = write(tmp_path, "b.csv", "client,film,date\na,x,25/12/2024\nb,y,12/25/2024\n")
    with pytest.raises(
        ConfedError, match=r"b.csv, line 3: the time stamp is '12/25/2024', but '25/12/2024' \(.*line 2\)"
    ):
        read(wrong)
    with pytest.raises(ConfedError, match="unknown date order"):
        read(path, date_order="ydm")  # type: ignore[arg-type]


def test_titles(tmp_path: Path) -> None:
    header = "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
    recbole = header + "1\tToy Story\t1995\tX\n2\tunknown\t\t\n"
    assert read_titles(write(tmp_path, "ml.item", recbole)) == {"1": "Toy Story (1995)", "2": "unknown"}
    movies = "1::Misérables, Les (1995)::Drama\n2::A::B|C\n".encode("latin-1")
    assert read_titles(write(tmp_path, "movies.dat", movies)) == {"1": "Misérables, Les (1995)", "2": "A"}
    assert read_titles(write(tmp_path, "u.item", "1|Toy Story (1995)|01-Jan-1995\n")) == {"1": "Toy Story (1995)"}
    artists = 'id\tname\turl\tpictureURL\n7\tMarilyn "M" Manson\thttp://x\thttp://y\n'
    assert read_titles(write(tmp_path, "artists.dat", artists)) == {"7": 'Marilyn "M" Manson'}
    assert read_titles(write(tmp_path, "titles.csv", 'item,title\n1,"One, two"\n')) == {"1": "One, two"}


# --- round trips ------------------------------------------------------------------------------------------

# Fields of unquoted formats cannot hold their separator, and "::" cannot follow a colon.
plain_ids = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters=':"'),
    min_size=1,
    max_size=8,
)
any_ids = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), min_size=1, max_size=8).filter(str.strip)
numbers = st.floats(allow_nan=False, allow_infinity=False)
stamps = st.integers(-(2**62), 2**62)


def table_of(ids: st.SearchStrategy[str]) -> st.SearchStrategy[list[tuple[str, str, float, int]]]:
    return st.lists(st.tuples(ids, ids, numbers, stamps), min_size=1, max_size=8)


def quoted(records: list[tuple[str, str, float, int]], separator: str) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerow(["user", "item", "rating", "timestamp"])
    writer.writerows([(user, item, repr(rating), stamp) for user, item, rating, stamp in records])
    return text.getvalue()


in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@in_one_folder
@given(table_of(any_ids), st.sampled_from([(".csv", ","), (".tsv", "\t"), (".csv", ";"), (".csv", "|")]))
def test_quoted_text_round_trip(
    tmp_path: Path, records: list[tuple[str, str, float, int]], kind: tuple[str, str]
) -> None:
    suffix, separator = kind
    path = write(tmp_path, "a" + suffix, quoted(records, separator))
    assert rows(path, separator=separator) == records


@in_one_folder
@given(table_of(plain_ids), st.sampled_from(["movielens", "u.data", "recbole"]))
def test_unquoted_text_round_trip(tmp_path: Path, records: list[tuple[str, str, float, int]], kind: str) -> None:
    separator = FORMATS[kind].separator
    assert separator is not None
    lines = [separator.join((user, item, repr(rating), str(stamp))) for user, item, rating, stamp in records]
    if kind == "recbole":
        lines.insert(0, "user_id:token\titem_id:token\trating:float\ttimestamp:float")
    name = {"movielens": "ratings.dat", "u.data": "u.data", "recbole": "x.inter"}[kind]
    assert rows(write(tmp_path, name, "\n".join(lines) + "\n")) == records


@in_one_folder
@given(table_of(any_ids))
def test_parquet_round_trip(tmp_path: Path, records: list[tuple[str, str, float, int]]) -> None:
    frame = pl.DataFrame(records, schema=["user", "item", "rating", "timestamp"], orient="row")
    frame.write_parquet(tmp_path / "a.parquet")
    assert rows(tmp_path / "a.parquet") == records


@in_one_folder
@given(table_of(any_ids), st.integers(0, 7))
def test_every_format_gives_the_same_content(
    tmp_path: Path, records: list[tuple[str, str, float, int]], shift: int
) -> None:
    moved = records[shift % len(records) :] + records[: shift % len(records)]
    as_csv = Interactions.of(write(tmp_path, "a.csv", quoted(records, ",")))
    as_tsv = Interactions.of(write(tmp_path, "b.tsv.gz", gzip.compress(quoted(moved, "\t").encode())))
    names = ["user", "item", "rating", "timestamp"]
    objects = [json.dumps(dict(zip(names, record, strict=True))) for record in moved]
    as_json = Interactions.of(write(tmp_path, "c.jsonl", "\n".join(objects)))
    assert as_csv.content_hash == as_tsv.content_hash == as_json.content_hash


# --- what is refused --------------------------------------------------------------------------------------

GOOD = "user,item,rating,timestamp\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (GOOD + "1,2,3,4\n1,2,good,4\n", 3, "the rating is 'good'"),
        (GOOD + "1,2,,4\n", 2, "the rating is empty"),
        (GOOD + "1,2,nan,4\n", 2, "the rating is 'nan'"),
        (GOOD + "1,2,3,4\n\n\n1,2,3,noon\n", 5, "the time stamp is 'noon'"),
        (GOOD + "1,2,3,\n", 2, "the time stamp is empty"),
        (GOOD + ",2,3,4\n", 2, "the user id is empty"),
        (GOOD + "1,2,3,4\n1, ,3,4\n", 3, "the item id is empty"),
        (GOOD + ",,,\n", 2, "the user id is empty"),
        (GOOD + "1,2,3,4\n1,2,3\n1,2,3,4\n", 3, "3 field(s) where the header has 4"),
        (GOOD + "1,2,3,4\n1,2,3,4,5\n", 3, "5 field(s) where the header has 4"),
        (GOOD + "1,2,3,4\n1,2,3,4\n1,2", 4, "2 field(s) where the header has 4"),
        ("1,2,3,4\n1,2,3\n", 2, "3 field(s) where the first line has 4"),
        (GOOD + '"1\n1",2,3,4\n"a\nb\nc",2,x,4\n', 4, "the rating is 'x'"),
        (GOOD + '1,2,3,4\n"1,2,3,4\n1,2,3,4\n', 3, "is a quotation mark left open"),
        ("\n\nuser item\n1 2 3\n", 4, "3 field(s) where the header has 2"),
    ],
)
def test_the_line_of_a_fault_is_named(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = write(tmp_path, "a.csv", text)
    with pytest.raises(ConfedError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert message in str(caught.value)


def test_a_quotation_mark_that_never_closes(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", GOOD + '1,2,3,4\n"' + "1,2,3,4\n" * 50_000)
    with pytest.raises(ConfedError, match=r"a.csv, line 3: .*is a quotation mark"):
        read(path)


def test_undecodable_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", b"user,item\na,1\nJos\xe9,1\n")
    with pytest.raises(ConfedError, match=r"a.csv, line 3: byte 0xe9 is not utf-8 text.*encoding="):
        read(path)
    with pytest.raises(ConfedError, match="unknown text encoding 'latin-7000'"):
        read(path, encoding="latin-7000")


def test_a_missing_column_lists_those_present(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "who,item,rating\na,b,c\n")
    with pytest.raises(
        ConfedError,
        match=r"a.csv: no column looks like the user id; its columns are who, item, rating: .*user=.*header=False",
    ):
        read(path)
    with pytest.raises(ConfedError, match=r"there is no column 'stars'.*rating="):
        read(path, user="who", rating="stars")
    bare = write(tmp_path, "b.csv", "1,2,3\n")
    with pytest.raises(ConfedError, match=r"there is no header, so columns are numbers; 'who' is none"):
        read(bare, user="who")
    frame = tmp_path / "c.parquet"
    pl.DataFrame({"user": [1], "thing": [2]}).write_parquet(frame)
    with pytest.raises(ConfedError, match=r"c.parquet: no column looks like the item id; its columns are user, thing"):
        read(frame)


def test_files_that_hold_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfedError, match=r"empty\.csv is empty"):
        read(write(tmp_path, "empty.csv", ""))
    with pytest.raises(ConfedError, match=r"blank\.csv is empty"):
        read(write(tmp_path, "blank.csv", "\n \n"))
    with pytest.raises(ConfedError, match="has a header but no rows"):
        read(write(tmp_path, "header.csv", GOOD))
    pl.DataFrame({"user": [], "item": []}).write_parquet(tmp_path / "none.parquet")
    with pytest.raises(ConfedError, match=r"none\.parquet is empty"):
        read(tmp_path / "none.parquet")
    with pytest.raises(ConfedError, match="no such file"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(ConfedError, match="no such file"):
        read(tmp_path / "nowhere.parquet")
    with pytest.raises(ConfedError, match="is a folder"):
        read(tmp_path)


def test_damaged_files(tmp_path: Path) -> None:
    whole = gzip.compress((GOOD + "1,2,3,4\n" * 1000).encode())
    with pytest.raises(ConfedError, match="truncated"):
        read(write(tmp_path, "a.csv.gz", whole[:-12]))
    broken = bytearray(whole)
    broken[20] ^= 0xFF
    with pytest.raises(ConfedError, match=r"damaged gzip data|truncated"):
        read(write(tmp_path, "b.csv.gz", bytes(broken)))
    with pytest.raises(ConfedError, match="not a readable Parquet file"):
        read(write(tmp_path, "c.parquet", b"PAR1 and then nothing of the kind"))


def test_formats_that_are_not_known(tmp_path: Path) -> None:
    for name in ("a.docx", "a.zip"):
        with pytest.raises(
            ConfedError, match=r"files ending in '.(docx|zip)' are not supported; use .csv.* or .parquet"
        ):
            read(write(tmp_path, name, b"PK\x03\x04 and so on"))
    path = write(tmp_path, "a.csv", "user,item\n1,2\n")
    with pytest.raises(ConfedError, match="unknown file format 'cvs': did you mean csv"):
        read(path, format="cvs")
    with pytest.raises(ConfedError, match=r"line 1: only one column with separator ';'"):
        read(path, separator=";")
    assert rows(write(tmp_path, "b.xyz", "user,item\n1,2\n"), format="csv") == [("1", "2", 1.0)]


@pytest.mark.parametrize("separator", ['"', "\n", "\r\n", "a\nb", "", "\0", "\ud800", '"::"'])
def test_what_cannot_separate_fields(tmp_path: Path, separator: str) -> None:
    path = write(tmp_path, "a.csv", "user,item\n1,2\n")
    with pytest.raises(ConfedError, match=r"a\.csv: fields cannot be separated by .* \(separator=\).* such as ';'"):
        read(path, separator=separator)


@pytest.mark.parametrize("separator", ["ü", "€", "::", "ab\x1f", "\x80", "→→"])
def test_separators_of_several_bytes_may_stand_between_quotation_marks(tmp_path: Path, separator: str) -> None:
    for rating in ("4", '"4\n"'):  # which only the slow reading takes
        lines = [["user", "item", "rating"], ["a", f'"x{separator}\x1fy"', rating]]
        path = write(tmp_path, "a.csv", "\n".join(map(separator.join, lines)))
        assert rows(path, separator=separator) == [("a", f"x{separator}\x1fy", 4.0)]


def test_many_empty_fields_take_more_than_their_commas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFED_MAX_BYTES", "1000000")
    path = write(tmp_path, "a.csv", "user,item" + "," * 1000 + ("\n1,2" + "," * 1000) * 100)
    assert path.stat().st_size < 200_000
    with pytest.raises(ConfedError, match=r"a\.csv would take 1\.6\d+ MB, the limit is 1 MB"):
        read(path)


def test_control_characters_of_every_kind(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "user::item\na::\x1c\x1d\x1e\x1f\n")
    with pytest.raises(ConfedError, match=r"a\.csv: holds control characters of every kind"):
        read(path, separator="::")


def test_headers_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = write(tmp_path, "a.csv", "user,item" + ",x" * 20_000 + "\n1,2" + ",0" * 20_000)
    with pytest.raises(ConfedError, match=r"a\.csv has so many columns: 20,002, the limit is 10,000"):
        read(wide)
    long = write(tmp_path, "b.csv", f"user,item,{'x' * 2_000_000}\n1,2,3\n")
    with pytest.raises(ConfedError, match=r"b\.csv begins with a line of 2 MB, the limit is 1.049 MB"):
        read(long)
    monkeypatch.setenv("CONFED_MAX_COLUMNS", "30000")
    assert rows(wide) == [("1", "2", 1.0)]


@pytest.mark.parametrize(
    ("stamp", "message"),
    [("1e300", "'1e300', which does not fit"), ("9300000000000000000", "'93.*', which does not fit")],
)
def test_time_stamps_beyond_64_bits(tmp_path: Path, stamp: str, message: str) -> None:
    path = write(tmp_path, "a.csv", f"user,item,timestamp\n1,2,3\n1,2,{stamp}\n")
    with pytest.raises(ConfedError, match=rf"a\.csv, line 3: the time stamp is {message} into 64 bits"):
        read(path)


def test_a_million_rows_take_no_time(tmp_path: Path) -> None:
    lines = "\n".join(f"{i % 5000},{i % 3001},{i % 5},{i}" for i in range(1_000_000))
    path = write(tmp_path, "big.csv", GOOD + lines)
    start = time.perf_counter()
    assert read(path).frame.height == 1_000_000
    fast = time.perf_counter() - start
    bad = write(tmp_path, "bad.csv", GOOD + lines + "\n1,2,x,4\n")
    with pytest.raises(ConfedError, match=r"line 1000002: the rating is 'x'"):
        read(bad)
    assert fast < 3  # about 0.2 s on an idle core; Python's csv module would need longer
