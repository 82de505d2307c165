"""Tasks put together into batches, so that handing one to a cluster costs little beside the work in it.

How long a task takes differs a thousandfold between rules, so a batch is sized by what the last ones took: about a
second, and longer on a large cluster, whose head has to hand out a batch to every worker in that time. Towards the end
batches grow smaller, so that all workers end together. What is in a part does not depend on any of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from unbandit.study.tasks import Task

__all__ = ["Batches"]

SECONDS = 1.0
"""About how long a batch takes on a small cluster."""

SECONDS_A_WORKER = 0.01
"""How much longer for each worker: a head hands out a hundred batches a second with ease."""

BEGIN = 20_000_000
"""The rounds of a batch before anything is known: a moment's work, or one task."""

OVERHEAD = 100_000
"""What a task costs beside its rounds, in rounds."""

MOST = 1_000
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

    def __init__(self, tasks: Sequence[Task], numbers: Iterable[int], most: int = MOST) -> None:
        self._tasks, self._left, self._most = tasks, deque(numbers), most
        self._cost_left = sum(self._cost(number) for number in self._left)
        self._pace: float | None = None

    def __bool__(self) -> bool:
        return bool(self._left)

    def _cost(self, number: int) -> int:
        return self._tasks[number].rounds + OVERHEAD

    def next(self, workers: int) -> list[int]:
        """Take the next batch, for a cluster of so many workers."""
        seconds = SECONDS + SECONDS_A_WORKER * workers
        most = BEGIN if self._pace is None else seconds / self._pace
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
