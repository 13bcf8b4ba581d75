import pytest

from tests.faults import kills
from tests.faults.writers import Case, outcome


@pytest.mark.parametrize("what", ["start", "resume"])
def test_of_two_at_once_one_is_told(what, tmp_path):
    kills.train(tmp_path / "unbroken", kills.Case())
    assert outcome(Case(what, 0), tmp_path, tmp_path / "unbroken").how == "one did it, the other was told"
