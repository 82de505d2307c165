"""Pieces of work: who waits, who runs, what came out.

Each of a few threads owns one process. Work is done there, so that it can be cancelled, that its time and memory have
limits, and that nothing in a file can reach the page's own process. One process takes quick work only: reading a file
never waits for somebody's long computation.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from unbandit.web.jobs import CLOSED, STOPPED, TOO_LONG, Job
from unbandit.web.model import Limits, Progress
from unbandit.web.wording import BROKEN, NO_MEMORY
from unbandit.web.worker import serve_work

__all__ = ["Desk", "Full"]

KEPT_BYTES = 256 * 1024**2
"""Of all answers together; beyond that the oldest go."""

_STEP = 0.02


class Full(Exception):
    """Say that too many pieces of work wait already, or too large ones."""


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
        self._quick: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._slow: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._closed = threading.Event()
        count = workers or (os.cpu_count() or 1) + 2
        self._ready = [threading.Event() for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._serve, args=(which, which == 0 and count > 1), daemon=True)
            for which in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, title: str, task: str, *arguments: Any, weight: int = 0, quick: bool = False) -> Job:
        """Ask for a piece of work; `quick` if it surely takes a moment only, `weight` bytes being brought for it."""
        job = Job(title, task, arguments, weight)
        with self._lock:
            self._sweep()
            open_ones = [each for each in self._jobs.values() if not each.over.is_set()]
            heavy = sum(each.weight for each in open_ones) + weight > self.limits.waiting
            if self._closed.is_set() or len(open_ones) >= self.limits.jobs or (heavy and open_ones):
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
            waiting = [each for each in self._jobs.values() if each.progress.state == "waiting"]
        return job.seen(sum(each.begun < job.begun for each in waiting) if job in waiting else 0)

    def cancel(self, job: Job) -> None:
        """Have a piece of work stopped, also in the middle of it; it is over a moment later."""
        job.cancelled = True
        if job.progress.state == "waiting":
            job.end(problem=STOPPED)

    def forget(self, job: Job) -> None:
        """Let go of a piece of work and its outcome."""
        self.cancel(job)
        with self._lock:
            self._jobs.pop(job.id, None)

    def close(self) -> None:
        """Stop all work and all processes; nobody is left waiting."""
        with self._lock:
            self._closed.set()
            waiting = [job for job in self._jobs.values() if job.progress.state == "waiting"]
        for job in waiting:
            job.end(problem=CLOSED)
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
        """Own a process, and give it one piece of work after the other; if it is gone, begin another.

        They begin one after the other, for the first is ready sooner if it does not share the cores with the rest.
        """
        while which > 0 and not self._ready[which - 1].wait(_STEP) and not self._closed.is_set():
            continue
        while not self._closed.is_set():
            try:
                with self._process() as (pipe, process):
                    if not self._started(pipe, process):
                        continue
                    self._ready[which].set()
                    while not self._closed.is_set():
                        job = self._next(only_quick)
                        if job is not None and not job.over.is_set() and not self._work(job, pipe):
                            break  # the process is gone, or must go
            except Exception:  # whatever it was, there is a next visitor
                traceback.print_exc(file=sys.stderr)
                self._closed.wait(1.0)

    @contextmanager
    def _process(self) -> Iterator[tuple[Any, Any]]:
        """Begin a process, and see to it that it ends."""
        context = multiprocessing.get_context("spawn")
        pipe, theirs = context.Pipe()
        process = context.Process(target=serve_work, args=(theirs, self.limits, self._tasks), daemon=True)
        try:
            process.start()
            theirs.close()
            yield pipe, process
        finally:
            pipe.close()
            if process.pid is not None:
                process.kill()
                process.join()

    def _started(self, pipe: Any, process: Any) -> bool:
        while not self._closed.is_set():
            if pipe.poll(_STEP):
                try:
                    return bool(pipe.recv() == ("ready",))
                except (EOFError, OSError):
                    break
            if not process.is_alive():
                break
        if not self._closed.is_set():
            print("unbandit: a worker process ended before it began; trying again.", file=sys.stderr)
            self._closed.wait(1.0)
        return False

    def _work(self, job: Job, pipe: Any) -> bool:
        """Have a piece of work done; return whether the process can be used again."""
        deadline = time.monotonic() + self.limits.seconds
        job.progress = replace(job.progress, state="running", stage="Beginning")
        try:
            pipe.send((job.task, job.arguments))
            job.let_go()
            while True:
                ended = STOPPED if job.cancelled else CLOSED if self._closed.is_set() else None
                if ended is None and time.monotonic() > deadline:
                    ended = TOO_LONG
                if ended is not None:
                    job.end(problem=ended)
                    return False
                if not pipe.poll(_STEP):
                    continue
                kind, *rest = pipe.recv()
                if kind != "stage":
                    job.end(**({"result": rest[0]} if kind == "done" else {"problem": rest[0]}))
                    return True
                job.progress = replace(job.progress, stage=rest[0], share=rest[1])
        except (EOFError, OSError):  # the process is gone: the system takes one that wants too much
            job.end(problem=NO_MEMORY)
            return False
        except Exception:
            traceback.print_exc(file=sys.stderr)
            job.end(problem=BROKEN)
            return False
