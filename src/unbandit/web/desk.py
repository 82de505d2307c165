"""Pieces of work: who waits, who runs, what came out.

Each of a few threads owns one process. Work is done there, so that it can be cancelled, that its time and memory have
limits, and that nothing in a file can reach the page's own process. One process takes quick work only: reading a file
never waits for somebody's long computation.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import secrets
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

from unbandit.web.model import Limits, Problem, Progress, State
from unbandit.web.wording import BROKEN, NO_MEMORY
from unbandit.web.worker import serve_work

__all__ = ["Desk", "Full", "Job"]

TOO_LONG = Problem(
    "That took too long",
    "The work was stopped: it took longer than one visitor may have.",
    "Take fewer rounds, arms or particles, or use the command line, which has no limit.",
    503,
)
STOPPED = Problem("Cancelled", "You cancelled this; nothing of it was kept.", "", 200)
CLOSED = Problem("The page was closed", "The program behind this page was stopped before the work was done.", "", 503)

KEPT_BYTES = 256 * 1024**2
"""Of all answers together; beyond that the oldest go."""

_STEP = 0.02


class Full(Exception):
    """Say that too many pieces of work wait already."""


@dataclass
class Job:
    """Hold one piece of work from the moment it was asked for."""

    title: str
    task: str
    arguments: tuple[Any, ...]
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

    def end(self, *, result: Any = None, problem: Problem | None = None) -> None:
        """Put the outcome down, and let go of what was brought."""
        state: State = "done" if problem is None else "cancelled" if problem is STOPPED else "failed"
        self.result, self.problem, self.arguments = result, problem, ()
        self.size = sum(len(each.data) for each in getattr(result, "downloads", ())) + len(getattr(result, "main", ""))
        self.ended = time.monotonic()
        self.progress = replace(self.progress, state=state, share=1.0)
        self.over.set()

    def seen(self, ahead: int) -> Progress:
        """Return where it stands."""
        return replace(self.progress, seconds=(self.ended or time.monotonic()) - self.begun, ahead=ahead)


class Desk:
    """Take pieces of work, have them done by a few processes, and keep the outcomes for a while.

    Parameters
    ----------
    limits
        Of one piece of work, and of how many there may be.
    workers
        How many processes; by default two more than there are cores. The first takes quick work only.
    tasks
        The module that has the tasks.
    """

    def __init__(self, limits: Limits, workers: int | None = None, tasks: str = "unbandit.web.tasks") -> None:
        self.limits, self._tasks = limits, tasks
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._quick: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._slow: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        count = workers or (os.cpu_count() or 1) + 2
        self._ready = [threading.Event() for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._serve, args=(which, which == 0 and count > 1), daemon=True)
            for which in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, title: str, task: str, *arguments: Any, quick: bool = False) -> Job:
        """Ask for a piece of work; `quick` if it surely takes a moment only."""
        job = Job(title, task, arguments)
        with self._lock:
            self._sweep()
            if sum(not each.over.is_set() for each in self._jobs.values()) >= self.limits.jobs:
                raise Full
            self._jobs[job.id] = job
        (self._quick if quick else self._slow).put(job)
        return job

    def find(self, name: str) -> Job | None:
        """Return a piece of work, unless it was forgotten."""
        with self._lock:
            self._sweep()
            return self._jobs.get(name)

    def progress(self, job: Job) -> Progress:
        """Return where a piece of work stands, with how many wait before it."""
        with self._lock:
            ahead = sum(
                each.progress.state == "waiting" and each.begun < job.begun for each in self._jobs.values()
            )  # fmt: skip
        return job.seen(ahead if job.progress.state == "waiting" else 0)

    def cancel(self, job: Job) -> None:
        """Stop a piece of work, also in the middle of it."""
        job.cancelled = True
        if job.progress.state == "waiting":
            job.end(problem=STOPPED)
        job.over.wait(5)

    def forget(self, job: Job) -> None:
        """Let go of a piece of work and its outcome."""
        self.cancel(job)
        with self._lock:
            self._jobs.pop(job.id, None)

    def close(self) -> None:
        """Stop all work and all processes."""
        self._closed.set()
        for thread in self._threads:
            thread.join(5)

    def _sweep(self) -> None:
        """Forget outcomes that are old, and the oldest if they are too many; the lock is held."""
        now = time.monotonic()
        for job in [each for each in self._jobs.values() if each.ended is not None]:
            if now - (job.ended or now) > self.limits.kept_seconds:
                del self._jobs[job.id]
        over = sorted(
            (each for each in self._jobs.values() if each.ended is not None), key=lambda each: each.ended or 0
        )
        held = sum(job.size for job in over)
        for job in over[:-1]:
            if held <= KEPT_BYTES:
                return
            held -= job.size
            del self._jobs[job.id]

    def _next(self, only_quick: bool) -> Job | None:
        """Return the next piece of work: quick ones first."""
        for line in (self._quick,) if only_quick else (self._quick, self._slow):
            try:
                return line.get_nowait()
            except queue.Empty:
                continue
        self._closed.wait(_STEP)
        return None

    def _serve(self, which: int, only_quick: bool) -> None:
        """Own a process, and give it one piece of work after the other.

        They begin one after the other, for the first is ready sooner if it does not share the cores with the rest.
        """
        context = multiprocessing.get_context("spawn")
        while which > 0 and not self._ready[which - 1].wait(_STEP) and not self._closed.is_set():
            continue
        while not self._closed.is_set():
            pipe, theirs = context.Pipe()
            process = context.Process(target=serve_work, args=(theirs, self.limits, self._tasks), daemon=True)
            process.start()
            theirs.close()
            if self._started(pipe, process):
                self._ready[which].set()
                while not self._closed.is_set():
                    job = self._next(only_quick)
                    if job is not None and not job.over.is_set() and not self._work(job, pipe, process):
                        break  # the process is gone, or must go
            process.kill()
            process.join()
            pipe.close()

    def _started(self, pipe: Any, process: Any) -> bool:
        while not self._closed.is_set():
            if pipe.poll(_STEP):
                try:
                    return bool(pipe.recv() == ("ready",))
                except EOFError:
                    break
            if not process.is_alive():
                break
        if not self._closed.is_set():
            print("unbandit: a worker process ended before it began; trying again.", file=sys.stderr)
            self._closed.wait(1.0)
        return False

    def _work(self, job: Job, pipe: Any, process: Any) -> bool:
        """Have a piece of work done; return whether the process can be used again."""
        deadline = time.monotonic() + self.limits.seconds
        job.progress = replace(job.progress, state="running", stage="Beginning")
        try:
            pipe.send((job.task, job.arguments))
            while True:
                if job.cancelled:
                    job.end(problem=STOPPED)
                    return False
                if self._closed.is_set():
                    job.end(problem=CLOSED)
                    return False
                if time.monotonic() > deadline:
                    job.end(problem=TOO_LONG)
                    return False
                if not pipe.poll(_STEP):
                    continue
                kind, *rest = pipe.recv()
                if kind == "stage":
                    job.progress = replace(job.progress, stage=rest[0], share=rest[1])
                elif kind == "done":
                    job.end(result=rest[0])
                    return True
                else:
                    job.end(problem=rest[0])
                    return True
        except (EOFError, OSError):  # the process is gone: the system takes one that wants too much
            job.end(problem=NO_MEMORY)
            return False
        except Exception:
            job.end(problem=BROKEN)
            raise
