"""`confed doctor`: what this machine and this environment have."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

import psutil
from rich.table import Table

from confed.cli.options import Json
from confed.cli.output import console, emit, loading
from confed.data.catalogue import DOMAINS, REGISTRY
from confed.data.shelf import is_at_hand
from confed.data.sources import cache_dir, data_dir

_PACKAGES = (
    "confed",
    "torch",
    "numpy",
    "scipy",
    "polars",
    "pydantic",
    "typer",
    "rich",
    "safetensors",
    "implicit",
)
_EXTRAS = {"scale": "ray", "frames": "pyarrow", "excel": "fastexcel", "privacy": "dp-accounting"}


def doctor(
    as_json: Json = False,
) -> None:
    """Versions, threads, folders and which datasets are at hand."""
    facts = examine()

    def render() -> None:
        table = Table("what", "value", show_header=False)
        for section, values in facts.items():
            table.add_section()
            for name, value in values.items():
                table.add_row(f"{section}: {name}", str(value))
        console.print(table)

    emit(facts, as_json, render)


def examine() -> dict[str, dict[str, Any]]:
    with loading():
        import torch
    return {
        "machine": {
            "python": platform.python_version(),
            "system": platform.platform(),
            "cores": os.cpu_count(),
            "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
            "torch_threads": torch.get_num_threads(),
            "accelerator": torch.cuda.is_available(),
        },
        "packages": {name: _version(name) for name in _PACKAGES},
        "extras": {extra: _version(package) for extra, package in _EXTRAS.items()},
        "folders": {"CONFED_DATA": str(data_dir() or "not set"), "cache": str(cache_dir())},
        "datasets": {name: "at hand" if is_at_hand(name) else "not at hand" for name in [*REGISTRY, *DOMAINS]},
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
