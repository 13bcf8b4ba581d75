"""What may be shown of data that others wrote."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confed.visible import LONGEST, cut, quoted, shown, visible, visible_lines

DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def is_obeyed(character):
    """Whether it does something instead of being seen, by the tables of Unicode."""
    return (
        unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}
        or unicodedata.bidirectional(character) in DIRECTIONS
        or character in "\u061c\u200e\u200f"
    )


def test_whatever_is_obeyed_is_spelled_out_and_every_script_stays_as_it_is():
    every = [chr(number) for number in range(sys.maxunicode + 1)]
    changed = {character for character in every if visible(character) != character}
    assert {character for character in every if is_obeyed(character)} <= changed
    assert {unicodedata.category(character) for character in changed} <= {"Cc", "Cf", "Cs", "Zl", "Zp", "Cn"}
    for title in ("Amélie", "もののけ姫\u3000", "می\u200cخواهم", "👩\u200d🔬", "Crouching Tiger\xa0(2000)"):
        assert visible(title) == title


def test_the_spelling_is_that_of_python():
    assert visible("\x1b[31m\x07\r\n\u202e\ud800") == r"\x1b[31m\x07\r\n\u202e\ud800"
    assert visible_lines("tried\n  a\rb") == "tried\n  a\\rb"


@given(st.text())
def test_nothing_obeyed_is_left(text):
    assert not any(map(is_obeyed, shown(text)))
    assert not any(map(is_obeyed, visible_lines(text).replace("\n", "")))
    shown(text).encode()


def test_long_values_are_cut():
    assert cut("abcdef", 4) == "abc…" and cut("abcd", 4) == "abcd"
    assert len(shown("x" * 10**6)) == LONGEST and shown("x" * 10**6).endswith("x…")
    assert len(shown("\x1b" * 10**6)) == LONGEST
    assert len(quoted("x" * 10**6)) == LONGEST + 2


@pytest.mark.parametrize("digits", [5_000, 100_000])
def test_a_whole_number_may_be_too_long_to_be_written(digits):
    assert quoted(10**digits - 1) == f"a whole number of about {digits:,} digits"
    assert quoted(-17) == "-17" and quoted(True) == "True" and quoted(1.5) == "1.5"
