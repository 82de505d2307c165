"""Jobs: their limits, the queue in front of a few worker processes, and the loop that such a process runs.

Written by hand because `pebble` (a pool of killable processes) has no channel for progress, no limit on memory and no
worker reserved for short jobs: around it, most of this file would still be needed.
"""

import importlib
import multiprocessing
import os
import queue
import secrets
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any, Literal

from unbandit import checks
from unbandit.progress import end_with_parent, shown_by, stage_text
from unbandit.web.problems import (
    BROKEN,
    CLOSED,
    FULL,
    NO_MEMORY,
    STOPPED,
    TOO_LONG,
    Console,
    Problem,
    Refusal,
    problem_of,
)

State = Literal["waiting", "running", "done", "failed", "cancelled"]

POLL_SECONDS = 0.02

LEAST_MEMORY = 4 * 1024**3  # bytes of address space below which the compiled kernels do not load


@dataclass(frozen=True)
class Limits:
    """Limits on what one visitor may ask for, in bytes, rows, seconds and jobs."""

    upload: int = 64 * 1024**2  # a file as it is sent
    unpacked: int = 512 * 1024**2  # a file once it is unpacked
    rows: int = 10_000_000  # of its table
    seconds: float = 300.0  # one job, from its start
    upload_seconds: float = 120.0  # until a file has arrived
    upload_rate: float = 16_384.0  # bytes per second that a file arrives with, and an answer is taken with, at least
    upload_pause: float = 20.0  # seconds in which nothing may arrive
    memory: int = 8 * 1024**3  # one job
    jobs: int = 100  # that wait or run at once, of all visitors
    waiting: int = 1024**3  # sent for jobs that have not started, by all visitors
    kept_seconds: float = 900.0  # that an answer is kept
    kept_bytes: int = 256 * 1024**2  # all answers together; beyond it the oldest are dropped


@dataclass(frozen=True)
class JobProgress:
    """State of a job."""

    title: str
    state: State
    stage: str = ""  # what is being done, in words
    share: float | None = None  # how much is done, from 0 to 1; None if unknown
    seconds: float = 0.0  # since it was submitted
    ahead: int = 0  # jobs that wait before it


@dataclass
class Job:
    """Job from its submission until it is forgotten."""

    progress: JobProgress
    task: str  # its name in `TASKS`
    arguments: tuple[Any, ...]
    weight: int = 0  # bytes that were sent for it
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    begun: float = field(default_factory=time.monotonic)
    ended: float | None = None
    result: Any = None
    problem: Problem | None = None
    cancelled: bool = False
    over: threading.Event = field(default_factory=threading.Event)  # set when there is a result or a problem
    size: int = 0  # bytes of the result

    def drop_arguments(self) -> None:
        """Free what was sent: a worker has it now, or nobody needs it any more."""
        self.arguments, self.weight = (), 0

    def end(self, *, result: Any = None, problem: Problem | None = None) -> None:
        """Store the outcome and free the arguments."""
        state: State = "done" if problem is None else "cancelled" if problem is STOPPED else "failed"
        self.result, self.problem = result, problem
        self.drop_arguments()
        self.size = sum(len(each.data) for each in getattr(result, "downloads", ())) + len(getattr(result, "main", ""))
        self.ended = time.monotonic()
        self.progress = replace(self.progress, state=state, share=1.0)
        self.over.set()


@dataclass(frozen=True)
class Download:
    """File that an answer offers."""

    name: str
    label: str
    media_type: str
    data: bytes


@dataclass(frozen=True)
class Outcome:
    """Result of a job: a title, the HTML of the page's main part, and files to download."""

    title: str
    main: str
    downloads: tuple[Download, ...] = ()


