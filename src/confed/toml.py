"""TOML files, and errors that say what is wrong with one."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from confed.errors import ConfedError


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfedError(f"{path}: no such file") from None
    except OSError as error:
        raise ConfedError(f"{path}: cannot be read as a file: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfedError(f"{path}: not valid TOML: {error}") from None


def parse_option(text: str) -> tuple[str, Any]:
    """`key=value` from the command line; the value is a TOML literal, or else a string."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfedError(f"--set {text!r}: write it as key=value, such as --set learning_rate=0.05")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value
