"""From a file to recommendations, and what can be asked for wrongly."""

import json

import polars as pl
import pytest

ORDERS = [
    (f"K-{user:04}", f"Ware {user * place % 83}", f"2024-05-{1 + place % 28:02}")
    for user in range(1, 31)
    for place in range(1, 25)
]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(ORDERS, schema=["Customer", "product", "purchased at"], orient="row").write_csv("orders.csv")
    return tmp_path


def ask(confed, *arguments):
    code, out, err = confed("recommend", *arguments)
    assert code == 0, err
    return out, " ".join(err.split())


def test_a_file_is_enough(confed, place):
    out, said = ask(confed, "orders.csv", "--user", "K-0007", "-k", 3, "--json")
    answer = json.loads(out)
    assert answer["user"] == "K-0007" and len(answer["items"]) == 3
    had = {item for user, item, _ in ORDERS if user == "K-0007"}
    assert not had & {one["item"] for one in answer["items"]}
    assert "trained: fedmf on orders.csv" in said and "HR@10 / NDCG@10" in said
    again, said = ask(confed, "orders.csv", "--user", "K-0007", "-k", 3, "--json")
    assert json.loads(again) == answer and "trained before: fedmf" in said
    assert len(list((place / "runs").iterdir())) == 1


def test_columns_that_nobody_would_guess(confed, place):
    pl.DataFrame(ORDERS, schema=["who", "what", "when"], orient="row").write_csv("odd.csv")
    columns = ["--user-column", "who", "--item-column", "what"]
    out, _ = ask(confed, "odd.csv", "--user", "K-0007", "--method", "ease", *columns, "--json")
    assert json.loads(out)["items"]
    out, _ = ask(confed, json.loads(out)["run"], "--user", "K-0007", "--json")
    assert json.loads(out)["items"], "the run knows how its file is read"


@pytest.mark.parametrize("header", ["customer,article_no,description,when", "Kunde,Artikelnr.,Bezeichnung,Datum"])
def test_items_are_shown_by_what_people_call_them(confed, place, header):
    rows = [(user, item[5:], item, stamp) for user, item, stamp in ORDERS]
    pl.DataFrame(rows, schema=header.split(","), orient="row").write_csv("shop.csv")
    out, _ = ask(confed, "shop.csv", "--user", "K-0007", "--method", "popularity", "-k", 3, "--json")
    items = json.loads(out)["items"]
    assert [one["title"] for one in items] == [f"Ware {one['item']}" for one in items]
    told = ("--title-column", header.partition(",")[0])
    out, _ = ask(confed, "shop.csv", "--user", "K-0007", "--method", "popularity", *told, "--json")
    assert json.loads(out)["items"][0]["title"].startswith("K-"), "what is said goes before"


def test_another_method_is_trained_anew(confed, place):
    ask(confed, "orders.csv", "--user", "K-0007", "--method", "popularity")
    _, said = ask(confed, "orders.csv", "--user", "K-0007", "--method", "ease")
    assert "trained: ease" in said


def test_several_users_the_newest_run_and_somebody_new(confed, place):
    ask(confed, "orders.csv", "--user", "K-0007", "--method", "ease")
    out, _ = ask(confed, "--latest", "--user", "K-0001", "--user", "K-0002", "-k", 2, "--json")
    assert [one["user"] for one in json.loads(out)["users"]] == ["K-0001", "K-0002"]
    out, said = ask(confed, "--latest", "--history", "Ware 3, Ware 9", "-k", 2)
    assert "Ware" in out and "rank" in out
    assert "items are shown by their ids" in said


@pytest.mark.parametrize("name", ["recs.csv", "recs.parquet", "recs.jsonl"])
def test_everybody_into_a_file(confed, place, name):
    out, _ = ask(confed, "orders.csv", "--method", "popularity", "--all", "--out", name, "-k", 2, "--json")
    assert json.loads(out)["users"] == 30
    read = {"csv": pl.read_csv, "parquet": pl.read_parquet, "jsonl": pl.read_ndjson}[name.partition(".")[2]]
    assert read(place / name).columns == ["user", "rank", "item", "score"]
    assert read(place / name).height == 60


