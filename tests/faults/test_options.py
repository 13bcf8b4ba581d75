"""A seeded sample of the absurd options; `tests/faults/options.py` has all of them."""

from itertools import islice

import pytest

from tests.faults.options import Case, cases, outcome

SAMPLE = 50
KNOWN = [
    Case("ials", "alpha", 1e308),
    Case("fedmf", "batch_size", 10**12),
    Case("fedmf", "batch_size", 2**31 - 1),
    *(
        Case(method, "dim", 10**9)
        for method in ("fedmf", "fed3cr", "fppdm++", "etl-f", "mf", "neumf", "pmlam", "lightgcn")
    ),
    Case("ials", "factors", 10**9),
    Case("fedmf", "dim", 10**5000),
    Case("pfedrec", "learning_rate", 1e15, {"reproduction.saturating_bce": True}),
    Case("ease", "regularisation", 5e-324),
    Case("fedmf", "upload_noise", 5e-324, {"upload_clip": 1.0}),
    Case("fppdm", "upload_noise", 1e-6, {"upload_clip": 1.0}),
]


@pytest.mark.parametrize("case", [*KNOWN, *islice(cases(20), SAMPLE)], ids=lambda case: case.name)
def test_no_option_ends_in_a_traceback(case, tmp_path):
    found = outcome(case, tmp_path / "run")
    assert found.held, found.how


def test_cases_are_many_and_their_order_is_the_seeds():
    one, other = list(cases(1)), list(cases(2))
    assert len(one) > 3000 and [case.name for case in one] == [case.name for case in cases(1)]
    assert sorted(case.name for case in one) == sorted(case.name for case in other)
    assert [case.name for case in one] != [case.name for case in other]
