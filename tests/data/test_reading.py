"""What may be said about how data is read."""

from __future__ import annotations

import re

import pytest

from confed.data.reading import READING, refuse
from confed.errors import ConfedError


def test_what_is_read_already_takes_no_options() -> None:
    refuse([], "ml-100k", "a registered dataset")
    told = "ml-100k: a registered dataset takes no options, got user=, date_order=: leave"
    with pytest.raises(ConfedError, match=re.escape(told)):
        refuse(["user", "date_order"], "ml-100k", "a registered dataset")


def test_python_reads_of_the_keyword() -> None:
    for name in READING:
        with pytest.raises(ConfedError, match=rf"got {name}=: leave"):
            refuse([name], "ml-100k", "a registered dataset")
