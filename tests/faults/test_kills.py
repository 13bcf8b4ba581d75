import pytest

from tests.faults.kills import Case, calls, outcome, train


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    path = tmp_path_factory.mktemp("unbroken") / "run"
    train(path, Case())
    return path


def test_a_run_survives_a_kill_at_any_write(unbroken, tmp_path):
    """At some of them; `make faults` has all."""
    last = calls(tmp_path / "counted", Case())
    assert last > 60
    found = {call: outcome(Case(call=call), tmp_path / str(call), unbroken) for call in range(0, last, last // 8)}
    assert {call: one.how for call, one in found.items() if not one.held} == {}
    assert sum(one.how == "went on to the same end" for one in found.values()) > 5


def test_a_run_survives_a_kill_at_any_moment(unbroken, tmp_path):
    found = {after: outcome(Case(after=after), tmp_path / str(after), unbroken) for after in (0.0, 0.1, 0.4)}
    assert {after: one.how for after, one in found.items() if not one.held} == {}
