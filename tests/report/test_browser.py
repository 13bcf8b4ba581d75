"""The report in headless Chromium: every figure is drawn, and nothing is complained about."""

import os
import re
import shutil
import subprocess

import pytest

import confed
from confed.report import write_report
from confed.testing.tiny import interactions

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


FEW = {"negatives": 15, "more_negatives": [], "cutoffs": "5,10"}
RUNS = {
    "cofedrec": (interactions, {"dim": 4, "clusters": 4}, 10),
    "fppdm++": (lambda: "synthetic:domains=2,users=40,items=60", {"dim": 8}, 9),
}
"""Data, options, and how many figures there are to see."""


@pytest.fixture(scope="module", params=RUNS)
def method(request):
    return request.param


@pytest.fixture(scope="module")
def looked_at(method, tmp_path_factory):
    if CHROMIUM is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs Chromium: .ci/run installs it")
        pytest.skip("there is no Chromium")
    folder = tmp_path_factory.mktemp("browser")
    data, options, _ = RUNS[method]
    run = confed.run(method, data(), out=folder, rounds=3, options={**FEW, **options})
    page = write_report(run, folder / "report.html")
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
        *(f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=20000", "--dump-dom", page.as_uri()),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)


def test_every_figure_is_drawn(method, looked_at):
    figures = re.findall(r'<div id="figure-\d+-\d+"', looked_at.stdout)
    assert len(figures) == RUNS[method][2]
    assert looked_at.stdout.count('class="gtitle"') == len(figures)
    assert looked_at.stdout.count('class="main-svg"') >= len(figures)


def test_the_console_is_silent(looked_at):
    """A blocked request or a script that fails would be said here."""
    assert not [line for line in looked_at.stderr.splitlines() if "CONSOLE" in line]
