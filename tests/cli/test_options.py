"""Options that several commands share: how a file is read."""

import inspect
import json
import random

import pytest
import typer
from typer.testing import CliRunner

import confed
from confed.cli.main import app
from confed.cli.options import ReadingOptions
from confed.data.reading import READING
from confed.errors import ConfedError
from confed.runs.settings import Settings

FEW = ("--set", "negatives=15", "--set", "cutoffs=5,10")
COLUMNS = ("--user-column", "who", "--item-column", "what", "--rating-column", "liked", "--timestamp-column", "on")


def call(*arguments):
    """What is printed with --json, and what is said on standard error."""
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), result.stderr


def orders(folder, header="who,what,liked,on,product_name", name="orders.csv"):
    """Dates fit both orders, and mean something else in each."""
    chance = random.Random(3)
    dates = [f"{chance.randint(1, 12):02d}/{chance.randint(1, 12):02d}/2024" for _ in range(300)]
    rows = [f"u{i % 20},i{i * 7 % 43},{i % 5},{date},Item no. {i * 7 % 43}" for i, date in enumerate(dates)]
    path = folder / name
    path.write_text("\n".join([*filter(None, [header]), *rows]))
    return path


def test_usual_names_need_no_options(tmp_path):
    path = orders(tmp_path, "customer,product,stars,when,product_name")
    _, told = call("run", "popularity", path, *FEW, "--folder", tmp_path / "a")
    assert told.count("notice:") == 1 and "with the month first" in told
    settings = Settings.from_toml(tmp_path / "a" / "config.toml")
    assert settings.reading == {} and "[reading]" not in settings.to_toml()
    answer, told = call("recommend", tmp_path / "a", "--user", "u3", "-k", 2)
    assert [item["title"] for item in answer["items"]] == [f"Item no. {item['item'][1:]}" for item in answer["items"]]
    assert told.strip() == "loading…", "what there was to say was said by the run"


def test_wherever_data_is_read_it_is_said_in_the_same_way():
    assert tuple(ReadingOptions.__annotations__) == READING
    assert set(READING) <= set(inspect.signature(confed.run).parameters)
    commands = typer.main.get_command(app).commands
    of_data = commands["data"].commands
    for command in (
        commands["run"],
        commands["compare"],
        commands["recommend"],
        of_data["describe"],
        of_data["import"],
    ):
        assert {"--user-column", "--title-column", "--no-header", "--encoding", "--time"} <= {
            flag for option in command.params for flag in (*option.opts, *option.secondary_opts)
        }


ODD = ("--no-header", "--encoding", "latin-1", "--separator", "\\t", "--title-column", "4", "--timestamp-column", "3")


def odd(folder):
    """Tabs, no header, an old encoding; rows in the order of time."""
    rows = [f"Jörg {i % 20}\tW{i * 7 % 43}\t{i}\tSchlüssel {i * 7 % 43}" for i in range(300)]
    path = folder / "odd.csv"
    path.write_bytes("\n".join(rows).encode("latin-1"))
    return path


def test_whatever_a_file_is_like_a_run_knows_it_again(tmp_path):
    path = odd(tmp_path)
    call("run", "popularity", path, *FEW, *ODD, "--folder", tmp_path / "a")
    assert Settings.from_toml(tmp_path / "a" / "config.toml").reading == {
        "timestamp": "3",
        "title": "4",
        "separator": "\t",
        "header": False,
        "encoding": "latin-1",
    }
    answer, _ = call("recommend", tmp_path / "a", "--user", "Jörg 3", "-k", 2)
    assert [one["title"] for one in answer["items"]] == [f"Schlüssel {one['item'][1:]}" for one in answer["items"]]
    out = ("--out", tmp_path / "runs")
    assert call("compare", "popularity", "ease", "--dataset", path, *FEW, *ODD, *out)[0]["methods"][0]["users"] == 20
    answer, _ = call("recommend", path, "--user", "Jörg 3", "--method", "ease", *ODD, "--runs", tmp_path / "runs")
    assert answer["items"][0]["title"].startswith("Schlüssel")


def test_python_says_it_by_keywords(tmp_path):
    told = {"header": False, "encoding": "latin-1", "separator": "\t", "timestamp": "3", "title": "4"}
    few = {"negatives": 15, "cutoffs": [5, 10]}
    run = confed.run("popularity", odd(tmp_path), **told, options=few)
    assert run.recommend("Jörg 3", 1)[0].title.startswith("Schlüssel")
    fitted = confed.Recommender("popularity", **few).fit(odd(tmp_path), **told)
    assert fitted.recommend("Jörg 3", 1) == run.recommend("Jörg 3", 1)
    assert confed.load_dataset(odd(tmp_path), **told).titles["W0"] == "Schlüssel 0"


