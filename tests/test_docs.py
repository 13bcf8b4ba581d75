"""What the docs say holds: their Python runs, and their links and the citations of decisions lead somewhere."""

import re
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from confed.methods.registry import METHODS
from tests import realdata

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
PAGE = "decisions.md"
DECISION = re.compile(r"\bD-(\d+)(?:\s+to\s+D-(\d+))?")
SECTION = re.compile(re.escape(PAGE) + r'[\s#]+"([^"]+)"')
ENTRY = re.compile(r"D-(\d+): .+")


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


@cache
def repository() -> dict[str, str]:
    """Every text file that is tracked, or would be with the next commit, by its path."""
    # CI may check out as another user than the one who runs the tests, which git refuses unless told.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    texts = {}
    for path in sorted({ROOT / name for name in listed.split("\0") if name}):
        if path.is_file() and b"\0" not in (content := path.read_bytes()):
            texts[path.relative_to(ROOT).as_posix()] = content.decode("utf-8")
    return texts


def decisions() -> str:
    return repository()[f"docs/{PAGE}"]


def sections(page: str) -> dict[str, str]:
    """The text below every heading, up to the next one."""
    _, *parts = HEADING.split(page)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def entries(page: str) -> list[int]:
    """The numbers of the decisions that the page has, in its order."""
    return [int(found[1]) for heading in HEADING.findall(page) if (found := ENTRY.fullmatch(heading))]


def cited(text: str) -> set[int]:
    """The numbers of the decisions that `text` cites; a range cites all of its own."""
    ranges = [(int(first), int(last or first)) for first, last in DECISION.findall(text)]
    return {number for first, last in ranges for number in range(first, last + 1)}


def dangling(text: str, page: str) -> set[str]:
    """Decisions and sections that `text` cites and the page does not have."""
    numbers = cited(text) - set(entries(page))
    names = {" ".join(name.split()) for name in SECTION.findall(text)}
    return {f"D-{number}" for number in numbers} | (names - sections(page).keys())


def dead(page: str, texts: Iterable[str], methods: Iterable[str]) -> set[int]:
    """Decisions of the page that neither `texts` nor the section of a method cites."""
    own = [text for name, text in sections(page).items() if name in set(methods)]
    return set(entries(page)).difference(*map(cited, [*texts, *own]))


def without_section(page: str, methods: Iterable[str]) -> set[str]:
    return {name for name in methods if not sections(page).get(name, "").strip()}


def naming(texts: Mapping[str, str], name: str) -> list[str]:
    """The files that name a page."""
    return [path for path, text in texts.items() if name in text]


def test_nothing_refers_to_a_page_outside_the_repository():
    assert naming(repository(), "methods" + ".md") == []


def test_citations_of_decisions_lead_somewhere():
    page = decisions()
    assert {path: found for path, text in repository().items() if (found := dangling(text, page))} == {}


def test_every_decision_is_used():
    sources = [text for path, text in repository().items() if path.startswith("src/")]
    assert dead(decisions(), sources, METHODS) == set()


def test_decisions_are_numbered_once_and_in_order():
    numbers = entries(decisions())
    assert numbers == sorted(set(numbers))


def test_every_method_has_its_section():
    assert without_section(decisions(), METHODS) == set()


MADE_UP = (
    "# Page\n\n### Splits\n\nSee D-1.\n\n### D-1: one\n\nSee D-2.\n\n### D-2: two\n\n### mf\n\nD-3.\n\n### D-3: three\n"
)


def test_a_dangling_citation_is_found():
    assert dangling(f'D-1 and {PAGE} "Splits", or\n# {PAGE}\n# "mf"', MADE_UP) == set()
    assert dangling(f"decided (D-{44}) and (D-2 to D-{4})", MADE_UP) == {f"D-{number}" for number in (4, 44)}
    assert dangling(f'{PAGE} "Split" and {PAGE}\n"No such\nsection"', MADE_UP) == {"Split", "No such section"}


def test_a_decision_that_nothing_rests_on_is_found():
    assert dead(MADE_UP, ["as D-1 has it"], ["mf"]) == {2}
    assert dead(MADE_UP, ["D-1 to D-2"], []) == {3}


def test_a_method_without_a_section_is_found():
    assert without_section(MADE_UP, ["mf", "ease", "D-3: three"]) == {"ease", "D-3: three"}


def test_a_page_outside_the_repository_is_found():
    assert naming({"a.py": "see elsewhere.md 3.1", "b.py": "see here.md"}, "elsewhere.md") == ["a.py"]
