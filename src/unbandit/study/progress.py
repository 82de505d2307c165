"""Progress of a study: a bar for people, or nothing."""

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.progress import Task as RichTask
from rich.text import Text


class Progress:
    """A study's progress, shown nowhere; others inherit from it, or have the same methods."""

    def begin(self, rounds: int, done: int) -> None:
        """Start, given the rounds of the study and those done before."""

    def advance(self, rounds: int) -> None:
        """Add finished rounds."""

    def end(self) -> None:
        """Stop, whether everything is done or not."""


class Shared(Progress):
    """Progress of one of several studies that share a bar; whoever owns the bar begins and ends it."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar

    def advance(self, rounds: int) -> None:
        """Move the bar on."""
        self._bar.advance(rounds)


class Bar(Progress):
    """A bar with a label, rounds per second and the time left."""

    def __init__(self, console: Console, label: str = "Simulating") -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), Speed(), TimeRemainingColumn())
        self._label, self._progress = label, RichProgress(*columns, console=console, transient=True)

    def begin(self, rounds: int, done: int) -> None:
        """Draw the bar, starting from what was done before."""
        self._task = self._progress.add_task(self._label, total=rounds, completed=done)
        if done < rounds:
            self._progress.start()

    def advance(self, rounds: int) -> None:
        """Move the bar on."""
        self._progress.advance(self._task, rounds)

    def end(self) -> None:
        """Remove the bar."""
        self._progress.stop()


class Speed(ProgressColumn):
    """Rounds per second, since this start."""

    def render(self, task: RichTask) -> Text:
        """Return the speed in three figures, such as 123 million rounds/s."""
        speed = task.finished_speed or task.speed
        if speed is None:
            return Text("")
        for size, word in ((1e9, " billion"), (1e6, " million"), (1e3, " thousand")):
            if speed >= size:
                return Text(f"{speed / size:.3g}{word} rounds/s")
        return Text(f"{speed:.3g} rounds/s")


def progress_on(console: Console, label: str = "Simulating") -> Progress:
    """Return a bar if the console is a terminal, else progress that is not shown."""
    return Bar(console, label) if console.is_terminal else Progress()
