"""What every command prints, and where: results on standard output, everything else on standard error.

With `--json` a command prints exactly one JSON object on standard output, so that it can be piped: its result, or what
went wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console

JSON = "--json"

console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
"""For results. A pipe has no width; tables with deviations over seeds need more than rich's guess of 80."""
err_console = Console(stderr=True, highlight=False)
"""For progress, notices and errors."""


def emit(obj: Mapping[str, Any], as_json: bool, render: Callable[[], None]) -> None:
    """The result of a command: `obj` as JSON, or what `render` prints for a person."""
    if not as_json:
        render()
        return
    _print_json(obj)


def emit_error(message: str, exit_code: int) -> None:
    """What a command with `--json` prints instead of its result; people read it on standard error."""
    _print_json({"error": message, "exit_code": exit_code})


def _print_json(obj: Mapping[str, Any]) -> None:
    # Not through rich, which would wrap long lines; NaN is no JSON, and a bug where it occurs.
    sys.stdout.write(json.dumps(obj, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@contextmanager
def loading() -> Iterator[None]:
    """Around imports that take seconds: says at once that the command was understood."""
    if err_console.is_terminal:
        with err_console.status("loading…"):
            yield
    else:
        err_console.print("loading…")
        yield