def test_everybody_is_also_who_has_too_few_items(confed, place):
    rows = [*ORDERS, ("K-9999", "Ware 3", "2024-05-01")]
    pl.DataFrame(rows, schema=["customer", "product", "when"], orient="row").write_csv("orders.csv")
    out, said = ask(confed, "orders.csv", "--method", "ease", "--all", "--out", "all.csv", "-k", 2, "--json")
    answer = json.loads(out)
    assert (answer["users"], answer["newcomers"], answer["left_out"]) == (31, 1, 0)
    assert "1 of 31 users are served as somebody new: the run did not train on them" in said
    assert "K-9999" in set(pl.read_csv("all.csv")["user"])


def test_data_is_printed_as_it_is(confed, place):
    rows = [(user, f"[/bold]{item}[red]", stamp) for user, item, stamp in ORDERS]
    pl.DataFrame(rows, schema=["user", "item", "timestamp"], orient="row").write_csv("odd.csv")
    out, _ = ask(confed, "odd.csv", "--user", "K-0007", "--method", "popularity")
    assert "[/bold]Ware" in out.replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["orders.csv"], "say for whom: one of --user"),
        (["orders.csv", "--user", "K-0001", "--all", "--out", "x.csv"], "not --user and --all"),
        (["orders.csv", "--all"], "--all and --out belong together"),
        (["orders.csv", "--user", "K-0001", "--out", "x.csv"], "--all and --out belong together"),
        (["orders.csv", "--all", "--out", "x.txt"], "should end in .csv, .parquet or .jsonl"),
        (["orders.csv", "--all", "--out", "no/x.csv"], "there is no folder"),
        (["--user", "K-0001"], "say a run folder or a dataset"),
        (["--latest", "--user", "K-0001"], "runs: holds no finished run"),
        (["--latest", "--user", "K-0001", "--method", "ease"], "are for a dataset: a run has its own"),
        ([".", "--user", "K-0001"], "neither a run folder nor data; if it holds run folders, say --latest"),
        (["ordrs.csv", "--user", "K-0001"], "ordrs.csv"),
        (["orders.csv", "--user", "K-0001", "--method", "feedmf"], "did you mean fedmf"),
    ],
)
def test_mistakes(confed, place, arguments, message):
    code, out, err = confed("recommend", *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())
    assert "Traceback" not in err
    assert [path.name for path in place.iterdir()] == ["orders.csv"]


def test_similar(confed, place):
    ask(confed, "orders.csv", "--user", "K-0007", "--method", "ease")
    run = next((place / "runs").iterdir())
    code, out, _ = confed("similar", run, "Ware 3", "-k", 2, "--json")
    found = json.loads(out)["items"]
    assert code == 0 and len(found) == 2 and "Ware 3" not in {one["item"] for one in found}
    for latest in (["--latest", "Ware 3"], ["runs", "Ware 3", "--latest"]):
        code, out, _ = confed("similar", *latest, "-k", 2, "--json")
        assert code == 0 and json.loads(out)["items"] == found
    code, _, err = confed("similar", "runs", "Ware 3")
    assert code == 2 and "take the newest with --latest" in " ".join(err.split())
    code, _, err = confed("similar", run, "Ware 999")
    assert code == 2 and "unknown item" in err


def test_a_run_with_other_settings_is_not_taken_for_it(confed, place):
    """A short try of the same method must not be served instead of what would be trained."""
    assert confed("run", "fedmf", "orders.csv", "--rounds", 1)[0] == 0
    _, said = ask(confed, "orders.csv", "--user", "K-0007")
    assert "trained: fedmf" in said
    assert confed("run", "fedmf", "orders.csv", "--rounds", 1)[0] == 0
    _, said = ask(confed, "orders.csv", "--user", "K-0007")
    assert "trained before: fedmf" in said


def test_a_file_that_was_moved_is_found_by_its_content(confed, place):
    first, _ = ask(confed, "orders.csv", "--user", "K-0007", "--method", "ease", "--json")
    (place / "orders.csv").rename(place / "moved.csv")
    again, said = ask(confed, "moved.csv", "--user", "K-0007", "--method", "ease", "--json")
    assert json.loads(again)["items"] == json.loads(first)["items"] and "trained before" in said


def test_who_is_not_in_the_file_is_missed_before_anything_is_trained(confed, place):
    code, _, err = confed("recommend", "orders.csv", "--user", "nobody")
    assert code == 2 and "user 'nobody' is not in orders.csv" in " ".join(err.split())
    assert not (place / "runs").exists()


def test_a_model_that_is_worse_than_popularity_says_so(confed, place):
    _, said = ask(confed, "orders.csv", "--user", "K-0007", "--method", "scalar")
    assert "scalar ends below popularity" in said and "what to try" in said
