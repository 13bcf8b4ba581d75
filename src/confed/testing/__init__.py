"""What every method must show, for methods here and in other packages: a test class of yours inherits it.

    from confed.testing import PeopleConformance

    class TestMine(PeopleConformance):
        method = Mine()
        options = {"dim": 6}

Everything runs on tiny synthetic data, in float64. It needs pytest.
"""

from confed.testing.conformance import (
    CompanyConformance,
    FederatedConformance,
    MethodConformance,
    PeopleConformance,
)
from confed.testing.in_bytes import InBytes
from confed.testing.recorder import Recorder
from confed.testing.states import assert_close_states, assert_equal_states

__all__ = [
    "CompanyConformance",
    "FederatedConformance",
    "InBytes",
    "MethodConformance",
    "PeopleConformance",
    "Recorder",
    "assert_close_states",
    "assert_equal_states",
]
