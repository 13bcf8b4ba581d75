"""What is said of the course of a number is so."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confed.analysis.course import Course

LEG = re.compile(r"(rises|falls)(?: from (\S+) in round (\d+))? to (\S+) in round (\d+)")
REST = re.compile(r"then is between (\S+) and (\S+)$")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([31.2], "is 31.2 in round 1, the only one shown"),
        ([31.24, 31.2, 31.16], "is 31.2 in all 3 rounds shown"),
        ([60.0, 60.4, 60.1, 60.2], "stays between 60.0 and 60.4"),
        ([31.2, 45.0, 60.4], "rises from 31.2 in round 1 to 60.4 in round 3"),
        ([60.4, 45.0, 31.2], "falls from 60.4 in round 1 to 31.2 in round 3"),
        ([31.2, 60.4, 60.0, 59.5], "rises from 31.2 in round 1 to 60.4 in round 2 and is flat after it"),
        ([31.2, 60.4, 55.0, 50.0], "rises from 31.2 in round 1 to 60.4 in round 2, then falls to 50.0 in round 4"),
        ([31.2, 60.4, 50.0, 55.0], "rises from 31.2 in round 1 to 60.4 in round 2, then is between 50.0 and 55.0"),
        ([60.0, 20.0, 60.0, 20.0], "falls from 60.0 in round 1 to 20.0 in round 2, then is between 20.0 and 60.0"),
        ([40.0, 20.0, 60.0], "falls from 40.0 in round 1 to 20.0 in round 2, then rises to 60.0 in round 3"),
        ([31.2, 30.9, 60.4], "rises from 31.2 in round 1 to 60.4 in round 3"),  # the dip is a hundredth of the rise
        ([0.0, 0.0], "is 0.0 in all 2 rounds shown"),
        ([0.049, 0.0, 0.051], "stays between 0.0 and 0.1"),  # nothing that moved would be seen to move
    ],
)
def test_courses(values, said):
    assert str(Course(range(1, len(values) + 1), values)) == said


def test_a_form_of_its_own_and_rounds_that_were_left_out():
    assert str(Course([5, 10], [0.5, 0.25], "{:.2f} s")) == "falls from 0.50 s in round 5 to 0.25 s in round 10"


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=12), st.integers(1, 5))
def test_no_sentence_says_more_than_the_numbers(values, every):
    rounds = [every * number for number in range(1, len(values) + 1)]
    said = str(Course(rounds, values))
    printed = {number: f"{value:.1f}" for number, value in zip(rounds, values, strict=True)}
    before = 0
    for verb, origin, first, there, number in LEG.findall(said):
        assert not origin or (printed[int(first)] == origin and first == str(every))
        assert printed[int(number)] == there != printed[rounds[before]]
        after = rounds.index(int(number))
        assert (values[after] > values[before]) == (verb == "rises")
        before = after
    rest = values[before + 1 :]
    if "flat" in said:
        assert rest and max(abs(value - values[before]) for value in rest) <= max(0.05 * spread(values), 0.1)
    if between := REST.search(said):
        assert between.groups() == (f"{min(rest):.1f}", f"{max(rest):.1f}")
    if "stays between" in said:
        assert said == f"stays between {min(values):.1f} and {max(values):.1f}"


def spread(values):
    return max(values) - min(values)
