"""Who does a study's tasks: threads of ours, a cluster by its name, or anything that can `submit`.

Tasks put together into batches, so that handing one to a cluster costs little beside the work in it.

How long a task takes differs a thousandfold between rules, so a batch is sized by what the last ones took: about a
second, and longer on a large cluster, whose head has to hand out a batch to every worker in that time. Towards the end
batches grow smaller, so that all workers end together. What is in a part does not depend on any of it.

A study on its way to other processes: pickled once, and opened once by each process that does some of it.

Who opens it makes sure that it would do the same work: the study as it describes itself there must be the study as it
was described here, with the same code behind it.

Hand tasks to an executor, take in what is done, hand out again what a dying worker dropped, stop well.

Do what is not yet done of a study, and read what is. Any `Work` counts as a study here.

The seam is small: `executor.submit(perform, study, number, folder)` must give a future with `result`, `cancel` and
`add_done_callback`. Threads do for one machine, for the kernels let go of the interpreter; a process pool does as well,
or a cluster (`clusters`), if its workers see the folder. Who does a task writes its part: nothing large comes back.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol

from unbandit.checks import whole
from unbandit.clusters import WAIT, Cluster, LostWorker
from unbandit.errors import ClusterError, ParameterError
from unbandit.study.progress import Progress, Silent
from unbandit.study.results import Folder
from unbandit.study.taskgrid import Task, Work, changes


class Submits(Protocol):
    """Stand for any executor."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Start a call somewhere, and return its future."""


def chosen(
    executor: Submits | str | None, *, address: str | None = None, wait: float = WAIT, threads: int | None = None
) -> int | Cluster | Submits:
    """Return how many threads, which cluster (not yet reached), or which executor of the caller's does the tasks.

    Examples
    --------
    >>> chosen(None, threads=3), chosen("threads", threads=2)
    (3, 2)
    >>> chosen("spark")
    Traceback (most recent call last):
    ...
    unbandit.errors.ParameterError: executor: expected one of threads, ray, dask; got "spark".
    """
    workers = None if threads is None else whole("threads", threads)
    if executor is None or executor == "threads":
        if address is not None:
            raise ParameterError(
                f'threads are of this machine; got "{address}". Name an executor: ray, dask.', parameter="address"
            )
        return workers or os.cpu_count() or 1
    if isinstance(executor, str):
        return Cluster(executor, address, workers, wait)
    if workers is not None:
        raise ParameterError("an executor has workers of its own; leave threads or executor out.", parameter="threads")
    if address is not None:
        raise ParameterError(
            "an executor has one of its own; leave address out, or name the executor.", parameter="address"
        )
    return executor


def check_reach(hands: int | Cluster | Submits, place: Folder) -> None:
    """Refuse a folder that the processes of a cluster cannot see."""
    if isinstance(hands, Cluster) and getattr(place.storage, "only_here", False):
        raise ParameterError(
            f"{place.path}: expected a folder that the workers of a cluster see; got one in the memory of this "
            "process. Take a folder on shared or object storage."
        )


SECONDS_PER_BATCH = 1.0
"""About how long a batch takes on a small cluster."""


SECONDS_PER_WORKER = 0.01
"""How much longer for each worker: a head hands out a hundred batches a second with ease."""


FIRST_BATCH_ROUNDS = 20_000_000
"""The rounds of a batch before anything is known: a moment's work, or one task."""


TASK_OVERHEAD_ROUNDS = 100_000
"""What a task costs beside its rounds, in rounds."""


MOST_TASKS_PER_BATCH = 1_000
"""Tasks of a batch at most."""


class Batches:
    """Give the tasks of a study in batches.

    Parameters
    ----------
    tasks
        Of the study.
    numbers
        Of those that are to be done, the longest first.
    most
        Tasks of a batch at most.

    Examples
    --------
    >>> tasks = [Task(number, 0, 0, 1, rounds) for number, rounds in enumerate([30_000_000, 20, 20, 20, 20])]
    >>> batches = Batches(tasks, range(5))
    >>> batches.next(workers=1), batches.next(workers=1), batches.next(workers=1), batches.next(workers=1)
    ([0], [1, 2], [3], [4])
    """

    def __init__(self, tasks: Sequence[Task], numbers: Iterable[int], most: int = MOST_TASKS_PER_BATCH) -> None:
        self._tasks, self._left, self._most = tasks, deque(numbers), most
        self._cost_left = sum(self._cost(number) for number in self._left)
        self._pace: float | None = None

    def __bool__(self) -> bool:
        return bool(self._left)

    def _cost(self, number: int) -> int:
        return self._tasks[number].rounds + TASK_OVERHEAD_ROUNDS

    def next(self, workers: int) -> list[int]:
        """Take the next batch, for a cluster of so many workers."""
        seconds = SECONDS_PER_BATCH + SECONDS_PER_WORKER * workers
        most = FIRST_BATCH_ROUNDS if self._pace is None else seconds / self._pace
        most = min(most, self._cost_left / (2 * max(workers, 1)))
        batch = [self._left.popleft()]
        cost = self._cost(batch[0])
        while self._left and len(batch) < self._most and cost + self._cost(self._left[0]) <= most:
            cost += self._cost(self._left[0])
            batch.append(self._left.popleft())
        self._cost_left -= cost
        return batch

    def learn(self, batch: Sequence[int], seconds: float) -> None:
        """Take in how long a batch took, where it was done."""
        pace = max(seconds, 1e-6) / sum(self._cost(number) for number in batch)
        self._pace = pace if self._pace is None else (self._pace + pace) / 2


