"""Run what is not yet done of a study, on threads, a cluster or any executor, and stop cleanly.

Whoever does a task writes its part, so nothing large is sent back. Threads suffice on one machine, because kernels
release the interpreter lock. To a cluster a study travels as a pickle, loaded once by each process, which checks that
its own code would do the same work.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import pickle
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import ExitStack, suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol

from unbandit import checks
from unbandit.clusters import WAIT, Cluster, LostWorker
from unbandit.errors import ClusterError, Interrupts, ParameterError, option
from unbandit.formatting import counted
from unbandit.progress import Progress, WorkerThreads, end_with_parent
from unbandit.study.results import ResultsFolder
from unbandit.study.taskgrid import Task, TaskGrid, differences

Say = Callable[[str], None]  # called with a sentence about anything worth knowing
Job = tuple[ResultsFolder, int]  # a task by its number, of the study that is kept in a folder

TASKS_PER_THREAD = 4  # in hand: one at work, the others waiting
TASKS_IN_HAND = 64  # of an executor with an unknown number of workers

ONE_THREAD = ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""What libraries read, when they are imported, to know how many threads to start."""

BATCHES_PER_WORKER = 2  # in hand of a cluster: one at work, one waiting
SECONDS_TO_STOP = 15.0  # that a cluster has to end its running batches
SECONDS_PER_BATCH = 1.0  # about, on a small cluster
SECONDS_PER_WORKER = 0.01  # longer: a head easily hands out a hundred batches per second
FIRST_BATCH_ROUNDS = 20_000_000  # before any speed is known: a moment's work, or one task
TASK_OVERHEAD_ROUNDS = 100_000  # what a task costs besides its rounds
MOST_TASKS_PER_BATCH = 1_000


class SupportsSubmit(Protocol):
    """Any executor."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Start a call somewhere, and return its future."""


def choose_executor(
    executor: SupportsSubmit | str | None, *, address: str | None = None, wait: float = WAIT, threads: int | None = None
) -> int | Cluster | SupportsSubmit:
    """Return the number of threads, the cluster (not yet reached), or the caller's executor that does the tasks."""
    checks.text("address", address)
    wait = checks.positive("wait", wait)
    if executor is None or (isinstance(executor, str) and executor == "threads"):
        if address is not None:
            remedy = f"Name an {option('executor')}: ray, dask."
            raise ParameterError(f'threads run on this machine; got "{address}".', parameter="address", remedy=remedy)
        return checks.threads(threads)
    if isinstance(executor, str):
        return Cluster(executor, address, threads, wait)
    for parameter, given in (("threads", threads), ("address", address)):
        if given is not None:
            raise ParameterError(f"the executor has its own; leave {parameter} or executor out.", parameter=parameter)
    if not callable(getattr(executor, "submit", None)):
        text = f"expected threads, ray, dask, or something with submit; got {checks.brief(executor)}."
        raise ParameterError(text, parameter="executor", value=executor)
    return executor


def run(
    study: TaskGrid, folder: str | os.PathLike[str], *, executor: SupportsSubmit | str | None = None,
    address: str | None = None, wait: float = WAIT, threads: int | None = None, progress: Progress | None = None,
    say: Say = lambda sentence: None,
) -> Path | str:  # fmt: skip
    """Do what is not yet done of a study, and return its folder; see `Study.run`."""
    chosen = choose_executor(executor, address=address, wait=wait, threads=threads)
    checks.path("folder", folder)
    checks.function("say", say)
    place, tasks, progress = ResultsFolder(folder, study), study.tasks, progress or Progress()
    if isinstance(chosen, Cluster) and place.storage.only_this_process:
        text = f"{place.path}: expected a folder that the cluster's workers see; got one in the memory of this process."
        raise ParameterError(text, remedy="Use a folder on shared or object storage.")
    with ExitStack() as stack:
        unfinished = len(place.finished()) < len(tasks)  # a refusal changes nothing
        if unfinished and not isinstance(chosen, Cluster):
            study.check()
        if unfinished and isinstance(executor, str) and isinstance(chosen, Cluster):
            stack.enter_context(chosen)
        finished = stack.enter_context(place.open())
        _say_damaged(place, say)
        # the longest first, so that no worker is left with a long task at the end
        missing = sorted(set(range(len(tasks))) - finished, key=lambda number: (-tasks[number].rounds, number))
        progress.begin(study.rounds, study.rounds - sum(tasks[number].rounds for number in missing))
        stack.callback(progress.end)
        if missing:
            try:
                dispatch(chosen, study, missing, place, progress, say)
            except (KeyboardInterrupt, ClusterError) as stopped:
                kept = f"{len(place.present()):,} of {len(tasks):,} parts are kept in {place.path}"
                if isinstance(stopped, ClusterError):
                    raise ClusterError(f"{stopped} {kept}: the same command resumes from there.") from stopped
                stopped.add_note(f"{kept}: the same call resumes from there.")
                raise
        place.remove_leftovers()
    return place.path


