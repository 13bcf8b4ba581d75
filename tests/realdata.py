"""Real datasets for tests: skipped where they are not at hand, required in CI."""

from __future__ import annotations

import os

import pytest

from confed.data.catalogue import DOMAINS, REGISTRY
from confed.data.sources import data_dir


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() == "true"


def skip(reason: str) -> None:
    """Skip the calling test; in CI that would hide that nothing was tested, so there it fails."""
    if in_ci():
        pytest.fail(f"{reason}; CI must have it")
    pytest.skip(reason)


def require(name: str) -> str:
    """The name of a registered dataset whose file, or whose file of every domain, lies in CONFED_DATA."""
    folder = data_dir()
    if folder is None:
        skip(f"CONFED_DATA is not set: no {name}")
        return name
    wanted = [one.files for one in DOMAINS[name].domains.values()] if name in DOMAINS else [REGISTRY[name].files]
    for files in wanted:
        if not any((folder / file).is_file() for file in files):
            skip(f"CONFED_DATA has no {files[0]}")
    return name