@dataclass(frozen=True)
class Packed:
    """Hold a study that travels.

    Attributes
    ----------
    data
        The study, pickled.
    said
        How it describes itself where it comes from, as JSON.
    by_value
        Whether rules of it travel with their code: their file is not looked for at the other end.
    """

    data: bytes
    said: str
    by_value: bool

    def opened(self) -> Work:
        """Return the study, if it is the same one here.

        Raises
        ------
        ClusterError
            If other code than where it comes from would do it.
        """
        return _load(self)


class Receipt(NamedTuple):
    """Say what a task, or a batch of them, came to."""

    rounds: int
    seconds: float = 0.0


def packed(study: Work) -> Packed:
    """Pack a study; rules and instances of a script go by value, all else by the names of their modules."""
    by_value = any(type(each).__module__ == "__main__" for each in getattr(study, "rules", ()))
    data = io.BytesIO()
    _pickler()(data, protocol=5).dump(study)
    return Packed(data.getvalue(), json.dumps(study.identity, allow_nan=False), by_value)


def perform_all(study: Packed, numbers: Sequence[int], folder: str) -> Receipt:
    """Do some tasks and write their parts; it needs nothing but its arguments, so that it can be done anywhere."""
    began = time.perf_counter()
    opened = study.opened()
    place, rounds = Folder(folder, opened), 0
    for number in numbers:
        task = opened.tasks[number]
        place.write(number, opened.rows(task))
        rounds += task.rounds
    return Receipt(rounds, time.perf_counter() - began)


@lru_cache(maxsize=4)
def _load(study: Packed) -> Work:
    try:
        work: Work = pickle.loads(study.data)
    except (ImportError, AttributeError) as error:
        raise ClusterError(
            f"{socket.gethostname()}: expected a worker with every module that the study's rules and instances stand "
            f"in; got one without ({error}). Install it on every worker."
        ) from error
    said, here = json.loads(study.said), json.loads(json.dumps(work.describe(), allow_nan=False))
    if study.by_value:
        here["rules"] = said["rules"]
    differing = changes(said, here)
    if differing:
        told = "; ".join(differing).replace("the folder has", "the study has").replace("asked for", "the worker has")
        raise ClusterError(
            f"{socket.gethostname()}: expected a worker with the code that the study was begun with; got another "
            f"({told}). Install the same versions of unbandit and polars on every worker."
        )
    work.__dict__["_said"] = study.said  # so that parts carry the digest that they are looked for with
    work.__dict__.pop("digest", None)
    return work


def _pickler() -> Any:
    """Return what pickles classes of a script too, where it is installed: Ray and Dask bring it."""
    for module in ("cloudpickle", "ray.cloudpickle"):
        with suppress(ImportError):
            return import_module(module).Pickler
    return pickle.Pickler


Say = Callable[[str], None]
"""Is told in a sentence what is worth knowing."""


FOREIGN = 64
"""Tasks handed out at a time to an executor whose number of workers we do not know."""


AHEAD = 2
"""Batches that a worker of a cluster has in hand: one at work, one waiting."""


TRIES = 4
"""How often a batch is handed out, if workers die over it."""


ENDING = 15.0
"""Seconds that a cluster has to end what it is at."""


def perform(study: Work, number: int, folder: str | os.PathLike[str]) -> Receipt:
    """Do one task and write its part; it needs nothing but its arguments, so that it can be done anywhere."""
    task = study.tasks[number]
    Folder(folder, study).write(number, study.rows(task))
    return Receipt(task.rounds)


def hand_out(
    hands: int | Submits, study: Work, missing: Iterable[int], place: Folder, told: Progress, say: Say
) -> None:
    """Have tasks done, by so many threads or by an executor; at the first error start no more, and raise it."""
    with _executing(hands) as executor:
        cluster = executor if isinstance(executor, Cluster) else None
        if cluster is not None:
            on_its_way, folder = packed(study), place.elsewhere
            calls = _Calls(lambda batch: cluster.submit(perform_all, on_its_way, batch, folder))
            _do(calls, Batches(study.tasks, missing), lambda: cluster.workers, AHEAD, cluster.wait, told, say)
            _check_all_there(study, place)
            return
        here = os.fspath(place.path)
        calls = _Calls(lambda batch: executor.submit(perform, study, batch[0], here))
        workers, ahead = (hands, 4) if isinstance(hands, int) else (1, FOREIGN)
        _do(calls, Batches(study.tasks, missing, most=1), lambda: workers, ahead, None, told, say)


