"""What every command prints, and where: results on standard output, everything else on standard error.

Titles, ids and names are data. They are printed as they are: nothing in a string is taken for a style, and what a
terminal would obey is spelled out. Whoever wants a style says so (`styled`). Commands print through here alone.

With `--json` a command prints exactly one JSON object on standard output, so that it can be piped: its result, or what
went wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from confed.errors import ConfedError
from confed.visible import cut, visible_lines

JSON = "--json"
_LONGEST = 5_000
"""Characters of one string that are printed: longer than any path, and than all that a method says of itself."""


class _Literal(Console):
    """Prints strings as they are, wherever they stand: in a line, in a cell, above a table."""

    def __init__(self, **how: Any) -> None:
        super().__init__(markup=False, highlight=False, emoji=False, **how)

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(_printed(text), **how)


def _printed(text: str) -> str:
    return visible_lines(cut(text, _LONGEST))


console = _Literal(width=None if sys.stdout.isatty() else 160)
"""For results. A pipe has no width; tables with deviations over seeds need more than rich's guess of 80."""
err_console = _Literal(stderr=True)
"""For progress, notices and errors."""


def styled(text: str, style: str) -> Text:
    """The only way to a style."""
    return Text(_printed(text), style=style)


class Words(TextColumn):
    """Words beside a bar."""

    def __init__(self, text_format: str, style: str = "none") -> None:
        super().__init__(text_format, style=style, markup=False)

    def render(self, task: Task) -> Text:
        return styled(self.text_format.format(task=task), str(self.style))


def bars(*columns: ProgressColumn, transient: bool = False) -> Progress:
    """Progress on standard error, if somebody looks."""
    return Progress(*columns, console=err_console, disable=not err_console.is_terminal, transient=transient)


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
    # Not through rich, which would wrap long lines. ASCII arrives anywhere; NaN is no JSON, and a bug where it occurs.
    sys.stdout.write(json.dumps(obj, indent=2, allow_nan=False) + "\n")


def complain(error: ConfedError) -> None:
    """What is wrong, and the remedy."""
    err_console.print(styled("error: ", "bold red"), end="")
    err_console.print(error.message, soft_wrap=True)


def bear_any_encoding() -> None:
    """What standard output cannot write is spelled out there, as it always is on standard error."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def loading() -> Iterator[None]:
    """Around imports that take seconds: says at once that the command was understood."""
    if err_console.is_terminal:
        with err_console.status("loading…"):
            yield
    else:
        err_console.print("loading…")
        yield
