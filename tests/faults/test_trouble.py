from tests.faults import kills
from tests.faults.trouble import cases, outcome


def test_a_run_says_that_the_disk_is_full_and_goes_on_when_it_is_not(tmp_path):
    kills.train(tmp_path / "unbroken", kills.Case())
    last = kills.calls(tmp_path / "counted", kills.Case())
    some = [case for number, case in enumerate(cases(last)) if number % 4 == 0]
    found = {case.name: outcome(case, tmp_path / str(case.call), tmp_path / "unbroken") for case in some}
    assert {name: one.how for name, one in found.items() if not one.held} == {}
    assert sum(one.how.endswith("went on to the same end") for one in found.values()) > 5
