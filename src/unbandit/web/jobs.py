"""One piece of work, from the moment it was asked for until it is forgotten."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

from unbandit.web.model import Problem, Progress, State

__all__ = ["CLOSED", "STOPPED", "TOO_LONG", "Job"]

TOO_LONG = Problem(
    "That took too long",
    "The work was stopped: it took longer than one visitor may have.",
    "Take fewer rounds or arms, or use the command line, which has no limit.",
    503,
)
STOPPED = Problem("Cancelled", "You cancelled this; nothing of it was kept.", "", 200)
CLOSED = Problem("The page was closed", "The program behind this page was stopped before the work was done.", "", 503)


@dataclass
class Job:
    """Hold one piece of work.

    Attributes
    ----------
    title, task, arguments
        What it is for people, which task, and what the task takes.
    weight
        Bytes that were brought for it.
    size
        Bytes of its outcome.
    over
        Is set when there is an outcome: a result, or the problem that stands in its place.
    """

    title: str
    task: str
    arguments: tuple[Any, ...]
    weight: int = 0
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    progress: Progress = field(init=False)
    begun: float = field(default_factory=time.monotonic)
    ended: float | None = None
    result: Any = None
    problem: Problem | None = None
    cancelled: bool = False
    over: threading.Event = field(default_factory=threading.Event)
    size: int = 0

    def __post_init__(self) -> None:
        self.progress = Progress(self.title, "waiting")

    def let_go(self) -> None:
        """Forget what was brought: it is elsewhere now, or of no more use."""
        self.arguments, self.weight = (), 0

    def end(self, *, result: Any = None, problem: Problem | None = None) -> None:
        """Put the outcome down, and let go of what was brought."""
        state: State = "done" if problem is None else "cancelled" if problem is STOPPED else "failed"
        self.result, self.problem = result, problem
        self.let_go()
        self.size = sum(len(each.data) for each in getattr(result, "downloads", ())) + len(getattr(result, "main", ""))
        self.ended = time.monotonic()
        self.progress = replace(self.progress, state=state, share=1.0)
        self.over.set()

    def seen(self, ahead: int) -> Progress:
        """Return where it stands."""
        return replace(self.progress, seconds=(self.ended or time.monotonic()) - self.begun, ahead=ahead)
