"""The rules of the house (docs/architecture.md): who may import whom."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import confed

HOUSE = Path(confed.__file__).parent
ROOMS = {path.name for path in HOUSE.iterdir() if (path / "__init__.py").exists()}
FORBIDDEN = {
    "messages": ROOMS - {"messages"},
    "data": ROOMS - {"data"},
    "privacy": ROOMS - {"privacy", "data", "messages"},
    "evaluation": ROOMS - {"evaluation", "data", "messages"},
    "server": ROOMS - {"server", "messages"},
    "federations": {"clients", "silos", "models", "methods", "runs", "analysis", "report", "cli", "testing"},
    "clients": {"server", "silos", "models", "methods", "evaluation", "runs", "analysis", "report", "cli", "testing"},
    "models": {"clients", "server", "silos", "federations", "methods", "runs", "analysis", "report", "cli", "testing"},
    "silos": {"clients", "server", "methods", "evaluation", "runs", "analysis", "report", "cli", "testing"},
    "methods": {"runs", "analysis", "report", "cli", "testing"},
    "runs": {"analysis", "cli", "testing"},
    "analysis": {"runs", "report", "cli", "testing"},
    "report": {"runs", "cli", "testing"},
    "cli": {"testing"},
}
THE_ONE_MODULE = {
    ("clients", "federations"): "confed.federations.gateway",
    ("silos", "federations"): "confed.federations.gateway",
    ("models", "evaluation"): "confed.evaluation.judge",
}
"""Of a room that may be entered as far as this: what a gateway is, and whoever judges, seen from where data is."""
IN_COMMON = {"base", "central", "devices", "listing", "registry", "published", "silo", "preference"}
"""Of the methods; every other module of that room is one of them."""


def imports(path):
    """All modules that a file imports, wherever in it, also for types alone; `from confed import x` is x."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "confed":
            yield from (f"confed.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{path}: imports are whole here"
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def place(path):
    """The room of a file, or its own name if it stands at the top."""
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


def reached(module):
    """The room that is imported from, or the module at the top; nothing outside of the house."""
    parts = module.split(".")
    if parts[0] != "confed":
        return None
    found = parts[1] if len(parts) > 1 else "__init__"
    return found if found in ROOMS or (HOUSE / f"{found}.py").exists() else "__init__"


def test_every_room_has_a_rule():
    assert FORBIDDEN.keys() | {"testing"} == ROOMS, "`testing` may import what it tests"
    for room, forbidden in FORBIDDEN.items():
        assert forbidden <= ROOMS - {room}


@pytest.mark.parametrize("room", FORBIDDEN)
def test_no_room_imports_from_where_it_should_not(room):
    for path in (HOUSE / room).rglob("*.py"):
        for module in imports(path):
            assert reached(module) not in FORBIDDEN[room], f"{path} imports {module}"
            only = THE_ONE_MODULE.get((room, reached(module)), module)
            assert module == only, f"{path} imports {module}, not {only}"


def test_what_stands_at_the_top_imports_no_room_but_messages():
    """Several rooms use it. The package itself offers what there is."""
    for path in HOUSE.glob("*.py"):
        rooms = {reached(module) for module in imports(path)} & ROOMS
        assert path.name == "__init__.py" or rooms <= {"messages"}, f"{path} imports {rooms}"


def circles(edges):
    """Tarjan's strongly connected components, as far as they have more than one node."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            component = stack[stack.index(node) :]
            del stack[-len(component) :]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return found


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circles({"a": {"b", "d"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": {"d"}}) == [["d", "e"], ["a", "b", "c"]]


def test_nobody_imports_in_a_circle():
    """Neither rooms nor modules at the top, and not inside a function either."""
    edges, why = defaultdict(set), defaultdict(set)
    for path in HOUSE.rglob("*.py"):
        for module in imports(path):
            one, other = place(path), reached(module)
            if other is not None and other != one:
                edges[one].add(other)
                why[one, other].add(f"{path.relative_to(HOUSE)} imports {module}")
    found = circles(edges)
    said = [
        line
        for circle in found
        for one in circle
        for other in sorted(edges[one] & set(circle))
        for line in sorted(why[one, other])
    ]
    assert not found, "\n".join([*map(str, found), *said])


def test_nothing_outside_depends_on_a_single_method():
    for path in HOUSE.rglob("*.py"):
        if path.parent != HOUSE / "methods":
            singles = {module.split(".")[2] for module in imports(path) if module.startswith("confed.methods.")}
            assert singles <= IN_COMMON, f"{path} imports {singles - IN_COMMON}"


def test_nothing_unpickles():
    for path in HOUSE.rglob("*.py"):
        assert not {"pickle", "dill", "joblib", "shelve"} & set(imports(path)), path
        assert "torch.load" not in path.read_text("utf-8"), path