@contextmanager
def _executing(hands: int | Submits) -> Iterator[Submits]:
    if not isinstance(hands, int):
        yield hands
        return
    with ThreadPoolExecutor(hands, "study") as threads:
        yield threads


class _Calls:
    """Keep the calls that are under way."""

    def __init__(self, submit: Callable[[list[int]], Future[Receipt]]) -> None:
        self._submit = submit
        self._under_way: dict[Future[Receipt], list[int]] = {}
        self._ended: SimpleQueue[Future[Receipt]] = SimpleQueue()

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(self, batch: list[int]) -> None:
        future = self._submit(batch)
        self._under_way[future] = batch
        future.add_done_callback(self._ended.put)

    def next(self, timeout: float | None) -> tuple[Future[Receipt], list[int]] | None:
        """Return the next call that is over, with its batch; nothing if none is for so long."""
        try:
            future = self._ended.get(timeout=timeout)
        except Empty:
            return None
        return future, self._under_way.pop(future)

    def stop(self, limit: float | None) -> None:
        """Drop what has not begun, and wait for the rest as far as the executor lets one; parts stay whole."""
        for future in self._under_way:
            future.cancel()
        if limit is not None:
            wait_for(self._under_way, limit)
            return
        for future in self._under_way:
            with suppress(Exception):
                future.result()


def _do(
    calls: _Calls,
    batches: Batches,
    workers: Callable[[], int],
    ahead: int,
    wait: float | None,
    told: Progress,
    say: Say,
) -> None:
    """Keep so many batches a worker under way until all are done; `wait` is how long there may be no worker at all."""
    dropped: deque[list[int]] = deque()
    tries: Counter[int] = Counter()
    seen = time.monotonic()
    try:
        while True:
            count = workers()
            while (dropped or batches) and len(calls) < ahead * max(count, 1):
                calls.begin(dropped.popleft() if dropped else batches.next(count))
            if not calls:
                return
            over = calls.next(None if wait is None else 1.0)
            if count or over is not None:
                seen = time.monotonic()
            if wait is not None and time.monotonic() - seen > wait:
                raise ClusterError(f"the cluster has had no workers for {wait:g} s.")
            if over is None:
                continue
            future, batch = over
            try:
                receipt = future.result()
            except LostWorker as lost:
                tries[batch[0]] += 1
                if tries[batch[0]] >= TRIES:
                    numbers = f"tasks {batch[0]} to {max(batch)}" if len(batch) > 1 else f"task {batch[0]}"
                    said = f"workers died {TRIES} times over {numbers} ({lost})"
                    raise ClusterError(f"{said}. They may have too little memory.") from None
                say("A worker died; what it had in hand is handed out again.")
                dropped.append(batch)
                continue
            batches.learn(batch, receipt.seconds)
            told.advance(receipt.rounds)
    except BaseException:
        calls.stop(None if wait is None else ENDING)
        raise


def _check_all_there(study: Work, place: Folder) -> None:
    """Make sure that workers wrote where we look: theirs may be another disk under the same name."""
    away = len(study.tasks) - len(place.present())
    if away:
        raise ClusterError(
            f"the workers wrote {away:,} parts to a {place.path} of their own. Take a folder that all of them see."
        )


def run(
    study: Work, folder: str | os.PathLike[str], *, executor: Submits | str | None = None, address: str | None = None,
    wait: float = WAIT, threads: int | None = None, progress: Progress | None = None, say: Say = lambda sentence: None,
) -> Path | str:  # fmt: skip
    """Do what is not yet done of a study, and return its folder; see `Study.run`."""
    hands = chosen(executor, address=address, wait=wait, threads=threads)
    place, told = Folder(folder, study), progress if progress is not None else Silent()
    check_reach(hands, place)
    with ExitStack() as stack:
        before = place.look()  # whatever is refused changes nothing
        if len(before) < len(study.tasks) and not isinstance(hands, Cluster):
            study.check()
        if isinstance(executor, str) and isinstance(hands, Cluster) and len(before) < len(study.tasks):
            stack.enter_context(hands)
        done, tasks = stack.enter_context(place.held()), study.tasks
        if place.broken:
            many = len(place.broken)
            said = "1 part was cut or altered, and is" if many == 1 else f"{many:,} parts were cut or altered, and are"
            say(f"{place.path}: {said} made again.")
        # the longest first, so that no worker is left alone with a long one at the end
        missing = sorted(set(range(len(tasks))) - done, key=lambda number: (-tasks[number].rounds, number))
        told.begin(study.rounds, study.rounds - sum(tasks[number].rounds for number in missing))
        stack.callback(told.end)
        if missing:
            try:
                hand_out(
                    min(hands, len(missing)) if isinstance(hands, int) else hands, study, missing, place, told, say
                )
            except (KeyboardInterrupt, ClusterError) as stopped:
                kept = f"{len(place.present()):,} of {len(tasks):,} parts are kept in {place.path}"
                if isinstance(stopped, ClusterError):
                    raise ClusterError(f"{stopped} {kept}: the same command goes on from there.") from stopped
                stopped.add_note(f"{kept}: the same call goes on from there.")
                raise
        place.clear()
    return place.path
