"""Work that takes long: how far it is, how long it will take, and how Ctrl-C ends it.

Kernels run a cloud through a whole log in one call, without the interpreter lock. They share two numbers with the
thread that waits for them, `Work.signals`: kernels add to the first what they have done, and end where the second is
not 0. Whoever waits looks at the first a few times per second, and sets the second on Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeVar

from unbandit.formatting import duration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console
    from rich.status import Status

Result = TypeVar("Result")
Show = Callable[[str, float | None, float | None], None]  # takes a stage, its share that is done, and the seconds left

LOOK_SECONDS = 0.1  # between two looks at work under way
SECONDS_TO_STOP = 0.5  # within which work ends that was asked to; what takes longer is being compiled, and left alone
SECONDS_TO_JUDGE = 1.0  # of a stage, before its speed says how long it will take
LINE_SECONDS = 10.0  # between two lines, where there is no terminal
SECONDS_UNSAID = 2.0  # of a stage, before the time that it has taken is shown
HOUR = 3_600.0

CHECKING = "Checking "  # a stage that names the rule
CHECK = "Checking the rule"  # the same stage, entered where nobody knows which of several rules it is

COMPILING = " (compiling; usually only once)"  # after a stage, while that takes most of the time

SWITCH = "UNBANDIT_PROGRESS"  # the environment variable: `off` for no progress; `on` for a line per stage, too

DONE, STOP = 0, 1  # the numbers in `Work.signals`


@cache
def compile_clock() -> Callable[[], float]:
    """Return a clock of the seconds that this process compiles kernels for: they do not say how long work will take."""
    from numba.core import event  # here, since the help of the command line needs none

    class Clock(event.Listener):
        """Compiling one kernel compiles those that it calls; numba lets one thread compile at a time."""

        depth, seconds, begun = 0, 0.0, 0.0

        def on_start(self, event: Any) -> None:
            self.begun = self.begun if self.depth else time.monotonic()
            self.depth += 1

        def on_end(self, event: Any) -> None:
            if self.depth == 0:  # begun before anyone listened
                return
            self.depth -= 1
            self.seconds += 0.0 if self.depth else time.monotonic() - self.begun

        def __call__(self) -> float:
            return self.seconds + (time.monotonic() - self.begun if self.depth else 0.0)

    clock = Clock()
    event.register("numba:compile", clock)  # type: ignore[no-untyped-call]
    return clock


class Work:
    """Work under way, on one thread or several, in stages."""

    def __init__(self, show: Show | None = None) -> None:
        import numpy as np  # here, since the help of the command line needs none

        self._compiling = compile_clock() if show is not None else lambda: 0.0
        self._compiled = self._compiling()
        self.signals: NDArray[np.int64] = np.zeros(2, np.int64)
        self._show, self._stage, self._begun = show, "", time.monotonic()
        self._total: int | None = None
        self._parts: int | None = None
        self._lock = threading.Lock()

    @contextmanager
    def stage(self, name: str, total: int | None = None, *, in_parts: bool = False) -> Iterator[None]:
        """Enter a stage of so many particles times steps, if that is known, or parts; one within another adds to it."""
        with self._lock:
            is_outermost = not self._stage
            if is_outermost:
                self._stage, self._total = name, total
                self._begun, self._compiled = time.monotonic(), self._compiling()
                self._parts = 0 if in_parts else None
                self.signals[DONE] = 0
        try:
            yield
        finally:
            if is_outermost:
                self._stage = ""

    def finish_part(self) -> None:
        """Count a part of a stage that is counted in parts."""
        with self._lock:
            self._parts = None if self._parts is None else self._parts + 1

    def reach(self, part: int) -> None:
        """Say how many parts of a stage are done, for a stage that is counted in parts."""
        with self._lock:
            self._parts = None if self._parts is None else max(self._parts, part)

    def look(self) -> None:
        """Show how far the stage is, and how many seconds it will take at its speed so far."""
        if self._show is None or not self._stage:
            return
        done = float(self.signals[DONE]) if self._parts is None else self._parts
        if self._parts is None and not done:  # kernels are being loaded or compiled
            self._begun, self._compiled = time.monotonic(), self._compiling()
        share = min(done / self._total, 1.0) if self._total else None
        passed = time.monotonic() - self._begun - (self._compiling() - self._compiled)
        left = passed * (1 - share) / share if share and passed >= SECONDS_TO_JUDGE else None
        self._show(self._stage, share, left)

    def stop(self) -> None:
        """Have kernels end at their next step, and Python code where it looks."""
        self.signals[STOP] = 1

    def end_if_stopped(self) -> None:
        """End this thread's part of work that is to stop."""
        if self.signals[STOP]:
            raise KeyboardInterrupt


