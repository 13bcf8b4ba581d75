"""dev.lock has a version of everything that the project asks for, within the ranges it asks for, and no address."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parent.parent
LOCKED = dict(
    line.split("==") for line in (HERE / "dev.lock").read_text("utf-8").splitlines() if not line.startswith("#")
)


def requirements():
    project = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]
    asked = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    return [one for one in map(Requirement, asked) if one.name != "confed"]


@pytest.mark.parametrize("asked", requirements(), ids=str)
def test_what_is_asked_for_is_locked(asked):
    versions = {canonicalize_name(name): version for name, version in LOCKED.items()}
    assert asked.specifier.contains(versions[canonicalize_name(asked.name)], prereleases=True)


def test_names_and_versions_are_all_there_is():
    assert all(re.fullmatch(r"[\w.-]+", name) and re.fullmatch(r"[\w.]+", version) for name, version in LOCKED.items())