class JobQueue:
    """Queue of jobs for a few worker processes, the first of which takes short jobs only; results are kept for a while.

    By default there are two more workers than cores. `tasks` is the module that defines the tasks.
    """

    def __init__(self, limits: Limits, workers: int | None = None, tasks: str = "unbandit.web.tasks") -> None:
        self.limits, self._tasks, self._console = limits, tasks, Console()
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._quick: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._slow: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._closed = threading.Event()
        count = workers or checks.threads() + 2
        self._ready = [threading.Event() for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._run_worker, args=(which, which == 0 and count > 1), daemon=True)
            for which in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, title: str, task: str, *arguments: Any, weight: int = 0, quick: bool = False) -> Job:
        """Add a job; `quick` if it is certain to be short, `weight` the bytes that were sent for it.

        Refused where too many jobs wait already, or too large ones.
        """
        job = Job(JobProgress(title, "waiting"), task, arguments, weight)
        with self._lock:
            self._drop_old_results()
            unfinished = [each for each in self._jobs.values() if not each.over.is_set()]
            heavy = sum(each.weight for each in unfinished) + weight > self.limits.waiting
            if self._closed.is_set() or len(unfinished) >= self.limits.jobs or (heavy and unfinished):
                raise Refusal(FULL)
            self._jobs[job.id] = job
        (self._quick if quick else self._slow).put(job)
        return job

    def find(self, id: str) -> Job | None:
        """Return a job, or None if it was forgotten."""
        with self._lock:
            self._drop_old_results()
            return self._jobs.get(id)

    def progress(self, job: Job) -> JobProgress:
        """Return the state of a job, with the time it took so far and how many jobs wait before it."""
        with self._lock:
            waiting = [each for each in self._jobs.values() if each.progress.state == "waiting"]
        ahead = sum(each.begun < job.begun for each in waiting) if job in waiting else 0
        return replace(job.progress, seconds=(job.ended or time.monotonic()) - job.begun, ahead=ahead)

    def cancel(self, job: Job) -> None:
        """Stop a job, even while it runs; it is over a moment later."""
        job.cancelled = True
        if job.progress.state == "waiting":
            job.end(problem=STOPPED)

    def forget(self, job: Job) -> None:
        """Stop a job and drop its result."""
        self.cancel(job)
        with self._lock:
            self._jobs.pop(job.id, None)

    def close(self) -> None:
        """Stop all jobs and all processes; every job gets an outcome."""
        with self._lock:
            self._closed.set()
            waiting = [job for job in self._jobs.values() if job.progress.state == "waiting"]
        for job in waiting:
            job.end(problem=CLOSED)
        for thread in self._threads:
            thread.join(5)

    def _drop_old_results(self) -> None:
        """Drop results that are too old, then the oldest while all are too large; the caller holds the lock."""
        ended = sorted((job.ended, id) for id, job in self._jobs.items() if job.ended is not None)
        held = sum(self._jobs[id].size for _, id in ended)
        for when, id in ended:
            old = time.monotonic() - when > self.limits.kept_seconds
            if old or (held > self.limits.kept_bytes and id != ended[-1][1]):
                held -= self._jobs.pop(id).size

    def _next(self, only_quick: bool) -> Job | None:
        """Return the next job, short ones first; None if there is none."""
        for jobs in (self._quick,) if only_quick else (self._quick, self._slow):
            with suppress(queue.Empty):
                return jobs.get_nowait()
        self._closed.wait(POLL_SECONDS)
        return None

    def _run_worker(self, which: int, only_quick: bool) -> None:
        """Give one process a job after another, and replace it when it is gone.

        Processes start one after another: the first is ready sooner if it does not share the cores with the rest.
        """
        while which > 0 and not self._ready[which - 1].wait(POLL_SECONDS) and not self._closed.is_set():
            continue
        while not self._closed.is_set():
            try:
                with self._process() as (pipe, process):
                    if not self._started(pipe, process):
                        continue
                    self._ready[which].set()
                    while not self._closed.is_set():
                        job = self._next(only_quick)
                        if job is not None and not job.over.is_set() and not self._run(job, pipe):
                            break  # the process is gone, or must go
            except Exception as error:  # whatever it was, the next visitor must be served
                self._console.show(error)
                self._closed.wait(1.0)

    @contextmanager
    def _process(self) -> Iterator[tuple[Any, Any]]:
        """Start a process; kill it at the end."""
        context = multiprocessing.get_context("spawn")
        pipe, theirs = context.Pipe()
        process = context.Process(target=run_jobs, args=(theirs, self.limits, self._tasks), daemon=True)
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
        while not self._closed.is_set() and process.is_alive():
            if pipe.poll(POLL_SECONDS):
                with suppress(EOFError, OSError):
                    return bool(pipe.recv() == ("ready",))
                break
        if not self._closed.is_set():
            self._console.say("unbandit: a worker process ended before it began; trying again.")
            self._closed.wait(1.0)
        return False

    def _run(self, job: Job, pipe: Any) -> bool:
        """Run a job in the process; return whether the process can be used again."""
        deadline = time.monotonic() + self.limits.seconds
        job.progress = replace(job.progress, state="running", stage="Beginning")
        try:
            pipe.send((job.task, job.arguments))
            job.drop_arguments()
            while True:
                late = TOO_LONG if time.monotonic() > deadline else None
                problem = STOPPED if job.cancelled else CLOSED if self._closed.is_set() else late
                if problem is not None:
                    job.end(problem=problem)
                    return False
                if not pipe.poll(POLL_SECONDS):
                    continue
                kind, *rest = pipe.recv()
                if kind != "stage":
                    job.end(**({"result": rest[0]} if kind == "done" else {"problem": rest[0]}))
                    return True
                job.progress = replace(job.progress, stage=rest[0], share=rest[1])
        except (EOFError, OSError):  # the process is gone: the system kills one that takes too much memory
            job.end(problem=NO_MEMORY)
            return False
        except Exception as error:
            self._console.show(error)
            job.end(problem=BROKEN)
            return False


