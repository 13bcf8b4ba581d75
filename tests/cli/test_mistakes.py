"""What people get wrong, at least five mistakes a command: a message that names the remedy, exit code 2, nothing left
behind, no traceback.
"""

import polars as pl
import pytest

LONG = "x" * 300
TINY = "synthetic:users=40,items=80,seed=2"
GOOD = [
    ("customer", "product", "when"),
    *((f"K-{u}", f"W{u * i % 61}", f"2024-05-{1 + i % 28:02}") for u in range(1, 21) for i in range(1, 15)),
]
FILES = {
    "good.csv": "\n".join(map(",".join, GOOD)),
    "empty.csv": "",
    "header.csv": "customer,product,when\n",
    "words.csv": "this is a text\nwithout any table in it\n",
    "unknown.csv": "a,b,c\n1,2,3\n",
    "days.csv": "customer,product,when\nK-1,W1,2024-05-01\nK-1,W2,tomorrow\n",
    "stars.csv": "customer,product,rating\nK-1,W1,5\nK-1,W2,good\n",
    "ragged.csv": "customer,product\nK-1,W1\nK-1,W2,W3\n",
    "nobody.csv": "customer,product\nK-1,W1\n,W2\n",
    "short.csv": "customer,product\nK-1,W1\nK-2,W2\n",
    "twice.csv": "customer,product,customer\nK-1,W1,K-2\n",
    "bad.toml": "method = \n",
    "bad.jsonl": '{"user": "a", "item": "x"}\n{"user": \n',
}

