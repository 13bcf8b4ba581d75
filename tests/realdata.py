"""Real datasets for tests: skipped where they are not at hand, required in CI."""

from __future__ import annotations

import os

import pytest

from confed.data.catalogue import REGISTRY
from confed.data.sources import data_dir


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() == "true"


def skip(reason: str) -> None:
    """Skip the calling test; in CI that would hide that nothing was tested, so there it fails."""
    if in_ci():
        pytest.fail(f"{reason}; CI must have it")
    pytest.skip(reason)


def require(name: str) -> str:
    """The name of a registered dataset whose file lies in CONFED_DATA."""
    folder = data_dir()
    if folder is None:
        skip(f"CONFED_DATA is not set: no {name}")
    elif not any((folder / file).is_file() for file in REGISTRY[name].files):
        skip(f"CONFED_DATA has no {REGISTRY[name].file}")
    return name
