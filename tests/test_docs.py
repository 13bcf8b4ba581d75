"""What the docs say holds: their Python runs, and their links lead somewhere."""

import re
from pathlib import Path

import polars as pl
import pytest

from tests import realdata

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def named(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", [page for page in PAGES if PYTHON.search(page.read_text("utf-8"))], ids=named)
def test_python_runs_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    if "ml-100k" in text:
        realdata.require("ml-100k")
    rows = [(user, f"item {user * item % 211}") for user in range(1, 31) for item in range(1, 25)]
    mine = pl.DataFrame(
        [("alice" if user == 1 else str(user), item) for user, item in rows], schema=["user", "item"], orient="row"
    )
    names = {"my_dataframe": mine}
    for block in PYTHON.findall(text):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text("utf-8")):
        if not re.match(r"\w+:", target):
            file, _, place = target.partition("#")
            there = page.parent / file if file else page
            assert there.exists(), f"{page.name} links to {target}"
            if place:
                assert place in {slug(heading) for heading in HEADING.findall(there.read_text("utf-8"))}, target


def slug(heading: str) -> str:
    """How a heading is linked to."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