def test_the_order_of_rows_may_be_trusted(tmp_path):
    """It is no part of the content: a run that did not trust it is not taken for one that does."""
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["user,item", *(f"u{i % 20},i{i * 7 % 43}" for i in range(300))]))
    asked = ("recommend", path, "--user", "u3", "--method", "popularity", "--runs", tmp_path / "runs")
    for more, fresh in (((), True), (("--time", "order"), True), (("--time", "order"), False)):
        _, told = call(*asked, *more)
        assert ("trained: " in told) == fresh
    with pytest.raises(ConfedError, match=r'time="real" needs a column of time stamps'):
        call(*asked, "--time", "real")


def test_a_run_remembers_how_its_file_is_read(tmp_path, monkeypatch):
    path = orders(tmp_path)
    arguments = ("run", "mf", path, *FEW, *COLUMNS, "--rounds", 2, "--date-order", "dmy", "--folder", tmp_path / "a")
    summary, told = call(*arguments)
    assert "notice" not in told
    settings = Settings.from_toml(tmp_path / "a" / "config.toml")
    assert settings.reading == {
        "user": "who",
        "item": "what",
        "rating": "liked",
        "timestamp": "on",
        "date_order": "dmy",
    }
    monkeypatch.chdir(tmp_path / "a")
    assert call("recommend", ".", "--user", "u3")[0]["items"]
    assert call("run", "--resume", ".")[0]["hr@10"] == summary["hr@10"]
    assert call("run", "--resume", ".", "--rounds", 3)[0]["rounds"] == 3
    assert Settings.from_toml(tmp_path / "a" / "config.toml").reading == settings.reading
    call("report", ".")
    with pytest.raises(ConfedError, match="--resume takes the run's own settings"):
        call("run", "--resume", ".", "--user-column", "who")


def test_the_order_of_dates_counts(tmp_path):
    path = orders(tmp_path)
    hashes = {
        order: call("data", "describe", path, *COLUMNS, "--date-order", order)[0]["content_hash"]
        for order in ("dmy", "mdy")
    }
    assert hashes["dmy"] != hashes["mdy"]
    for order, found in hashes.items():
        call("run", "popularity", path, *FEW, *COLUMNS, "--date-order", order, "--folder", tmp_path / order)
        assert Settings.from_toml(tmp_path / order / "config.toml").content_hash == found


def test_a_comparison_takes_them_and_says_once_what_it_guessed(tmp_path):
    path = orders(tmp_path)
    answer, told = call(
        *("compare", "popularity", "ease", "--dataset", path, "--seeds", 2, *FEW, *COLUMNS, "--out", tmp_path / "runs")
    )
    assert [summary["users"] for summary in answer["methods"]] == [20, 20]
    assert told.count("notice:") == 1
    read = {Settings.from_toml(file).reading["user"] for file in tmp_path.glob("runs/*/config.toml")}
    assert read == {"who"}


def test_they_count_for_every_domain(tmp_path):
    book, song = orders(tmp_path, name="b.csv"), orders(tmp_path, name="s.csv")
    few = (*FEW, "--set", "more_negatives=20", "--date-order", "mdy")
    summary, _ = call("run", "popularity", f"book={book},song={song}", *few, *COLUMNS, "--folder", tmp_path / "a")
    assert set(summary["domains"]) == {"book", "song"}
    assert call("recommend", tmp_path / "a", "--user", "u3", "--domain", "song")[0]["items"]


def test_without_header_a_column_is_a_number(tmp_path):
    path = orders(tmp_path, header="")
    arguments = ("--item-column", "5", "--date-order", "dmy", "--folder", tmp_path / "a")
    call("run", "popularity", path, *FEW, *arguments)
    assert call("recommend", tmp_path / "a", "--user", "u3", "-k", 1)[0]["items"][0]["item"].startswith("Item no.")


def test_a_config_file_may_say_them(tmp_path):
    config = tmp_path / "run.toml"
    told = f'method = "popularity"\ndataset = "{orders(tmp_path)}"\nuser = "who"\nitem = "what"\ndate_order = "dmy"\n'
    config.write_text(f"{told}[options]\nnegatives = 15\ncutoffs = [5, 10]\n")
    call("run", "--config", config, "--timestamp-column", "on", "--folder", tmp_path / "a")
    read = Settings.from_toml(tmp_path / "a" / "config.toml").reading
    assert read == {"user": "who", "item": "what", "timestamp": "on", "date_order": "dmy"}
    config.write_text(told.replace('"who"', "1"))
    with pytest.raises(ConfedError, match=r"run\.toml: user = 1 should be of type str"):
        call("run", "--config", config)


@pytest.mark.parametrize("command", [("run", "popularity"), ("compare", "popularity", "ease", "--dataset")])
def test_a_registered_dataset_is_read_as_it_is(command, tmp_path):
    with pytest.raises(ConfedError, match=r"ml-100k: a registered dataset takes no options, got user="):
        call(*command, "ml-100k", "--user-column", "who", "--out", tmp_path / "runs")
    with pytest.raises(ConfedError, match="unknown date order"):
        call(*command, orders(tmp_path), *COLUMNS, "--date-order", "dym", "--out", tmp_path / "runs")
    assert [path.name for path in tmp_path.iterdir()] == ["orders.csv"]
