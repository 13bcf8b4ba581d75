"""Pictures of numbers by round: what is marked on them, and what is said of them."""

import re

import pytest

from confed.analysis.rounds import Curves, Levels
from confed.analysis.style import MUTED, PALETTE, SERIES, figure, whole_numbers


def curves(lines, **more):
    rounds = list(range(1, 1 + len(next(iter(lines.values())))))
    return Curves(rounds, lines, title="HR@10 on validation items", unit="percent", subject="Validation HR@10", **more)


def test_one_line_is_said_without_its_name():
    assert curves({"loss": [10.0, 20.0]}).said == "Validation HR@10 rises from 10.0 in round 1 to 20.0 in round 2."
    assert curves({"loss": [10.0, 20.0]}).figure().layout.showlegend is False


def test_the_chosen_round_is_said_with_what_all_lines_have_there():
    said = curves({"local": [10.0, 30.0, 20.0]}, chosen=3).said
    assert said.endswith("to 30.0 in round 2, then falls to 20.0 in round 3; round 3 was chosen, with 20.0.")
    said = curves({"local": [10.0, 30.0], "global": [5.0, 5.0]}, chosen=2).said
    assert said.endswith("global is 5.0 in all 2 rounds shown; round 2 was chosen, with local 30.0, global 5.0.")


@pytest.mark.parametrize(("chosen", "side"), [(1, "left"), (4, "right")])
def test_the_chosen_round_is_marked_and_its_label_stays_on_the_picture(chosen, side):
    drawn = curves({"local": [1.0, 2.0, 3.0, 4.0]}, chosen=chosen).figure()
    (line,) = drawn.layout.shapes
    (label,) = drawn.layout.annotations
    assert line.x0 == line.x1 == label.x == chosen
    assert label.text == f"round {chosen} chosen" and label.xanchor == side


def test_a_level_is_dotted_in_the_colour_of_its_line():
    drawn = curves({"a": [1.0], "b": [2.0]}, levels=Levels("popularity", {"b": 1.5, "": 0.5}))
    of_b, of_all = drawn.figure().layout.shapes
    assert (of_b.y0, of_b.line.color, of_b.line.dash) == (1.5, SERIES[1], "dot")
    assert (of_all.y0, of_all.line.color) == (0.5, MUTED)
    assert [trace.name for trace in drawn.figure().data] == ["a", "b", "popularity"]
    assert drawn.said.endswith(" Dotted: popularity, b 1.5, 0.5.")


def test_a_single_round_is_a_dot_between_two_ticks():
    drawn = curves({"local": [7.0]}, chosen=1).figure()
    assert "markers" in drawn.data[0].mode
    assert list(drawn.layout.xaxis.range) == [0.5, 1.5] and drawn.layout.xaxis.dtick == 1


@pytest.mark.parametrize(
    ("first", "last", "step"), [(1, 1, 1), (1, 5, 1), (1, 9, 1), (1, 10, 2), (1, 40, 5), (10, 100, 20), (1, 1000, 200)]
)
def test_ticks_are_whole_numbers_and_few(first, last, step):
    axis = whole_numbers(first, last)
    assert axis["dtick"] == step and axis["tick0"] == 0
    assert first - 1 < axis["range"][0] < first and axis["range"][1] > last


def test_only_what_should_begins_at_zero():
    assert curves({"up": [3.0]}, from_zero=True).figure().layout.yaxis.rangemode == "tozero"
    assert curves({"up": [3.0]}).figure().layout.yaxis.rangemode is None


def test_no_colour_of_a_light_page_has_two_purposes():
    light = [light for light, _ in PALETTE.values()]
    assert len(set(light)) == len(light)


def test_every_colour_of_a_figure_has_a_purpose_or_is_none():
    """Else a dark page could not exchange it."""
    found = set(re.findall(r"#\w+", figure([], "", "", "").to_json()))
    assert found and found <= {light for light, _ in PALETTE.values()}
