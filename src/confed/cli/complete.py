"""What TAB offers: methods, datasets and run folders. It reads names, and loads nothing that takes time."""

from __future__ import annotations

from pathlib import Path

from confed.data.contents import exists, own_path
from confed.data.shelf import names
from confed.methods.registry import method_names


def methods(incomplete: str) -> list[str]:
    return [name for name in method_names() if name.startswith(incomplete)]


def datasets(incomplete: str) -> list[str]:
    """Names first, then files."""
    return [name for name in names() if name.startswith(incomplete)] + _paths(incomplete)


def runs(incomplete: str) -> list[str]:
    """Run folders, here or below `runs`, and folders on the way to others."""
    near = [str(path) for folder in (".", "runs") for path in sorted(Path(folder).glob("*")) if is_run(path)]
    found = [path for path in near if path.startswith(incomplete)]
    return found + [path for path in _paths(incomplete) if path.endswith("/") and path.rstrip("/") not in found]


def runs_and_datasets(incomplete: str) -> list[str]:
    found = runs(incomplete)
    return found + [one for one in datasets(incomplete) if one not in found]


def is_run(path: Path) -> bool:
    return exists(path / "config.toml")


def _paths(incomplete: str) -> list[str]:
    """Files and folders whose path begins like this; hidden ones only if asked for."""
    folder, _, start = incomplete.rpartition("/")
    base = own_path(f"{folder}/" if folder or incomplete.startswith("/") else ".")
    try:
        found = sorted(path for path in base.iterdir() if path.name.startswith(start))
    except OSError:
        return []
    shown = [path for path in found if start or not path.name.startswith(".")]
    before = f"{folder}/" if folder or incomplete.startswith("/") else ""
    return [f"{before}{path.name}{'/' if path.is_dir() else ''}" for path in shown]