MISTAKES = {
    "run": [
        ("", "say what to run"),
        ("pfedrec", "say what to run"),
        (f"pfedrce {TINY}", "did you mean pfedrec"),
        ("pfedrec ml-100", "did you mean ml-100k"),
        ("pfedrec nowhere.csv", "nowhere.csv"),
        ("pfedrec empty.csv", "empty"),
        ("pfedrec header.csv", "header.csv"),
        ("pfedrec words.csv", "words.csv"),
        ("pfedrec unknown.csv", "--user-column"),
        ("pfedrec days.csv", "days.csv, line 3: the time stamp is 'tomorrow'"),
        ("pfedrec stars.csv", "stars.csv, line 3: the rating is 'good'"),
        ("pfedrec ragged.csv", "ragged.csv, line 3"),
        ("pfedrec nobody.csv", "nobody.csv, line 3: the user id is empty"),
        ("pfedrec short.csv", "nobody has 3 items"),
        ("pfedrec bad.jsonl", "bad.jsonl, line 2"),
        ("pfedrec twice.csv", "twice.csv: columns 1 and 3 are both called 'customer'"),
        ("pfedrec /dev/zero", "/dev/zero is a device"),
        (f"pfedrec {LONG}.csv", "File name too long"),
        ("pfedrec ~nobody-has-this-name/a.csv", "no such file"),
        ("pfedrec synthetic:items=10000000000000", "would take 640 TB, the limit is"),
        ("pfedrec good.csv --user-column who", "there is no column 'who'"),
        ("pfedrec good.csv --date-order dym", "did you mean mdy or dmy"),
        (f"pfedrec {TINY} --set dmi=4", "did you mean dim"),
        (f"pfedrec {TINY} --set dim", "write it as key=value"),
        (f"pfedrec {TINY} --set dim=-1", "dim = -1"),
        (f"pfedrec {TINY} --set learning_rate=fast", "learning_rate = 'fast'"),
        (f"pfedrec {TINY} --set clusters=3", "it belongs to cofedrec"),
        (f"pfedrec {TINY} --set rounds=3", "a setting of the run: --rounds"),
        (f"pfedrec {TINY} --rounds 0", "rounds = 0"),
        (f"pfedrec {TINY} --protocol strictt", "did you mean strict"),
        (f"pfedrec {TINY} --protocol warm", "is one domain"),
        (f"fppdm {TINY}", "is for several domains"),
        (f"pfedrec {TINY} --engine procesess", "engine = 'procesess'"),
        (f"pfedrec {TINY} --workers 2", "workers does nothing with --engine local"),
        (f"ease {TINY} --engine processes", "it runs with --engine local"),
        (f"pfedrec {TINY} --no-holdout", "say --rounds, or --like RUN"),
        (f"pfedrec {TINY} --folder .", "already holds files"),
        (f"pfedrec {TINY} --folder x --seeds 2", "--folder holds one run"),
        ("--config nowhere.toml", "nowhere.toml: no such file"),
        ("--config bad.toml", "bad.toml: not valid TOML"),
        ("--resume nowhere", "not a run folder"),
        ("--resume nowhere --seed 1", "--resume takes the run's own settings"),
        (f"pfedrec {TINY} --rouns 3", "--rounds"),
    ],
    "compare": [
        ("pfedrec", "Missing option '--dataset'"),
        (f"pfedrec --dataset {TINY}", "compare takes two methods or more"),
        (f"pfedrec pfedrec --dataset {TINY}", "compare takes two methods or more"),
        (f"pfedrec esae --dataset {TINY}", "did you mean ease"),
        ("pfedrec ease --dataset ml-10k", "did you mean ml-1"),
        (f"pfedrec ease --dataset {TINY} --set dmi=4", "dmi"),
        (f"pfedrec ease --dataset {TINY} --seeds 0", "0 is not in the range"),
        (f"pfedrec fppdm --dataset {TINY}", "is for several domains"),
    ],
    "recommend": [
        ("good.csv", "say for whom"),
        ("--user 1", "say a run folder or a dataset"),
        ("god.csv --user 1", "god.csv"),
        (f"{LONG} --user 1", "unknown dataset"),
        (". --user 1", "if it holds run folders, say --latest"),
        ("--latest --user 1", "holds no finished run"),
        ("good.csv --all", "--all and --out belong together"),
        ("good.csv --all --out x.pdf", ".csv, .parquet or .jsonl"),
        ("good.csv --user K-1 --method pfedrce", "did you mean pfedrec"),
        ("good.csv --user K-1 -k 0", "0 is not in the range"),
        ("unknown.csv --user 1", "--user-column"),
    ],
    "similar": [
        ("", "Missing argument '[RUN] ITEM'"),
        ("nowhere", "`confed similar RUN ITEM`, or `confed similar --latest ITEM`"),
        ("nowhere 1", "not a run folder"),
        ("nowhere 1 2", "say a run folder and one item"),
        ("--latest 1", "runs: holds no finished run"),
        (f"{LONG} 1", "not a run folder"),
        (". 1", "not a run folder"),
        ("nowhere 1 -k 0", "0 is not in the range"),
    ],
    "report": [
        ("", "say the folder of a run, or --latest"),
        ("--latest", "runs: holds no finished run"),
        ("nowhere", "not a run folder"),
        (".", "not a run folder"),
        (". --latest", "holds no finished run"),
        (". --method pfedrec", "give --latest too"),
    ],
    "methods": [
        ("shwo", "show"),
        ("show", "Missing argument 'NAME'"),
        ("show pfedrce", "did you mean pfedrec"),
        ("show CoFedRec", "did you mean cofedrec"),
        ("--jsno", "--json"),
    ],
    "data": [
        ("lsit", "list"),
        ("get ml-100", "did you mean ml-100k"),
        ("describe ml-100", "did you mean ml-100k"),
        ("describe empty.csv", "empty"),
        ("describe good.csv --separator ;", "good.csv"),
        ("describe good.csv --format cvs", "did you mean csv"),
        ("describe good.csv --encoding utf-99", "utf-99"),
        ("describe good.csv --encoding punycode", "unknown text encoding 'punycode' (--encoding)"),
        ('describe good.csv --separator "', "fields cannot be separated by"),
        ("import good.csv", "Missing option '--name'"),
        ("import --name x", "give either one FILE, or --domain"),
        ("import good.csv --name ml-100k", "is the name of a registered dataset"),
        ("import good.csv --name a/b", "use letters, digits"),
        ("import --domain book --name x", "a domain is written as its name and its file"),
        ("remove nothing", "nothing"),
        ("remove ml-100k", "ml-100k"),
    ],
    "doctor": [("--jsno", "--json")],
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.setenv("CONFED_CACHE", str(tmp_path / ".cache"))
    return tmp_path


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [(command, words, message) for command, tried in MISTAKES.items() for words, message in tried],
)
def test_a_mistake_is_answered(command, words, message, place, confed):
    code, out, err = confed(command, *words.split())
    said = " ".join((out + err).replace("│", " ").split())
    assert message in said
    assert code == 2 and "Traceback" not in said
    assert {path.name for path in place.iterdir()} == set(FILES)


def test_every_command_has_its_mistakes():
    from confed.cli.main import app

    named = {command.name or command.callback.__name__ for command in app.registered_commands}
    groups = {group.name for group in app.registered_groups}
    assert named | groups == set(MISTAKES)
    assert {command for command, tried in MISTAKES.items() if len(tried) < 5} == {"doctor"}, "it has one option"


def test_the_good_file_is_good(place, confed):
    """So that none of the refusals above is for another reason."""
    assert pl.read_csv(place / "good.csv").height == len(GOOD) - 1
    assert confed("run", "popularity", "good.csv", "--folder", "run")[0] == 0
