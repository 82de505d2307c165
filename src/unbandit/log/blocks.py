"""Work through blocks on threads: numpy and the kernels let go of the interpreter."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_threads"]

Result = TypeVar("Result")


def in_threads(work: Callable[[int, int], Result], blocks: Sequence[tuple[int, int]]) -> list[Result]:
    """Return `work(start, stop)` for each block, in their order; on as many threads as there are cores.

    Examples
    --------
    >>> in_threads(lambda start, stop: stop - start, [(0, 3), (3, 5)])
    [3, 2]
    """
    workers = min(len(blocks), os.cpu_count() or 1)
    if workers <= 1:
        return [work(start, stop) for start, stop in blocks]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda block: work(*block), blocks))
