"""The rules of the house (docs/architecture.md): who may import whom."""

import ast
from pathlib import Path

import pytest

import confed

HOUSE = Path(confed.__file__).parent
FORBIDDEN = {
    "messages": ("clients", "silos", "server", "engines", "methods", "evaluation", "data", "runs", "cli", "central"),
    "clients": ("server", "engines", "methods", "runs", "cli", "central"),
    "server": ("clients", "engines", "methods", "runs", "cli", "central"),
    "evaluation": ("clients", "server", "engines", "methods", "runs", "cli", "central"),
    "data": ("clients", "server", "engines", "evaluation", "methods", "runs", "cli", "central"),
    "silos": ("server", "engines", "methods", "runs", "cli"),
    "engines": ("runs", "cli", "central"),
    "methods": ("engines", "runs", "cli"),
    "runs": ("cli",),
    "analysis": ("cli", "report"),
    "report": ("cli",),
}
IN_COMMON = {"base", "registry", "published", "silo", "preference"}
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
