"""What stands above the pictures."""

import sys

import pytest

from confed.methods.registry import METHODS
from confed.report.head import about


@pytest.mark.parametrize(
    ("method", "opening", "rest"),
    [
        ("cofedrec", ["CoFedRec: co-clustering", "Two pieces on top"], "`variant` gives"),
        ("pfedrec", ["PFedRec: dual", "A client u scores", "    receives V"], "(`procedure` below;"),
        ("ease", ["EASE: the shallow", "    minimise |X − XB|²", "with X the binary"], None),
    ],
)
def test_the_opening_is_two_paragraphs_with_their_formulas(method, opening, rest):
    found = about(METHODS[method])
    assert [text[: len(begins)] for text, begins in zip(found.opening, opening, strict=True)] == opening
    assert [text.startswith(rest) for text in found.rest[:1]] == ([True] if rest else [])


def test_a_method_that_says_nothing_has_no_opening(monkeypatch):
    method = METHODS["popularity"]
    monkeypatch.setattr(type(method), "about", None)
    monkeypatch.setattr(sys.modules[type(method).__module__], "__doc__", None)
    found = about(method)
    assert method.paragraphs() == found.opening == found.rest == []
    assert found.title == method.title
