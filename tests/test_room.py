import psutil
import pytest

from confed.errors import ConfedError
from confed.initial import initial, zeros
from confed.room import require_room


def test_what_is_larger_than_the_machine_is_refused():
    total = psutil.virtual_memory().total
    require_room("tables", total, "use less")
    with pytest.raises(ConfedError, match=r"tables take [\d,.]+ GB and this machine has [\d,.]+ GB: use less"):
        require_room("tables", total + 1, "use less")


def test_no_parameter_is_begun_that_cannot_be_trained():
    with pytest.raises(
        ConfedError, match=r"the 60 x 1,000,000,000 numbers of the parameter 'items' take .*: lower `dim`"
    ):
        initial(0, "items", (60, 10**9), zeros)