def run_together(
    places: Sequence[ResultsFolder], *, processes: int | None = None, progress: Progress,
    say: Say = lambda sentence: None,
) -> None:  # fmt: skip
    """Do what is not yet done of several studies, the longest tasks first, on one pool of processes.

    Processes, since much of the work is outside of kernels, and since they can be killed: an error, or Ctrl-C, waits
    for no task. Parts that are finished are kept. `progress` counts the studies' `cost`.
    """
    count = checks.threads(processes)
    with ExitStack() as stack:
        jobs: list[Job] = []
        for place in places:
            finished = stack.enter_context(place.open())
            _say_damaged(place, say)
            jobs += [(place, number) for number in range(len(place.study.tasks)) if number not in finished]
        jobs.sort(key=_job_cost, reverse=True)
        total = sum(place.study.cost(task) for place in places for task in place.study.tasks)
        progress.begin(total, total - sum(map(_job_cost, jobs)))
        stack.callback(progress.end)
        if jobs:
            workers = min(count, len(jobs))
            with WorkerProcesses(workers) as pool:
                try:
                    _dispatch_one_by_one(pool, jobs, progress, TASKS_PER_THREAD * workers, limit=0.0)
                except BaseException:
                    pool.kill()
                    raise
        for place in places:
            place.remove_leftovers()


def _job_cost(job: Job) -> int:
    place, number = job
    return place.study.cost(place.study.tasks[number])


class WorkerProcesses(ProcessPoolExecutor):
    """A pool of fresh processes that stop quietly with Ctrl-C, which reaches all processes of a terminal at once.

    Fresh, since a fork would copy locks that threads of this one hold. A process that dies of Ctrl-C writes a traceback
    and breaks the pool, so one that starts has it blocked, one that waits remembers it, and one that works ends its
    task with it. There is a process per core, so libraries start no threads of their own in it (`ONE_THREAD`).
    """

    def __init__(self, count: int) -> None:
        super().__init__(count, multiprocessing.get_context("spawn"), initializer=_await_interrupts)

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:  # type: ignore[override]
        """Start a call in a process; processes started for it inherit `ONE_THREAD`, and that Ctrl-C is blocked."""
        own, masks = {name: os.environ.get(name) for name in ONE_THREAD}, hasattr(signal, "pthread_sigmask")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else None
        try:
            os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
            return super().submit(_interruptible, function, *arguments)
        finally:
            for name, value in own.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
            if before is not None:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def kill(self) -> None:
        """End every process at once, whatever it is doing: one within a compiled kernel would not notice Ctrl-C."""
        for process in list((self._processes or {}).values()):
            process.kill()


class _WorkerInterrupts(Interrupts):
    """Remembers Ctrl-C in a worker process, and stops its work, if it has any."""

    working = False

    def interrupt(self, *_: object) -> None:
        """Take the signal."""
        self.came = True
        if self.working:
            raise KeyboardInterrupt


def _await_interrupts() -> None:
    """Prepare a process for Ctrl-C before its first task, and for the end of the one that started it."""
    end_with_parent()
    signal.signal(signal.SIGINT, _WorkerInterrupts().interrupt)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _interruptible(function: Callable[..., Any], *arguments: Any) -> Any:
    """Do a task in a worker process, unless Ctrl-C came before."""
    interrupts = signal.getsignal(signal.SIGINT).__self__  # type: ignore[union-attr]
    try:
        interrupts.working = True
        if interrupts.came:
            raise KeyboardInterrupt
        return function(*arguments)
    finally:
        interrupts.working = False


def _say_damaged(place: ResultsFolder, say: Say) -> None:
    if place.damaged:
        damaged = counted(len(place.damaged), "part was", "parts were")
        say(f"{place.path}: {damaged} cut or altered, and will be redone.")


