"""The command line: its commands, and the exit code of each error."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from unbandit import errors
from unbandit._version import __version__
from unbandit.cli import completion, demo, estimate, inference, plan, report, simulate, studies
from unbandit.cli.command import Commands, GroupedCommand
from unbandit.errors import UnbanditError, shell_option

EXIT_CODES: dict[type[UnbanditError], int] = {
    errors.ParameterError: 2, errors.LogError: 3, errors.DescriptionError: 3, errors.OutputError: 3,
    errors.ResumeError: 3, errors.ClusterError: 3, errors.NotIdentifiable: 4, errors.InferenceError: 4,
}  # fmt: skip

WIDEST_HELP = 100  # columns, in a terminal that has so many


app = typer.Typer(
    name="unbandit",
    cls=Commands,
    help="Estimate the value of every arm of a bandit from its action log alone. No rewards needed.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST_HELP + 2},
)
for command in (
    demo.demo, estimate.estimate, inference.check, report.report, inference.posterior, inference.identify,
    inference.population, report.serve, simulate.simulate, studies.study, plan.plan, plan.leak,
    studies.reproduce, studies.calibrate, simulate.demonstrators, simulate.datasets,
):  # fmt: skip
    app.command(cls=GroupedCommand)(command)


@app.callback(invoke_without_command=True)
def _version(
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        typer.echo(f"unbandit {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; every known error ends with one sentence and its exit code."""
    try:
        with completion.spoken_to_bash(), _output_to_its_end():
            app(prog_name="unbandit")
    except UnbanditError as error:
        typer.echo(f"unbandit: {error.phrased(shell_option)}", err=True)
        sys.exit(next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1))
    except OSError as error:  # files raise the errors above, so this is standard output
        typer.echo(f"unbandit: standard output: could not be written: {error.strerror or error}.", err=True)
        _drop_output()  # what is left to print would fail again
        sys.exit(3)
    except MemoryError as error:
        typer.echo(f"unbandit: not enough memory: {error or 'the log'}. Take fewer runs or rounds.", err=True)
        sys.exit(2)


@contextmanager
def _output_to_its_end() -> Iterator[None]:
    """Write what is still to be written; a reader who went away, as `head` does, is no accident."""
    try:
        yield
    finally:
        try:
            if sys.__stdout__ is not None:
                sys.__stdout__.flush()
        except BrokenPipeError:
            _drop_output()


def _drop_output() -> None:
    """Send what is left to print nowhere."""
    if sys.__stdout__ is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())
