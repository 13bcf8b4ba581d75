"""The rules of the house (docs/architecture.md): who may import whom."""

import ast
from pathlib import Path

import pytest

import confed

HOUSE = Path(confed.__file__).parent
FORBIDDEN = {
    "messages": ("clients", "silos", "server", "engines", "methods", "evaluation", "data", "runs", "cli", "models"),
    "clients": ("server", "engines", "methods", "runs", "cli", "models"),
    "server": ("clients", "engines", "methods", "runs", "cli", "models"),
    "evaluation": ("clients", "server", "engines", "methods", "runs", "cli", "models"),
    "data": ("clients", "server", "engines", "evaluation", "methods", "runs", "cli", "models"),
    "silos": ("server", "engines", "methods", "runs", "cli"),
    "models": ("clients", "server", "methods", "silos", "evaluation", "runs", "cli"),
    "engines": ("runs", "cli"),
    "methods": ("engines", "runs", "cli"),
    "runs": ("cli",),
    "analysis": ("cli", "report"),
    "report": ("cli",),
}
NOT_YET = {("methods/central.py", "engines")}
"""Where a rule does not hold yet: what a trainer is stands in `engines/`, and a central method returns one."""
IN_COMMON = {"base", "central", "registry", "published", "silo", "preference"}
"""Of the methods; every other module of that room is one of them."""


def imports(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("room", FORBIDDEN)
def test_no_room_imports_from_where_it_should_not(room):
    for path in (HOUSE / room).rglob("*.py"):
        for module in imports(path):
            reached = module.removeprefix("confed.").split(".")[0]
            if (path.relative_to(HOUSE).as_posix(), reached) not in NOT_YET:
                assert not (module.startswith("confed.") and reached in FORBIDDEN[room]), f"{path} imports {module}"


def test_nothing_outside_depends_on_a_single_method():
    for path in HOUSE.rglob("*.py"):
        if path.parent != HOUSE / "methods":
            singles = {module.split(".")[2] for module in imports(path) if module.startswith("confed.methods.")}
            assert singles <= IN_COMMON, f"{path} imports {singles - IN_COMMON}"


def test_nothing_unpickles():
    for path in HOUSE.rglob("*.py"):
        assert not {"pickle", "dill", "joblib", "shelve"} & set(imports(path)), path
        assert "torch.load" not in path.read_text("utf-8"), path
