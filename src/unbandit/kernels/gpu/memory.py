"""How many runs at a time: as many as the GPU's memory takes, and fewer where it turns out to take less."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda

__all__ = ["fitting", "in_batches", "scratch"]

SHARE = 0.5
"""Of the free memory, what is asked for: others may be using the GPU too."""

MOST = 1 << 22
"""Runs at a time, at most: more do not make a GPU any busier."""

_kept = threading.local()


def scratch(shape: tuple[int, int], kind: Any) -> Any:
    """Return room for actions, which is taken again and again: each thread of the host keeps the last that it had."""
    size = shape[0] * shape[1] * np.dtype(kind).itemsize
    room = getattr(_kept, "room", None)
    if room is None or room.size < size:
        _kept.room = room = None  # let go of the old one first
        _kept.room = room = cuda.device_array(size, np.uint8)
    return room[:size].view(kind).reshape(shape)


def _free() -> int:
    """Return how much memory can be had, with what is kept."""
    free, _ = cuda.current_context().get_memory_info()
    room = getattr(_kept, "room", None)
    return int(min(free, 2**62)) + (0 if room is None else int(room.size))


def fitting(bytes_a_run: int, *, whole: int = 1) -> int:
    """Return how many runs the free memory takes, in multiples of `whole`, and at least that many."""
    runs = min(int(_free() * SHARE) // max(bytes_a_run, 1), MOST)
    return max(runs // whole, 1) * whole


def in_batches(work: Callable[[int, int], None], runs: int, bytes_a_run: int, *, whole: int = 1) -> None:
    """Call `work(first, last)` over all runs, as many at a time as fit; after a refusal of memory, half as many."""
    size, first = fitting(bytes_a_run, whole=whole), 0
    while first < runs:
        last = min(first + size, runs)
        try:
            work(first, last)
        except Exception as error:  # drivers refuse memory in ways of their own; whatever else it is goes on
            if not _out_of_memory(error):
                raise
            if size <= whole:
                said = f"the GPU's memory does not take {whole:,} runs of {bytes_a_run:,} bytes each"
                raise MemoryError(said) from error
            _kept.room = None
            gc.collect()  # what the failed try had taken
            size = max(size // 2 // whole, 1) * whole
            continue
        first = last


def _out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "OUT_OF_MEMORY" in str(error).upper().replace(" ", "_")
