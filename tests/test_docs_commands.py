"""Every command that the docs print is run, page by page, in order, in an empty folder.

Datasets of the catalogue are small ones here, and runs take two rounds: what is tested is that each command does what
its page says it does, one after another. What it prints on the real data is tested where its figures are stored.
"""

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from confed.cli import progress
from confed.cli.main import main
from confed.data import registry
from confed.data.domains import Domains
from confed.data.synthetic import synthetic
from confed.data.synthetic_domains import synthetic_domains
from tests.test_docs import PAGES, named

NEEDS_A_CLUSTER = "--address auto"
"""tests/federations/test_ray.py has one."""
GENTLE = {"fed3cr": ["--set", "item_rate=1.0"], "fedrap": ["--set", "item_rate=1.0"]}
"""Steps that are meant for thousands of items explode where there are few."""
FEWER = ["--set", "negatives=50", "--set", "select_metric=mrr@51"]
"""`cold` ranks 999 candidates, which small data has not."""
STARTS_PROCESSES = {"places.md"}


def commands(page):
    """The lines of fenced blocks that call us, without what stands behind a #."""
    fenced = False
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced and line.startswith("confed ") and NEEDS_A_CLUSTER not in line:
            yield shlex.split(line, comments=True)[1:]


WITH_COMMANDS = [page for page in PAGES if any(commands(page))]
MARKED = [
    pytest.param(page, marks=pytest.mark.apart if page.name in STARTS_PROCESSES else (), id=named(page))
    for page in WITH_COMMANDS
]


@pytest.fixture
def small_world(tmp_path, monkeypatch):
    """Small datasets by the names of the catalogue, and the files that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONFED_CACHE", str(tmp_path / "cache"))
    people = synthetic(users=60, items=190, interactions_per_user=40, skew=0.0, seed=1)
    companies = synthetic_domains(domains=2, users=100, items=300, interactions_per_user=15, seed=1)
    monkeypatch.setattr(registry, "_registered", lambda entry, *_: replace(people, name=entry.name))
    monkeypatch.setattr(
        registry,
        "_registered_domains",
        lambda entry, *_: Domains.of(dict(zip(entry.domains, companies.parts.values(), strict=False)), name=entry.name),
    )
    monkeypatch.setattr(progress, "is_at_hand", lambda name: True)
    rows = [
        (f"K-{user:04}", f"{'AB'[item % 2]}-{user * item % 97}", f"2024-05-{1 + item % 28:02}")
        for user in range(1, 41)
        for item in range(1, 25)
    ]
    rows += [("42", item, stamp) for _, item, stamp in rows[:20]]
    for name, header in {
        "orders": ["customer", "product", "when"],
        "books": ["customer", "book", "when"],
        "music": ["customer", "track", "when"],
        "customers": ["who", "what", "when"],
    }.items():
        pl.DataFrame(rows, schema=header, orient="row").write_csv(f"{name}.csv")
    pl.DataFrame(rows, schema=["who", "what", "on"], orient="row").with_columns(liked=1).write_csv("log.csv")
    return tmp_path


def shortened(words):
    """The same on small data: two rounds, and the newest folder where a name ends in …"""
    words = [newest(word) if word.endswith("…") else word for word in words]
    if words[0] not in ("run", "compare") or {"--resume", "--like"} & set(words):
        return words
    if "--rounds" in words:
        words[words.index("--rounds") + 1] = "2"
    else:
        words += ["--rounds", "2"]
    return words + GENTLE.get(words[1], []) + (FEWER if "cold" in words else [])


def newest(name):
    found = sorted(Path().glob(name.replace("…", "*")), key=os.path.getmtime)
    assert found, f"no folder {name}: the page speaks of a run that it did not make"
    return str(found[-1])


@pytest.mark.parametrize("page", MARKED)
def test_commands_run_as_printed(page, small_world, monkeypatch, capsys):
    for words in commands(page):
        monkeypatch.setattr(sys, "argv", ["confed", *shortened(words)])
        with pytest.raises(SystemExit) as ended:
            main()
            sys.exit(0)
        shown = capsys.readouterr()
        assert not ended.value.code, f"{page.name}: confed {' '.join(words)}\n{shown.err}"


def test_pages_have_commands():
    """So that the pattern above cannot miss them all."""
    assert {"README.md", "tutorial.md", "data.md", "places.md"} <= {page.name for page in WITH_COMMANDS}