_current: ContextVar[Work | None] = ContextVar("work", default=None)
_show: ContextVar[Show | None] = ContextVar("show", default=None)


def current_work() -> Work:
    """Return the work that this thread does a part of; new work where it does none."""
    return _current.get() or Work()


@contextmanager
def shown_by(show: Show) -> Iterator[None]:
    """Have work within the block shown by a function."""
    token = _show.set(show)
    try:
        yield
    finally:
        _show.reset(token)


@contextmanager
def stopped_together() -> Iterator[Work]:
    """Make a block one piece of work: if it ends by Ctrl-C, kernels that threads still run for it end as well."""
    work = _current.get() or Work(_show.get())
    token = _current.set(work)
    try:
        yield work
    except Exception:
        raise
    except BaseException:
        work.stop()
        raise
    finally:
        _current.reset(token)


def interruptible(function: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
    """Call a function so that Ctrl-C ends it within a second, and show how far it is.

    Python handles signals on its main thread, between two instructions, so not while a kernel runs there. The function
    runs on another thread, and this one waits. A kernel that is being compiled cannot be stopped: it is left to that
    thread, which then ends.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if _current.get() is not None or not (is_main or _show.get()):
        return function(*arguments, **options)
    with stopped_together() as work:
        pool = WorkerThreads(1, "work")
        future: Future[Result] = pool.submit(function, *arguments, **options)
        try:
            while not wait([future], LOOK_SECONDS).done:
                work.look()
            return future.result()
        except KeyboardInterrupt:
            work.stop()
            wait([future], SECONDS_TO_STOP)
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


class WorkerThreads(ThreadPoolExecutor):
    """Threads whose calls are part of the work that they were handed out by."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """Start a call."""
        return super().submit(copy_context().run, unless_stopped, function, *arguments, **options)


def unless_stopped(function: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
    """Call a function; where its work was stopped, what it returns is worth nothing."""
    work = current_work()
    work.end_if_stopped()
    result = function(*arguments, **options)
    work.end_if_stopped()
    return result


def stage_text(stage: str, share: float | None, left: float | None) -> str:
    """Write how far a stage is.

    >>> stage_text("Estimating", 0.457, 95.0), stage_text("Estimating", 0.01, None), stage_text("Reading", None, None)
    ('Estimating: 45%, about 1 min 35 s left', 'Estimating: 1%', 'Reading')
    """
    if share is None:
        return stage
    return f"{stage}: {int(100 * share)}%" + ("" if left is None else f", about {duration(max(left, 1.0))} left")


class StageLine:
    """One line that says which stage a command is in, and how far; on a terminal it is rewritten in place.

    Where there is no terminal, a line is written every ten seconds; where `SWITCH` asks for it, also one per stage.
    A stage of which nobody knows how far it is shows the time that it has taken, from two seconds on. No line is
    written twice in a row.
    """

    def __init__(self, console: Console, stage: str, *, is_quiet: bool = False) -> None:
        self._console, self._stage, self._text = console, stage, stage
        self._rule, self._written = "", ""  # the stage that names the rule; the last line
        self._is_shown = not is_quiet and _asked() is not False
        self._status: Status | None = console.status(stage) if self._is_shown and console.is_terminal else None
        self._begun = self._said = time.monotonic()
        self._ended, self._first, self._compiling = threading.Event(), False, ""

    def __enter__(self) -> Self:
        self._token = _show.set(self.show)
        if self._status is not None:
            self._status.start()
        self.update(self._stage)
        if self._is_shown:
            threading.Thread(target=self._tick, name="progress", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        _show.reset(self._token)
        self._ended.set()
        if self._status is not None:
            self._status.stop()

    def _tick(self) -> None:
        """Show the time that a stage has taken, and write a line now and then where there is no terminal."""
        every, compiled = 1.0 if self._status is not None else min(LINE_SECONDS, 1.0), _compiled()
        while not self._ended.wait(every):
            now, passed = time.monotonic(), time.monotonic() - self._begun
            before, compiled = compiled, _compiled()
            self._compiling = COMPILING if compiled - before > every / 2 else ""
            text = self._text
            if text == self._stage and passed >= SECONDS_UNSAID:
                text = f"{text}: {duration(passed)} so far"
            text += self._compiling
            if self._status is not None:
                self._status.update(text)
            elif now - self._said >= LINE_SECONDS and text != self._written:
                self._said = now
                self._write(text)

    def update(self, stage: str) -> None:
        """Show the next stage."""
        self._rule = stage if stage.startswith(CHECKING) else ""
        self.show(stage, None, None)

    def show(self, stage: str, share: float | None, left: float | None) -> None:
        """Show how far a stage is."""
        stage = self._rule if self._rule and stage == CHECK else stage
        is_new = stage != self._stage
        self._text = stage_text(stage, share, left)
        if self._status is not None and (share is not None or is_new):
            self._status.update(self._text + self._compiling)
        elif self._is_shown and _asked() and (is_new or not self._first):
            self._first = True
            self._said = time.monotonic()
            self._write(self._text)
        if is_new:
            self._begun = time.monotonic()
        self._stage = stage

    def _write(self, text: str) -> None:
        self._written = text
        self._console.print(text, soft_wrap=True)


def _compiled() -> float:
    """Return the seconds that kernels were compiled for; 0 where there are none yet, which need not be loaded."""
    return compile_clock()() if "numba" in sys.modules else 0.0


def _asked() -> bool | None:
    """Return whether progress was asked for by the environment; None if it says nothing."""
    words = {"on": True, "1": True, "yes": True, "true": True, "off": False, "0": False, "no": False, "false": False}
    return words.get(os.environ.get(SWITCH, "").lower())


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
    """A bar with a label and the time left; where what advances are rounds, also with rounds per second."""

    def __init__(self, console: Console, label: str = "Simulating", *, rounds: bool = True) -> None:
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns = (
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
        )  # fmt: skip
        period = 30.0 if rounds else HOUR  # whose speed says how long it will take: other tasks may take minutes each
        self._label, self._rounds = label, rounds
        self._progress = RichProgress(*columns, console=console, transient=True, speed_estimate_period=period)

    def begin(self, rounds: int, done: int) -> None:
        """Draw the bar, starting from what was done before."""
        self._task = self._progress.add_task(self._label, total=rounds, completed=done, speed="")
        if done < rounds:
            self._progress.start()

    def advance(self, rounds: int) -> None:
        """Move the bar on."""
        self._progress.advance(self._task, rounds)
        task = self._progress.tasks[0]
        if self._rounds:
            self._progress.update(self._task, speed=speed_text(task.finished_speed or task.speed))

    def end(self) -> None:
        """Remove the bar."""
        self._progress.stop()


class ProgressLines(Progress):
    """A line of text every ten seconds, for messages that go to a file: how much is done, and the time left."""

    def __init__(self, console: Console, label: str) -> None:
        self._console, self._label = console, label

    def begin(self, rounds: int, done: int) -> None:
        """Take the time."""
        self._total, self._done, self._before = rounds, done, done
        self._begun = self._said = time.monotonic()

    def advance(self, rounds: int) -> None:
        """Count, and write a line if the last one is old."""
        self._done += rounds
        now = time.monotonic()
        if now - self._said >= LINE_SECONDS:
            self._said = now
            left = (now - self._begun) * (self._total - self._done) / (self._done - self._before)
            self._console.print(f"{self._label}: {self._done / self._total:.1%}, {duration(left)} left")


def speed_text(speed: float | None) -> str:
    """Write rounds per second, since this start, in three figures.

    >>> speed_text(123_456_789.0)
    '123 million rounds/s'
    """
    if speed is None:
        return ""
    for size, word in ((1e9, " billion"), (1e6, " million"), (1e3, " thousand")):
        if speed >= size:
            return f"{speed / size:.3g}{word} rounds/s"
    return f"{speed:.3g} rounds/s"


def progress_on(console: Console, label: str = "Simulating", *, rounds: bool = True) -> Progress:
    """Return a bar if the console is a terminal, else lines; nothing where `SWITCH` says so."""
    if _asked() is False:
        return Progress()
    return Bar(console, label, rounds=rounds) if console.is_terminal else ProgressLines(console, label)


def end_with_parent() -> None:
    """End this worker process as soon as the one that started it has ended, however that happened."""
    from multiprocessing import connection, parent_process  # most processes have no worker

    def watch(sentinel: int) -> None:
        connection.wait([sentinel])
        os._exit(0)

    parent = parent_process()
    if parent is not None:
        threading.Thread(target=watch, args=(parent.sentinel,), daemon=True).start()
