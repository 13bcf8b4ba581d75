"""The page of a run, as text; tests/report/test_browser.py looks at it in a browser."""

import html
import re
from html.parser import HTMLParser

import plotly.graph_objects as go
import polars as pl
import pytest

import confed
from confed.analysis.style import figure
from confed.data.interactions import Interactions
from confed.errors import ConfedError
from confed.report import write_report
from confed.report.page import render
from confed.report.samples import samples
from confed.report.section import Picture, Section
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
    def __init__(self, page):
        super().__init__()
        self.addresses, self.figures, self.scripts = [], 0, 0
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.addresses += [found[name] for name in ("src", "href", "data", "action") if name in found]
        self.figures += (found.get("id") or "").startswith("figure-")
        self.scripts += tag == "script"


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
    tags = Tags(page)
    assert tags.addresses == ["data:,"]
    assert tags.figures == 12  # two of them folded away
    assert html.unescape(page).count("default-src 'none'") == 1
    assert len(page.encode()) < 6_000_000


def test_every_picture_has_a_sentence_and_what_is_folded_away_is_about_test_items(cofedrec_run):
    shown = list(sections(cofedrec_run))
    assert all(picture.said.endswith(".") for section in shown for picture in section.pictures)
    titles = [picture.figure.layout.title.text for picture in shown[0].pictures]
    assert titles[:2] == ["HR@10 on validation items", "NDCG@10 on validation items"]
    assert [p.figure.layout.title.text for p in shown[0].fold.pictures] == [
        "HR@10 on test items",
        "NDCG@10 on test items",
    ]
    assert [section.fold for section in shown[1:]] == [None] * 5


def test_names_have_their_meaning_and_views_are_explained(page):
    text = words(page)
    assert "15 sampled candidates all items ranked HR@10 NDCG@10 HR@10 NDCG@10" in text
    assert "full_" not in text.split("Everything that determines the run")[0]
    assert "pushed as the server's step left each client; judged by this" in text
    assert "HR@10: the share of held-out items that stand among the first 10." in text
    assert "in the view pushed, as the server's step left each client." in text


