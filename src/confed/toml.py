"""TOML files, and errors that say what is wrong with one."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from confed.errors import ConfedError
from confed.visible import quoted


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfedError(f"{path}: no such file") from None
    except OSError as error:
        raise ConfedError(f"{path}: cannot be read as a file: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # of the syntax, the encoding, or a number of thousands of digits
        raise ConfedError(f"{path}: not valid TOML: {error}") from None


def parse_option(text: str) -> tuple[str, Any]:
    """`key=value` from the command line; the value is a TOML literal, or else a string."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfedError(f"--set {quoted(text)}: write it as key=value, such as --set learning_rate=0.05")
    try:
        parsed = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):  # also of a number of thousands of digits
        parsed = {}
    return key.strip(), parsed["value"] if len(parsed) == 1 else value
