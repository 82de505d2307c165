"""Tell how far a study is: a bar for people, and its silent twin."""

from __future__ import annotations

from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.progress import Task as RichTask
from rich.text import Text

__all__ = ["Bar", "Progress", "Shared", "Silent", "progress_on"]


class Progress(Protocol):
    """Stand for anything that can be told how far a study is."""

    def begin(self, rounds: int, done: int) -> None:
        """Take in how many rounds the study has, and how many of them were done before."""

    def advance(self, rounds: int) -> None:
        """Take in that so many more rounds are done."""

    def end(self) -> None:
        """Stop, whether all is done or not."""


class Silent:
    """Say nothing."""

    def begin(self, rounds: int, done: int) -> None:
        """Say nothing."""

    def advance(self, rounds: int) -> None:
        """Say nothing."""

    def end(self) -> None:
        """Say nothing."""


class Bar:
    """Draw a bar with rounds a second and the time left.

    Parameters
    ----------
    console
        Where it is drawn.
    label
        What stands before it.
    """

    def __init__(self, console: Console, label: str = "Simulating") -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), Speed(), TimeRemainingColumn())
        self._label, self._drawn = label, RichProgress(*columns, console=console, transient=True)

    def begin(self, rounds: int, done: int) -> None:
        """Draw the bar, with what was done before."""
        self._task = self._drawn.add_task(self._label, total=rounds, completed=done)
        if done < rounds:
            self._drawn.start()

    def advance(self, rounds: int) -> None:
        """Move the bar on."""
        self._drawn.advance(self._task, rounds)

    def end(self) -> None:
        """Take the bar away."""
        self._drawn.stop()


class Shared:
    """Pass on the rounds of one study to the bar of several; whoever has the bar begins and ends it."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar

    def begin(self, rounds: int, done: int) -> None:
        """Do nothing: the bar stands."""

    def advance(self, rounds: int) -> None:
        """Move the bar on."""
        self._bar.advance(rounds)

    def end(self) -> None:
        """Do nothing: the bar goes on."""


class Speed(ProgressColumn):
    """Show rounds a second."""

    def render(self, task: RichTask) -> Text:
        """Return the speed, of this start alone."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{in_words(speed)} rounds/s")


def in_words(number: float) -> str:
    """Return a large number in three figures.

    Examples
    --------
    >>> in_words(12), in_words(1234), in_words(123_456_789), in_words(2.5e9)
    ('12', '1.23 thousand', '123 million', '2.5 billion')
    """
    for size, word in ((1e9, " billion"), (1e6, " million"), (1e3, " thousand")):
        if number >= size:
            return f"{number / size:.3g}{word}"
    return f"{number:.3g}"


def progress_on(console: Console, label: str = "Simulating") -> Progress:
    """Return a bar where somebody can see it move, else its silent twin."""
    return Bar(console, label) if console.is_terminal else Silent()
