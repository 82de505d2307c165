"""A study's work cut into tasks: blocks of runs whose size depends on the grid alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import overload

__all__ = ["GPU_ROUNDS", "ROUNDS", "ROWS", "Task", "Tasks", "block"]

ROUNDS = 20_000_000
"""About how many rounds a task simulates."""

GPU_ROUNDS = 20_000_000_000
"""The same on a GPU, which is not busy with less."""

ROWS = 300_000
"""About how many rows a task yields at most."""


@dataclass(frozen=True)
class Task:
    """Name a block of a cell's runs.

    Parameters
    ----------
    number
        The task's place in the study, from 0.
    cell
        The cell's place in `study.cells`.
    first_run, last_run
        The runs from `first_run` up to, and without, `last_run`.
    rounds
        How many rounds those runs have together.
    """

    number: int
    cell: int
    first_run: int
    last_run: int
    rounds: int


def block(horizon: int, rows: int, rounds: int = ROUNDS) -> int:
    """Return how many runs of a cell make a task: of so many rounds, and so many rows, each.

    Examples
    --------
    >>> block(horizon=5_000, rows=2), block(horizon=70_000, rows=224), block(horizon=10**9, rows=12_979)
    (4000, 285, 1)
    """
    most = ROWS // rows if rows > 0 else rounds
    return max(1, min(rounds // horizon, most))


class Tasks(Sequence[Task]):
    """List a study's tasks, cell by cell, without holding them: there can be millions.

    Parameters
    ----------
    cells
        Horizon and runs a task of each cell.
    runs
        Of each cell: one number, or one for each.

    Examples
    --------
    >>> tasks = Tasks([(100, 4), (200, 10)], runs=10)
    >>> [(task.cell, task.first_run, task.last_run) for task in tasks]
    [(0, 0, 4), (0, 4, 8), (0, 8, 10), (1, 0, 10)]
    """

    def __init__(self, cells: Iterable[tuple[int, int]], runs: int | Sequence[int]) -> None:
        self._cells = list(cells)
        self._runs = [runs] * len(self._cells) if isinstance(runs, int) else list(runs)
        counts = (-(-of_cell // size) for of_cell, (_, size) in zip(self._runs, self._cells, strict=True))
        self._firsts = list(accumulate(counts, initial=0))

    def __len__(self) -> int:
        return self._firsts[-1]

    @overload
    def __getitem__(self, number: int) -> Task: ...
    @overload
    def __getitem__(self, number: slice) -> list[Task]: ...
    def __getitem__(self, number: int | slice) -> Task | list[Task]:
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        at = range(len(self))[number]
        cell = bisect_right(self._firsts, at) - 1
        horizon, size = self._cells[cell]
        first = (at - self._firsts[cell]) * size
        last = min(first + size, self._runs[cell])
        return Task(at, cell, first, last, (last - first) * horizon)
