"""Names are data: whatever is in them, commands print them as they are, and no terminal obeys them."""

import ast
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import confed
from confed.cli import output

NASTY = "[/bold][red]x\x1b[31m\x07\r\u202e</script>"
SHOWN = r"[/bold][red]x\x1b[31m\x07\r\u202e"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
FILE = f"{NASTY.replace('/', '|')}.parquet"
FILE_SHOWN = rf"{SHOWN.replace('/', '|')}<|script>.parquet"


def rows(before=""):
    return [
        (f"{user}{NASTY}", f"{before}{user * place % 61}{NASTY}", f"title {user * place % 61} {NASTY}", place)
        for user in range(1, 25)
        for place in range(1, 17)
    ]


def write(path, before=""):
    frame = pl.DataFrame(rows(before), schema=["user", "item", "title", "timestamp"], orient="row")
    frame.write_parquet(path)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a nasty name, with a file and imports that have one too."""
    home = tmp_path / NASTY.replace("/", "|")
    home.mkdir()
    write(home / FILE)
    write(home / "other.parquet", "o")
    shelf = tmp_path / "cache" / "imported"
    shelf.mkdir(parents=True)
    write(shelf / FILE)
    monkeypatch.setenv("CONFED_CACHE", str(tmp_path / "cache"))
    return home


@pytest.fixture
def say(confed, place, monkeypatch):
    """Call a command in the nasty folder; what it printed, in which nothing may be obeyed."""
    monkeypatch.chdir(place)

    def call(*arguments, code=0):
        found, out, err = confed(*arguments)
        assert found == code, err
        assert not OBEYED.search(out), OBEYED.search(out)
        assert not OBEYED.search(err), OBEYED.search(err)
        return out + err

    return call


def joined(text):
    """As if no table had wrapped anything."""
    return re.sub(r"[\s│┃]", "", text)


def test_training_comparing_and_recommending(say, place):
    text = say("run", "ease", FILE, "--folder", f"run {NASTY.replace('/', '|')}")
    assert joined(FILE_SHOWN) in joined(text)
    (folder,) = (path for path in place.iterdir() if path.is_dir())
    assert joined(FILE_SHOWN) in joined(say("compare", "ease", "popularity", "--dataset", FILE))
    user, item = f"3{NASTY}", f"9{NASTY}"
    text = say("recommend", folder, "--user", user)
    assert joined(f"for 3{SHOWN}") in joined(text) and "title" in text
    assert joined(SHOWN) in joined(say("recommend", FILE, "--user", user, "--method", "popularity"))
    assert joined(SHOWN) in joined(say("recommend", folder, "--history", item))
    csv = FILE.replace("parquet", "csv")
    assert FILE_SHOWN.replace("parquet", "csv") in say("recommend", folder, "--all", "--out", csv)
    told = json.loads(say("recommend", folder, "--user", user, "--json").removesuffix("loading…\n"))
    assert told["user"] == user and NASTY in told["items"][0]["item"]


def test_likeness_and_the_report(say, place):
    say("run", "fedmf", FILE, "--rounds", 3, "--folder", "here", "--set", "dim=4")
    assert joined(f"like 9{SHOWN}") in joined(say("similar", "here", f"9{NASTY}"))
    say("report", "here", "--out", f"{FILE}.html")
    page = (place / f"{FILE}.html").read_text("utf-8")
    samples = page.partition('<section id="samples">')[2].partition("</section>")[0]
    assert "</script>" not in samples and r"[/bold][red]x\x1b[31m\x07\r\u202e&lt;/script&gt;" in samples
    assert not OBEYED.search(samples)


def test_data(say, place):
    assert joined(FILE_SHOWN.removesuffix(".parquet")) in joined(say("data", "list"))
    assert joined(FILE_SHOWN.removesuffix(".parquet")) in joined(say("data", "describe", FILE))
    say("data", "import", FILE, "--name", "mine")
    say("data", "describe", "a=other.parquet,b=other.parquet")
    assert joined(SHOWN.replace("/", "|")) in joined(say("data", "remove", FILE.removesuffix(".parquet")))


@pytest.mark.parametrize(
    "line",
    [
        ["run", NASTY, FILE],
        ["run", "ease", f"missing {FILE}"],
        ["run", "ease", FILE, "--set", f"{NASTY}=3"],
        ["run", "ease", FILE, "--set", f"regularisation={NASTY}"],
        ["run", "ease", FILE, "--user-column", NASTY],
        ["run", "ease", FILE, "--protocol", NASTY],
        ["run", f"--{NASTY}"],
        ["run", "--resume", NASTY],
        ["run", "--config", NASTY],
        [NASTY],
        ["recommend", FILE, "--user", f"nobody {NASTY}", "--method", "popularity"],
        ["recommend", NASTY, "--user", "x"],
        ["similar", NASTY, NASTY],
        ["report", NASTY],
        ["data", "get", NASTY],
        ["data", "describe", f"missing {FILE}"],
        ["data", "describe", f"a{NASTY}=other.parquet,b=other.parquet"],
        ["data", "import", FILE, "--name", NASTY],
        ["data", "import", "--domain", f"{NASTY}=other.parquet", "--domain", "b=other.parquet", "--name", "x"],
        ["data", "remove", NASTY],
        ["methods", "show", NASTY],
    ],
    ids=lambda line: " ".join(line[:2]).replace(NASTY, "NASTY").replace(FILE, "FILE"),
)
def test_mistakes(say, line):
    assert r"\x1b" in say(*line, code=2)


def test_a_path_that_is_no_text(say, place):
    (place / "x\udcff.parquet").write_bytes((place / FILE).read_bytes())
    assert "the path is not in UTF-8" in say("run", "popularity", "x\udcff.parquet", code=2)
    assert not (place / "runs").exists()


def test_a_method_of_another_package(say, monkeypatch, tmp_path):
    name, broken = "x[red]\x1b[31m[/bold]", "y[red]\x1b[31m[/bold]"
    about = tmp_path / "elsewhere-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    points = f"[confed.methods]\n{name} = nasty_method:Nasty\n{broken} = nowhere:Nothing\n"
    (about / "entry_points.txt").write_text(points)
    (tmp_path / "nasty_method.py").write_text(
        f"from confed.methods.popularity import Popularity\n"
        f"class Nasty(Popularity):\n    name, title, citation = {name!r}, {NASTY!r}, {NASTY!r}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    listed = joined(say("methods"))
    assert r"x[red]\x1b[31m[/bold]" in listed and joined(SHOWN) in listed and r"y[red]\x1b[31m" in listed
    assert SHOWN in say("methods", "show", name)
    assert r"\x1b[31m" in say("methods", "show", broken, code=2)
    assert r"x[red]\x1b[31m[/bold]" in say("run", name, FILE)


def test_json_is_ascii_whatever_is_in_it(capsys):
    told = {"title": "Amélie \u202e\x9b\x1b\ud800"}
    output.emit(told, True, lambda: None)
    text = capsys.readouterr().out
    assert text.isascii() and json.loads(text) == told


def test_long_values_do_not_fill_the_screen(capsys):
    output.console.print("x" * 10**6)
    assert len(capsys.readouterr().out) < 20_000


def test_a_terminal_gets_no_more_than_a_pipe(place):
    """Bars are drawn on a terminal only; what stands beside them is data, too."""
    code = (
        "from confed.cli.progress import live_progress\n"
        "from types import SimpleNamespace as Of\n"
        f"name = {NASTY!r}\n"
        "with live_progress() as listen:\n"
        "    listen({'round': 1, 'loss': None, 'views': {}, 'waiting': name}, Of(method=name, seed=0, rounds=1))\n"
    )
    shown = on_a_terminal([sys.executable, "-c", code])
    assert "[red]x\\x1b[31m\\x07" in shown and "\x1b[31m" not in shown and "\x07" not in shown and "\u202e" not in shown


def on_a_terminal(command):
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    done = subprocess.run(command, stdout=slave, stderr=slave, stdin=slave, timeout=120, check=True, env=env)
    assert done.returncode == 0
    os.close(slave)
    found = b""
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError:
            break
        if not part:
            break
        found += part
    os.close(master)
    return found.decode()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_without_unicode_is_no_reason_to_fail(encoding, place):
    command = [sys.executable, "-m", "confed.cli.main", "data", "list"]
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    shown = subprocess.run(command, capture_output=True, check=True, env=env)
    assert rb"[red]x\x1b" in shown.stdout


PRINTERS = {"print", "echo", "secho", "Console", "Text", "TextColumn", "Progress", "from_markup", "pprint", "Panel"}
SWITCHES = {"markup", "highlight", "emoji"}


@pytest.mark.parametrize("path", sorted(Path(output.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_nobody_prints_around_the_one_printer(path):
    if path.name == "output.py":
        return
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        where = f"{path.name}, line {getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Call):
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            owner = called.value.id if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) else ""
            ours = owner in {"console", "err_console"} and name == "print"
            assert ours or name not in PRINTERS, f"{where}: {name} is for cli/output.py"
            assert not SWITCHES & {keyword.arg for keyword in node.keywords}, f"{where}: names would be obeyed"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sys":
            assert node.attr not in {"stdout", "stderr"}, f"{where}: sys.{node.attr} is for cli/output.py"


def test_in_python_names_are_shown_too(tmp_path, capsys):
    frame = pl.DataFrame(rows(), schema=["user", "item", "title", "timestamp"], orient="row")
    data = confed.Interactions.of(frame, name=NASTY)
    assert not OBEYED.search(repr(data)) and SHOWN in repr(data)
    assert not OBEYED.search(str(confed.ConfedError(NASTY)))
    path = tmp_path / FILE
    write(path)
    run = confed.run("popularity", path)
    for text in (repr(run), run._repr_html_(), repr(run.recommend(f"3{NASTY}")), capsys.readouterr().err):
        assert not OBEYED.search(text) and "</script>" not in text.replace(repr(NASTY)[1:-1], "")


def test_what_styles_is_explicit(capsys):
    output.console.print(output.styled(NASTY, "bold"))
    assert SHOWN in capsys.readouterr().out
    assert output.styled(NASTY, "bold").style == "bold"