def words(page):
    """What is read, without styles and scripts."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_the_page_begins_with_what_the_method_does(page):
    top = words(page).split("Results")[0]
    assert (
        "CoFedRec: co-clustering federated recommendation (He et al., WWW 2024), as a plug-in on any backbone." in top
    )
    assert (
        "(each round the clients that agree with a random user on a random category of items get their own mean)" in top
    )


NASTY = "</script><script>alert(1)</script>{{ 6 * 7 }}{% raw %}<b>&amp;"


def test_whatever_the_data_says_is_text(tmp_path):
    """Ids, titles, the name of the dataset and figures: neither markup nor template."""
    rows = [(f"{user}{NASTY}", f"{item}{NASTY}") for user in range(12) for item in range(user, user + 12)]
    frame = pl.DataFrame(rows, schema=["user", "item"], orient="row")
    titles = {f"{item}{NASTY}": f"film {item} {NASTY}" for item in range(0, 24, 2)}
    data = Interactions.of(frame, titles=titles)
    run = confed.run("popularity", data, out=tmp_path, options={"negatives": 9, "cutoffs": "5,10"})
    run.summary = {
        **run.summary,
        "dataset": NASTY,
        "published": [{"source": NASTY, "ranking": NASTY, "hr": 1, "ndcg": 2}],
    }
    drawn = figure([go.Scatter(x=[1], y=[2], name=NASTY)], NASTY, NASTY, NASTY)
    shown = list(samples(run))
    page = render(run, [Section(NASTY, NASTY, [Picture(drawn, NASTY)])], shown)
    assert Tags(page).scripts == Tags(render(run, [], [])).scripts + 1  # the figure's data
    assert "<script>alert" not in page and "<b>" not in page
    text = words(page)
    assert text.count("{{ 6 * 7 }}{% raw %}") >= 6 and text.split(NASTY)[0].endswith("popularity on ")
    for name in {*shown[0].had, *shown[0].recommended, shown[0].user}:
        assert " ".join(name.split()) in text


def test_without_samples_nobody_is_on_the_page(cofedrec_run, page, tmp_path):
    assert "What is recommended" in words(page) and "--no-samples leaves it out" in words(page)
    bare = words(write_report(cofedrec_run, tmp_path / "page.html", samples=False).read_text("utf-8"))
    assert "What is recommended" not in bare and not re.search(r"User \d", bare)


def test_a_folder_that_is_not_there_is_named_and_not_made(cofedrec_run, tmp_path):
    with pytest.raises(ConfedError, match="nowhere: there is no such folder"):
        write_report(cofedrec_run, tmp_path / "nowhere" / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_popularity_is_a_dotted_line_and_a_row_where_the_run_knows_it(cofedrec_run, monkeypatch):
    older = {name: value for name, value in cofedrec_run.summary.items() if name != "popularity"}
    monkeypatch.setattr(cofedrec_run, "summary", older)
    assert "Dotted" not in next(sections(cofedrec_run)).pictures[0].said
    popularity = {"hr@10": 12.34, "ndcg@10": 5.67, "full_hr@10": 1.5}
    monkeypatch.setattr(cofedrec_run, "summary", {**cofedrec_run.summary, "popularity": popularity})
    hr, ndcg, loss = next(sections(cofedrec_run)).pictures
    text = words(render(cofedrec_run, []))
    assert hr.said.endswith("Dotted: popularity on test items, 12.3.")
    assert [shape.y0 for shape in ndcg.figure.layout.shapes] == [5.67, 0]  # the other marks the chosen round
    assert not loss.figure.layout.shapes
    assert "popularity every user gets the items that most users have 12.34 5.67 1.50 –" in text


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
    return confed.run("fppdm++", tiny_domains.domains(), out=out, rounds=2, options=options, all_views=True)


def test_a_run_between_companies_shows_domains_noise_and_users(silo_run):
    heard = []
    found = {section.title: section for section in sections(silo_run, heard.append)}
    assert list(found) == heard == [*COMMON, NOISE, USERS]
    assert len(found[COMMON[1]].pictures) == 3 and len(found[COMMON[0]].pictures) == 2  # the loss is the domains'
    assert len(found[USERS].pictures) == 6  # of three domains, before and after
    assert "clipped to length 1;" in found[NOISE].text and "deviation 0.5." in found[NOISE].text
    assert "a client is a company" in found["Time and traffic"].text


def test_the_page_of_several_domains_has_a_row_for_each(silo_run, tmp_path):
    page = write_report(silo_run, tmp_path / "report.html").read_text("utf-8")
    tags = Tags(page)
    assert tags.addresses == ["data:,"] and tags.figures == 19
    assert len(page.encode()) < 6_000_000
    rows = iter(re.findall(r"<tr.*?</tr>", page.split("<tbody>")[1], re.DOTALL))
    for view, metrics in {**silo_run.summary["views"], "popularity": silo_run.summary["popularity"]}.items():
        for name, values in {view: metrics, **metrics["domains"]}.items():
            row = next(rows)
            assert f">{name}<" in row
            shown = [values[ranking + metric] for ranking in ("", "neg20_", "full_") for metric in ("hr@10", "ndcg@10")]
            assert re.findall(r"<td>(.*?)</td>", row) == [f"{value:.2f}" for value in shown]
    assert next(rows, None) is None


def test_popularity_of_every_domain_has_the_colour_of_its_line(silo_run, monkeypatch):
    domains = {name: {"hr@10": 1.0 + place, "ndcg@10": 0.5} for place, name in enumerate(silo_run.domains)}
    popularity = {"hr@10": 2.0, "ndcg@10": 0.5, "domains": domains}
    monkeypatch.setattr(silo_run, "summary", {**silo_run.summary, "popularity": popularity})
    drawn = list(sections(silo_run))[1].pictures[0].figure
    text = words(render(silo_run, []))
    assert [shape.y0 for shape in drawn.layout.shapes[:3]] == [1.0, 2.0, 3.0]
    colours = [trace.line.color for trace in drawn.data[:3]]
    assert [shape.line.color for shape in drawn.layout.shapes[:3]] == colours
    assert "popularity every user gets the items that most users have 2.00 0.50 – – – – a 1.00 0.50" in text


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
