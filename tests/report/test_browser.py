"""The report in headless Chromium, on a telephone and on a wide screen, light and dark."""

import os
import time

import pytest

import confed
from confed.analysis.style import PALETTE
from confed.report import write_report
from confed.testing.tiny import interactions
from tests.report.browser import CHROMEDRIVER, CHROMIUM, browser

pytestmark = pytest.mark.apart

FEW = {"negatives": 15, "more_negatives": [], "cutoffs": "5,10"}
RUNS = {
    "cofedrec": (interactions, {"dim": 4, "clusters": 4}, 12),
    "pfedrec": (interactions, {"dim": 4}, 10),
    "fppdm++": (lambda: "synthetic:domains=2,users=40,items=60", {"dim": 8}, 15),
}
"""Data, options, and how many figures there are, those in folds included."""
NARROW, WIDE = 400, 1400
LIGHT, DARK = 0, 1
DRAWN = """
const seen = [...document.querySelectorAll(".plot")].filter((plot) => plot.checkVisibility());
const waited = Date.now() + 30000;
while (!seen.every((plot) => plot.querySelector(".main-svg")) && Date.now() < waited)
  await new Promise((done) => setTimeout(done, 20));
return seen.length;
"""
TOO_WIDE = """
const boxes = [...document.querySelectorAll("body *")].filter((one) => !one.closest(".scroll *, pre *"));
const out = boxes.filter((one) => one.getBoundingClientRect().right > innerWidth + 0.5);
return [document.documentElement.scrollWidth, ...out.map((one) => one.outerHTML.slice(0, 100))];
"""
CUT = """
const out = (svg) => [...svg.querySelectorAll("text")].filter((text) => {
  const [box, page] = [text.getBoundingClientRect(), svg.getBoundingClientRect()];
  return box.width && (box.right > page.right + 1 || box.left < page.left - 1 || box.bottom > page.bottom + 1);
});
return [...document.querySelectorAll(".plot .main-svg")].flatMap(out).map((text) => text.textContent);
"""
INK = """
const shown = [document.querySelector(".plot .xtick text").style.fill, getComputedStyle(document.body).color];
const probe = document.body.appendChild(document.createElement("i"));
return shown.map((colour) => { probe.style.color = colour; return getComputedStyle(probe).color; });
"""

TOOLBARS = """
return [...document.querySelectorAll(".modebar-group:first-child")].map((one) => getComputedStyle(one).opacity);
"""


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    if CHROMIUM is None or CHROMEDRIVER is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs Chromium and its driver: .ci/run installs them")
        pytest.skip("there is no Chromium, or no driver of it")
    with browser(tmp_path_factory.mktemp("browser")) as window:
        yield window


@pytest.fixture(scope="module", params=RUNS)
def page(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    data, options, figures = RUNS[request.param]
    run = confed.run(request.param, data(), out=folder, rounds=2, options={**FEW, **options})
    return write_report(run, folder / "report.html").as_uri(), figures


@pytest.fixture
def opened(window, page):
    """The page with all folds open, on a narrow light screen, and what was heard of it."""
    window.open("about:blank")
    window.heard()
    window.look(NARROW, "light")
    window.open(page[0])
    window.run(DRAWN)
    window.run("for (const fold of document.querySelectorAll('details')) fold.open = true;")
    assert window.run(DRAWN) == page[1]
    return window


def test_the_page_fits_every_screen_and_asks_for_nothing(opened, page):
    for width in (NARROW, WIDE):
        for scheme, theme in (("light", LIGHT), ("dark", DARK)):
            opened.look(width, scheme)
            until(opened, INK, [as_rgb(PALETTE["ink"][theme])] * 2)
            until(opened, TOO_WIDE, [width])
            until(opened, CUT, [])
    assert opened.run(TOOLBARS) == ["0"] * page[1], "they are seen by whoever points at a figure"
    asked, complaints = opened.heard()
    assert set(asked) == {page[0]} and complaints == []


def until(window, script, expected):
    """A page that turns dark is drawn again when there is time."""
    ends = time.monotonic() + 30
    while (found := window.run(script)) != expected and time.monotonic() < ends:
        time.sleep(0.05)
    assert found == expected


def test_what_is_wrong_with_a_page_is_heard_and_seen(window, tmp_path):
    """The tests above would fail of a page that asks for something, complains, or is too wide."""
    policy = "default-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
    asked = (tmp_path / "not-there.png").as_uri()
    page = tmp_path / "page.html"
    page.write_text(
        f"""<meta http-equiv="Content-Security-Policy" content="{policy}"><img src="{asked}">
        <img src="http://127.0.0.1:9/x.png"><p style="width: 500px">wide</p>
        <script>console.warn("hm"); setTimeout(() => nothing(), 0)</script>"""
    )
    window.open("about:blank")
    window.heard()
    window.look(NARROW, "light")
    window.open(page.as_uri())
    assert len(window.run(TOO_WIDE)) > 1 and window.run(TOO_WIDE)[0] > NARROW
    requests, complaints = window.heard()
    assert asked in requests
    assert {entry["source"] for entry in complaints} >= {"security", "console-api", "javascript"}


def as_rgb(colour):
    return f"rgb({', '.join(str(int(colour[place : place + 2], 16)) for place in (1, 3, 5))})"