def dispatch(
    executor: int | SupportsSubmit, study: TaskGrid, missing: Sequence[int], place: ResultsFolder, progress: Progress,
    say: Say,
) -> None:  # fmt: skip
    """Have tasks done by a number of threads or by an executor; at the first error, start no more and raise it."""
    if isinstance(executor, Cluster):
        pickled, folder, cluster = pickle_study(study), place.absolute, executor
        calls = _Calls(lambda batch: cluster.submit(run_tasks, pickled, batch, folder), SECONDS_TO_STOP)
        _dispatch_to_cluster(calls, Batches(study.tasks, missing), cluster, progress, say)
        away = len(study.tasks) - len(place.present())
        if away:  # the workers' folder may be another disk under the same name
            raise ClusterError(
                f"the workers wrote {away:,} parts to their own {place.path}. Use a folder that all of them see."
            )
    elif isinstance(executor, int):
        count = min(executor, len(missing))
        with WorkerThreads(count, "study") as threads:  # handed a few tasks at a time, unlike `checks.in_threads`
            _dispatch_one_by_one(threads, [(place, number) for number in missing], progress, TASKS_PER_THREAD * count)
    else:
        _dispatch_one_by_one(executor, [(place, number) for number in missing], progress, TASKS_IN_HAND)


def _dispatch_one_by_one(
    executor: SupportsSubmit, jobs: Sequence[Job], progress: Progress, in_hand: int, *, limit: float | None = None
) -> None:  # fmt: skip
    """Keep a number of tasks in hand until all are done; after an error wait for those at most `limit` seconds."""

    def submit(batch: list[int]) -> Future[Receipt]:
        place, number = jobs[batch[0]]
        return executor.submit(run_task, place.study, number, os.fspath(place.path))

    left = deque(range(len(jobs)))
    with _Calls(submit, limit) as calls:  # on Ctrl-C tasks in hand are finished, or killed by the caller
        while left or calls:
            while left and len(calls) < in_hand:
                calls.begin([left.popleft()])
            ended = calls.next(None)
            assert ended is not None
            future, batch = ended
            future.result()
            progress.advance(_job_cost(jobs[batch[0]]))


def _dispatch_to_cluster(calls: _Calls, batches: Batches, cluster: Cluster, progress: Progress, say: Say) -> None:
    """Keep some batches per worker in hand until all are done, or there has been no worker for too long."""
    last_seen, workers_before = time.monotonic(), 0
    with calls:
        while batches or calls:
            workers = cluster.workers
            if workers < workers_before:
                say(f"The cluster went from {workers_before} to {workers} workers; their tasks are retried.")
            workers_before = workers
            while batches and len(calls) < BATCHES_PER_WORKER * max(workers, 1):
                calls.begin(batches.next(workers))
            ended = calls.next(1.0)
            if workers or ended is not None:
                last_seen = time.monotonic()
            if time.monotonic() - last_seen > cluster.wait:  # the libraries themselves would wait for ever
                raise ClusterError(f"the cluster has had no workers for {cluster.wait:g} s.")
            if ended is None:
                continue
            future, batch = ended
            try:
                receipt = future.result()
            except LostWorker as lost:
                numbers = f"tasks {batch[0]} to {max(batch)}" if len(batch) > 1 else f"task {batch[0]}"
                raise ClusterError(
                    f"workers died repeatedly while doing {numbers} ({lost}). They may have too little memory."
                ) from None
            batches.learn(batch, receipt.seconds)
            progress.advance(receipt.rounds)


class Receipt(NamedTuple):
    """What comes back from a task or a batch of tasks."""

    rounds: int
    seconds: float = 0.0


def run_task(study: TaskGrid, number: int, folder: str | os.PathLike[str]) -> Receipt:
    """Do one task and write its part; it needs nothing but its arguments, so it can run anywhere."""
    task = study.tasks[number]
    ResultsFolder(folder, study).write(number, study.rows(task))
    return Receipt(task.rounds)


def run_tasks(pickled: PickledStudy, numbers: Sequence[int], folder: str) -> Receipt:
    """Do some tasks and write their parts; it needs nothing but its arguments, so it can run anywhere."""
    start = time.perf_counter()
    study = unpickle_study(pickled)
    rounds = sum(run_task(study, number, folder).rounds for number in numbers)
    return Receipt(rounds, time.perf_counter() - start)


class _Calls:
    """The calls in hand, and a queue of those that ended; an error in its block cancels what has not begun.

    It then waits for the rest, at most `limit` seconds, so that parts stay whole; with a limit of 0 it leaves them all
    to whoever kills the executor, which must not find them cancelled. Not `concurrent.futures.wait`: it
    scans all futures at every call, and accepts none but those of its own module.
    """

    def __init__(self, submit: Callable[[list[int]], Future[Receipt]], limit: float | None = None) -> None:
        self._submit, self._limit = submit, limit
        self._in_hand: dict[Future[Receipt], list[int]] = {}
        self._ended: SimpleQueue[Future[Receipt]] = SimpleQueue()

    def __len__(self) -> int:
        return len(self._in_hand)

    def begin(self, batch: list[int]) -> None:
        future = self._submit(batch)
        self._in_hand[future] = batch
        future.add_done_callback(self._ended.put)

    def next(self, timeout: float | None) -> tuple[Future[Receipt], list[int]] | None:
        """Return the next call that ended, with its batch; None if there is none within `timeout` seconds."""
        try:
            future = self._ended.get(timeout=timeout)
        except Empty:
            return None
        return future, self._in_hand.pop(future)

    def __enter__(self) -> _Calls:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None or self._limit == 0:
            return
        for future in self._in_hand:
            future.cancel()
        if self._limit is not None:
            wait_for(self._in_hand, self._limit)
            return
        for future in self._in_hand:
            with suppress(Exception):
                future.result()


