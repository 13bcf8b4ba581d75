from collections import Counter

from tests.faults.power import cases, outcome


def test_a_run_survives_a_loss_of_power_at_any_moment(tmp_path):
    found = {case.name: outcome(case) for case in cases(tmp_path, seed=0)}
    assert {name: one.how for name, one in found.items() if not one.held} == {}
    ways = Counter(one.how for one in found.values())
    assert ways["went on to the same end"] > 20 and ways["had not begun"] >= 1
