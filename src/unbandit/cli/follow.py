"""`unbandit estimate --follow`: print the table again as the log grows."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unbandit.cli.options import EstimateCommand
from unbandit.errors import (
    AssumptionWarning,
    LogError,
    NotIdentifiable,
    ParameterError,
    UnbanditError,
    phrase,
    shell_option,
)

if TYPE_CHECKING:
    from unbandit.estimators.streaming import StreamingEstimate
    from unbandit.log.following import Follower


def follow_log(
    asked: EstimateCommand,
    every: float,
    snapshot: str | None,
    until_idle: float | None,
    as_json: bool,
    output: str | None,
) -> None:
    """Read what is there, print, and continue as more comes, until the log is idle or Ctrl-C."""
    from unbandit.estimators.streaming import StreamingEstimate
    from unbandit.log.following import Follower

    for name, value in (("every", every), ("until_idle", until_idle)):
        if value is not None and not 0 < value < float("inf"):
            raise ParameterError(f"expected a number of seconds above 0; got {value:g}.", parameter=name, value=value)
    if asked.log == "-":
        raise ParameterError(
            "expected a file or a folder; got standard input, which can be read only once.", parameter="follow"
        )
    if snapshot is not None and not Path(snapshot).absolute().parent.is_dir():
        raise ParameterError(f'expected a file in a folder that is there; got "{snapshot}".', parameter="snapshot")
    streaming = StreamingEstimate(asked.rule, arms=asked.arms, snapshot=snapshot, **asked.options)
    follower = Follower(asked.log, streaming.log, asked.columns, streaming.position)
    printer = _Printer(streaming, follower, as_json, output)
    news = saved = time.monotonic()
    try:
        while True:
            for _ in follower.news():
                news, printer.due = time.monotonic(), True
                if news - saved > every:
                    saved = _save(streaming, follower)
            if printer.due:
                saved = _save(streaming, follower)
                printer.print()
            left = float("inf") if until_idle is None else news + until_idle - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(every, left))
    except KeyboardInterrupt:
        if follower.settled:
            _save(streaming, follower)
            printer.print()
        else:  # some rows were read and counted only in part: the last snapshot does not have them
            typer.echo("note: stopped while rows were being read; they are left out.", err=True)
        raise typer.Exit(130) from None
    if printer.refusal is not None:
        raise printer.refusal


def _save(streaming: StreamingEstimate, follower: Follower) -> float:
    """Write the snapshot, if one was asked for, and return the time."""
    if streaming.snapshot is not None:
        streaming.position = follower.position()
        streaming.save()
    return time.monotonic()


class _Printer:
    """Printer of an answer whenever there is a new one, and of each notice once."""

    def __init__(self, streaming: StreamingEstimate, follower: Follower, as_json: bool, output: str | None) -> None:
        self._streaming, self._follower, self._as_json, self._output = streaming, follower, as_json, output
        self.due = True
        self.refusal: UnbanditError | None = None
        self._printed: set[str] = set()

    def print(self) -> None:
        """Print the table, or a line of JSON; while the log is too short for an answer, print what is missing."""
        if not self.due:
            return
        from unbandit.cli import output

        self.due = False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AssumptionWarning)  # they are printed below
                answer = self._streaming.estimate()
        except (LogError, NotIdentifiable) as error:
            self.refusal = error
            self._print_once(f"waiting: {error.phrased(shell_option)}")
            return
        self.refusal = None
        if self._output is not None:
            from unbandit.result import json_pieces

            output.write_answer(answer, self._output, json_pieces(answer, {}))
        if self._as_json:
            typer.echo(json.dumps(answer.to_dict(), allow_nan=False))
            return
        rounds = f"{self._streaming.log.lengths.sum():,} rounds"
        output.print_estimate(answer, f"{answer.rule}, method {answer.method}, after {rounds}")
        for notice in self._follower.notices:
            self._print_once(f"note: {phrase(notice.text, shell_option)}")
        output.print_notices(
            *([each for each in notices if self._is_new(each.text)] for notices in (answer.warnings, answer.notes))
        )

    def _is_new(self, message: str) -> bool:
        known = message in self._printed
        self._printed.add(message)
        return not known

    def _print_once(self, message: str) -> None:
        if self._is_new(message):
            typer.echo(message, err=True)
