"""The command line. A user's mistake prints one message and exits with code 2; a bug keeps its traceback."""

from __future__ import annotations

import sys

import click
import typer
from typer.rich_utils import rich_format_error

import confed
from confed.cli import compare, data, doctor, methods, recommend, report, run, similar
from confed.cli.output import JSON, bear_any_encoding, complain, console, emit_error
from confed.errors import ConfedError

app = typer.Typer(
    name="confed",
    help="Federated recommendation: train and measure recommenders on data that stays with its owners.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    suggest_commands=False,  # click suggests them already
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(run.run)
app.command()(compare.compare)
app.command()(recommend.recommend)
app.command()(similar.similar)
app.command()(report.report)
app.command()(doctor.doctor)
app.add_typer(methods.app, name="methods")
app.add_typer(data.app, name="data")


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Print the version.", is_eager=True),
) -> None:
    if show:
        console.print(confed.__version__)
        raise typer.Exit


def main() -> None:
    bear_any_encoding()
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except ConfedError as error:
        _refuse(error)
    except click.ClickException as error:  # an option that there is not, a value that is none
        rich_format_error(error)
        _end(error.format_message(), error.exit_code)
    except MemoryError:
        _refuse(ConfedError("that does not fit into the memory of this machine: use less data, or a larger machine"))


def _refuse(error: ConfedError) -> None:
    complain(error)
    _end(error.message, error.exit_code)


def _end(message: str, exit_code: int) -> None:
    if JSON in sys.argv:
        emit_error(message, exit_code)
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
