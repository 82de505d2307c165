"""Hand tasks to an executor, take in what is done, hand out again what a dying worker dropped, stop well."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue

from unbandit.clusters import LostWorker
from unbandit.errors import ClusterError
from unbandit.study.batches import Batches
from unbandit.study.executors import Cluster, Submits
from unbandit.study.folder import Folder
from unbandit.study.packing import Receipt, packed, perform_all
from unbandit.study.progress import Progress
from unbandit.study.work import Work

__all__ = ["FOREIGN", "Say", "hand_out", "perform"]

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