class Batches:
    """Batches of tasks for a cluster, so that handing one out costs little compared to the work in it.

    Tasks differ a thousandfold in duration between rules, so a batch is sized by what the last ones took: about a
    second, longer on a large cluster, whose head hands out a batch to every worker in that time. Towards the end
    batches shrink, so that all workers finish together. Parts do not depend on any of this.
    """

    def __init__(self, tasks: Sequence[Task], numbers: Iterable[int]) -> None:
        self._tasks, self._left = tasks, deque(numbers)
        self._cost_left = sum(self._cost(number) for number in self._left)
        self._seconds_per_cost: float | None = None

    def __bool__(self) -> bool:
        return bool(self._left)

    def _cost(self, number: int) -> int:
        return self._tasks[number].rounds + TASK_OVERHEAD_ROUNDS

    def next(self, workers: int) -> list[int]:
        """Take the next batch, given the number of workers."""
        seconds = SECONDS_PER_BATCH + SECONDS_PER_WORKER * workers
        most = FIRST_BATCH_ROUNDS if self._seconds_per_cost is None else seconds / self._seconds_per_cost
        most = min(most, self._cost_left / (2 * max(workers, 1)))
        batch = [self._left.popleft()]
        cost = self._cost(batch[0])
        while self._left and len(batch) < MOST_TASKS_PER_BATCH and cost + self._cost(self._left[0]) <= most:
            cost += self._cost(self._left[0])
            batch.append(self._left.popleft())
        self._cost_left -= cost
        return batch

    def learn(self, batch: Sequence[int], seconds: float) -> None:
        """Take into account how long a batch took."""
        pace = max(seconds, 1e-6) / sum(self._cost(number) for number in batch)
        self._seconds_per_cost = pace if self._seconds_per_cost is None else (self._seconds_per_cost + pace) / 2


class PickledStudy(NamedTuple):
    """A study on its way to other processes."""

    data: bytes
    identity: str  # where it comes from, as JSON
    rules_by_value: bool  # rules travel with their code: their file is not looked for at the other end


def pickle_study(study: TaskGrid) -> PickledStudy:
    """Pickle a study; rules and instances of a script travel by value, all others by the names of their modules."""
    by_value = any(type(rule).__module__ == "__main__" for rule in getattr(study, "rules", ()))
    data = io.BytesIO()
    _pickler()(data, protocol=5).dump(study)
    return PickledStudy(data.getvalue(), json.dumps(study.identity, allow_nan=False), by_value)


@lru_cache(maxsize=4)
def unpickle_study(pickled: PickledStudy) -> TaskGrid:
    """Return the study; raise a `ClusterError` if other code than where it comes from would run it."""
    try:
        study: TaskGrid = pickle.loads(pickled.data)
    except (ImportError, AttributeError) as error:
        raise ClusterError(
            f"{socket.gethostname()}: expected a worker with every module that defines the study's rules and "
            f"instances; got one without ({error}). Install it on every worker."
        ) from error
    sent, own = json.loads(pickled.identity), json.loads(json.dumps(study.describe(), allow_nan=False))
    if pickled.rules_by_value:
        own["rules"] = sent["rules"]
    changed = differences(sent, own, sides=("the study has", "the worker has"))
    if changed:
        raise ClusterError(
            f"{socket.gethostname()}: expected a worker with the same code as where the study was started; got other "
            f"code ({'; '.join(changed)}). Install the same versions of unbandit and polars on every worker."
        )
    study.__dict__["_identity_json"] = pickled.identity  # parts must carry the digest that they are checked against
    study.__dict__.pop("digest", None)
    return study


def _pickler() -> Any:
    """Return a pickler that handles classes defined in a script, where one is installed: Ray and Dask bring it."""
    for module in ("cloudpickle", "ray.cloudpickle"):
        with suppress(ImportError):
            return import_module(module).Pickler
    return pickle.Pickler