def run_jobs(pipe: Connection, limits: Limits, tasks: str) -> None:
    """Run jobs in this process until its parent ends, however that ends.

    It takes `(task, arguments)` from the pipe and sends `("stage", words, share)` any number of times, then
    `("done", result)` or `("failed", problem)`. `tasks` is a module with `TASKS`, by name, and `warm_up`, which is
    called first. Unexpected errors go to the error stream, never to the page.
    """
    end_with_parent()
    _limit_resources(limits)
    warnings.simplefilter("ignore")  # answers carry their warnings in words
    module = importlib.import_module(tasks)
    module.warm_up()
    with suppress(OSError):  # the page may have ended meanwhile
        pipe.send(("ready",))
    console = Console()
    while True:
        try:
            name, arguments = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return

        outcome: tuple[str, Any]
        try:
            stages = JobStages(pipe)
            with shown_by(stages.show):
                outcome = ("done", module.TASKS[name](*arguments, limits, stages.report))
        except KeyboardInterrupt:
            return
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500:
                console.show(error)
            outcome = ("failed", problem)
        pipe.send(outcome)


class JobStages:
    """Sends the stages of a job, and how far the work in each of them is."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._share: float | None = None
        self._sent: tuple[str, float | None] = ("", None)

    def report(self, stage: str, share: float | None) -> None:
        """Send a stage, and the share of the whole job that was done before it, if that is known."""
        self._share = share
        self._send(stage, share)

    def show(self, stage: str, share: float | None, left: float | None) -> None:
        """Send how far the work of a stage is; the share is the stage's where that of the job is not known."""
        self._send(stage_text(stage, share, left), share if self._share is None else self._share)

    def _send(self, words: str, share: float | None) -> None:
        if (words, share) != self._sent:
            self._sent = words, share
            self._pipe.send(("stage", words, share))


def _limit_resources(limits: Limits) -> None:
    """Lower the priority below that of the page itself, and limit memory where the system can."""
    try:
        import resource
    except ImportError:
        return
    os.nice(5)
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    allowed = min(limits.memory, max(half, LEAST_MEMORY))  # of address space, which is more than memory in use
    resource.setrlimit(resource.RLIMIT_AS, (allowed if most == resource.RLIM_INFINITY else min(allowed, most), most))
