"""Keep everything, ours and others', to one core; to be called before numpy, numba or polars are imported."""

import os

THREAD_SETTINGS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
)


def keep_to_one_core() -> None:
    os.environ.update(dict.fromkeys(THREAD_SETTINGS, "1"))
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def use_all_cores() -> None:
    """Let a process that was started from one on a single core run on any of them."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
