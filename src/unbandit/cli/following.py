"""`unbandit estimate --follow`: the table again and again, as the log grows."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unbandit.cli.asking import Question
from unbandit.errors import AssumptionWarning, LogError, NotIdentifiable, ParameterError, UnbanditError

if TYPE_CHECKING:
    from unbandit.estimators.streaming import StreamingEstimate
    from unbandit.log.following import Follower

__all__ = ["follow"]


def follow(
    asked: Question, every: float, snapshot: str | None, until_idle: float | None, as_json: bool, output: str | None
) -> None:
    """Read what is there, print, and go on as more comes; until nothing does for a while, or Ctrl-C."""
    from unbandit.estimators.streaming import StreamingEstimate
    from unbandit.log.following import Follower

    for name, value in (("--every", every), ("--until-idle", until_idle)):
        if value is not None and not 0 < value < float("inf"):
            raise ParameterError(f"expected a number of seconds above 0; got {value:g}.", parameter=name)
    if asked.log == "-":
        raise ParameterError(
            "expected a file or a folder; got standard input, which comes but once.", parameter="follow"
        )
    if snapshot is not None and not Path(snapshot).absolute().parent.is_dir():
        raise ParameterError(f'expected a file in a folder that is there; got "{snapshot}".', parameter="snapshot")
    streaming = StreamingEstimate(asked.rule, arms=asked.arms, snapshot=snapshot, **asked.options)
    follower = Follower(asked.log, streaming.log, asked.columns, streaming.position)
    shown = _Shown(streaming, follower, as_json, output)
    news = saved = time.monotonic()
    try:
        while True:
            for _ in follower.news():
                news, shown.due = time.monotonic(), True
                if news - saved > every:
                    saved = _save(streaming, follower)
            if shown.due:
                saved = _save(streaming, follower)
                shown.show()
            left = float("inf") if until_idle is None else news + until_idle - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(every, left))
    except KeyboardInterrupt:
        if follower.settled:
            _save(streaming, follower)
            shown.show()
        else:  # some rows are read and not counted, or counted in part: the last snapshot knows nothing of them
            typer.echo("note: stopped while rows were being read; they are left out.", err=True)
        raise typer.Exit(130) from None
    if shown.refusal is not None:
        raise shown.refusal


def _save(streaming: StreamingEstimate, follower: Follower) -> float:
    """Write the snapshot, if one was asked for, and return the time."""
    if streaming.snapshot is not None:
        streaming.position = follower.position()
        streaming.save()
    return time.monotonic()


class _Shown:
    """Print an answer when there is a new one."""

    def __init__(self, streaming: StreamingEstimate, follower: Follower, as_json: bool, output: str | None) -> None:
        self._streaming, self._follower, self._as_json, self._output = streaming, follower, as_json, output
        self.due = True
        self.refusal: UnbanditError | None = None
        self._said: set[str] = set()

    def show(self) -> None:
        """Print the table, or a line of JSON; while there is too little to tell, say what is missing."""
        if not self.due:
            return
        from unbandit.cli.tables import print_estimate, print_notices

        self.due = False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AssumptionWarning)  # they are said below
                answer = self._streaming.estimate()
        except (LogError, NotIdentifiable) as error:
            self.refusal = error
            self._once(f"waiting: {error}")
            return
        self.refusal = None
        if self._output is not None:
            from unbandit.cli.estimate import write_answer

            write_answer(answer, {}, self._output)
        if self._as_json:
            typer.echo(json.dumps(answer.to_dict(), allow_nan=False))
            return
        rounds = f"{self._streaming.log.lengths.sum():,} rounds"
        print_estimate(answer, f"{answer.rule}, method {answer.method}, after {rounds}")
        for notice in self._follower.notices:
            self._once(f"note: {notice}")
        unsaid = [[each for each in found if self._new(each.message)] for found in (answer.warnings, answer.notes)]
        print_notices(*unsaid)

    def _new(self, message: str) -> bool:
        known = message in self._said
        self._said.add(message)
        return not known

    def _once(self, message: str) -> None:
        if self._new(message):
            typer.echo(message, err=True)
