"""The page of a run, as text; tests/report/test_browser.py looks at it in a browser."""

from html.parser import HTMLParser

import pytest

import confed
from confed.report import write_report
from confed.report.sections import sections
from confed.testing import tiny_domains
from confed.testing.tiny import interactions

SETTINGS = {"rounds": 3, "options": {"dim": 4, "clusters": 4, "negatives": 15, "cutoffs": "5,10"}}

TWO_VIEWS = ("Two views of the items", "What the two views have in common", "Consensus degradation")


@pytest.fixture(scope="module")
def cofedrec_run(tmp_path_factory):
    return confed.run("cofedrec", interactions(), out=tmp_path_factory.mktemp("runs"), **SETTINGS)


@pytest.fixture(scope="module")
def page(cofedrec_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(cofedrec_run, path).read_text("utf-8")


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.addresses, self.figures = [], 0

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.addresses += [found[name] for name in ("src", "href", "data", "action") if name in found]
        self.figures += (found.get("id") or "").startswith("figure-")


def test_every_picture_of_cofedrec_is_there(cofedrec_run):
    titles = [section.title for section in sections(cofedrec_run)]
    assert titles == [
        "Learning curves",
        "Time and traffic",
        "Who was in the similar group",
        "The elbow",
        "Items by category",
        "K-Means on clients",
    ]


def test_the_page_asks_for_nothing_and_is_small(page):
    tags = Tags()
    tags.feed(page)
    assert tags.addresses == ["data:,"]
    assert tags.figures == 10
    assert "default-src 'none'" in page
    assert len(page.encode()) < 6_000_000


def test_names_from_the_data_are_escaped(cofedrec_run):
    from confed.report.page import render

    cofedrec_run.summary = {**cofedrec_run.summary, "dataset": "<script>alert(1)</script>"}
    try:
        assert "<script>alert(1)</script>" not in render(cofedrec_run, [])
    finally:
        cofedrec_run.summary = cofedrec_run.folder.summary()


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("pfedrec", {"Learning curves", "Time and traffic", "K-Means on clients", "Two views of the items"}),
        ("fed3cr", {"Learning curves", "Time and traffic", *TWO_VIEWS}),
        ("fedrap", {"Learning curves", "Time and traffic", *TWO_VIEWS}),
        ("popularity", {"Learning curves", "Time and traffic"}),
        ("local-only", {"Learning curves", "Time and traffic"}),
    ],
)
def test_other_methods_show_what_they_have(method, expected, tmp_path):
    options = {"negatives": 15, "cutoffs": "5,10", **({"item_rate": 1.0} if method == "fed3cr" else {})}
    run = confed.run(method, interactions(), out=tmp_path, rounds=2, options=options)
    assert {section.title for section in sections(run)} == expected


FEW = {"negatives": 15, "more_negatives": [20], "cutoffs": [5, 10]}
COMMON = ["Learning curves", "Every domain by itself", "Time and traffic"]
NOISE, USERS = "Noise on what companies send", "How the companies see their users"


@pytest.fixture(scope="module")
def silo_run(tmp_path_factory):
    options = {**FEW, "dim": 8, "upload_clip": 1.0, "upload_noise": 0.5}
    out = tmp_path_factory.mktemp("runs")
    return confed.run("fppdm++", tiny_domains.domains(), out=out, rounds=2, options=options)


def test_a_run_between_companies_shows_domains_noise_and_users(silo_run):
    heard = []
    found = {section.title: section for section in sections(silo_run, heard.append)}
    assert list(found) == heard == [*COMMON, NOISE, USERS]
    assert len(found[COMMON[1]].figures) == 3 and len(found[COMMON[0]].figures) == 2  # the loss is the domains'
    assert len(found[USERS].figures) == 3
    assert "clipped to length 1;" in found[NOISE].text and "deviation 0.5." in found[NOISE].text
    assert "a client is a company" in found["Time and traffic"].text


def test_the_page_of_several_domains_has_a_row_for_each(silo_run, tmp_path):
    page = write_report(silo_run, tmp_path / "report.html").read_text("utf-8")
    tags = Tags()
    tags.feed(page)
    assert tags.addresses == ["data:,"] and tags.figures == 12
    assert len(page.encode()) < 6_000_000
    for view, metrics in silo_run.summary["views"].items():
        for domain, values in metrics["domains"].items():
            cells = (f"<td class='number'>{values[prefix + 'hr@10']:.2f}</td>" for prefix in ("", "neg20_", "full_"))
            row = page.split(f"<tr><td>{view}, {domain}</td>")[1].split("</tr>")[0]
            assert all(cell in row for cell in cells)


@pytest.mark.parametrize(
    ("method", "options", "more"),
    [
        ("fppdm", {"dim": 4}, [USERS]),
        ("fppdm++", {"dim": 4, "variant": "alone"}, [USERS]),
        ("fedmf-silo", {"dim": 4}, []),
        ("popularity", {}, []),
    ],
)
def test_other_methods_on_several_domains_show_what_they_have(method, options, more, tmp_path):
    run = confed.run(method, tiny_domains.domains(), out=tmp_path, rounds=1, options={**FEW, **options})
    assert [section.title for section in sections(run)] == [*COMMON, *more]
    assert run.state_round == run.summary["best_round"]
