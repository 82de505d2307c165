"""Functions of the CPU's kernels carried over to the GPU, and the normal quantile's table there.

On the CPU, functions find each other through numba's overloads. Here a function is copied with every function of ours
that it calls, and in the copy `index_value` simply is the rule's formula. Nothing is written twice.

The part of the quantile's table that nearly every draw reads lies in each block's shared memory, with the coefficients
of one power side by side, so that the threads of a warp, which read different rows, seldom want the same memory bank.
Rows of one sign stand for both. The rest, a few draws in a thousand, is read from global memory.
"""

import inspect
from collections.abc import Mapping
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np
from numba import config, cuda
from numpy.typing import NDArray

from unbandit.kernels import formula, rng
from unbandit.kernels.formula import Formula, meaning
from unbandit.kernels.rng import QUANTILE_TABLE

Formulas = tuple[tuple[str, Formula], ...]
"""A rule's formulas by the names of their seams (`kernels.formula.meaning`), hashable."""

config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # a few runs cannot keep a GPU busy: no warning

SIMULATED = bool(config.ENABLE_CUDASIM)  # whether numba simulates a GPU, in plain Python (`NUMBA_ENABLE_CUDASIM=1`)

LIBRARIES = ("numba", "numpy", "math", "builtins")


def ported(function: Any, meanings: Mapping[Any, Any]) -> Any:
    """Return a copy of a function, of the CPU's kernels or of a rule's file, that GPU kernels can call.

    `meanings` replaces functions that mean something else on the GPU: see `meanings_of`.
    """
    return _copied(function, meanings, {})


def formulas_of(parameters: Any) -> Formulas:
    """Return the formulas behind a rule's parameters."""
    return tuple(sorted(meaning(parameters).items()))


def meanings_of(formulas: Formulas, coefficients: Any) -> dict[Any, Any]:
    """Return what functions mean on the GPU: a rule's formulas, and another layout of the quantile's table."""
    return {getattr(formula, seam): own for seam, own in formulas} | {rng.coefficients: coefficients}


def _copied(function: Any, meanings: Mapping[Any, Any], made: dict[Any, Any]) -> Any:
    """Copy a function once for all its callers."""
    if function in made:
        return made[function]
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        if _is_ours(names.get(name)):
            names[name] = _copied(meanings.get(names[name], names[name]), meanings, made)
    copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    made[function] = copy if SIMULATED else cuda.jit(device=True)(copy)
    return made[function]


def _is_ours(meant: Any) -> bool:
    """Return whether a function must be carried over; the GPU's compiler knows those of libraries."""
    return inspect.isfunction(meant) and (meant.__module__ or "").partition(".")[0] not in LIBRARIES


def kernel(function: Any) -> Any:
    """Compile a loop for the GPU."""
    return cuda.jit(function)


POWERS = 8
ALL_NEAR = 768  # rows of three levels: with eight numbers each they fill the 48 KB that every GPU gives a block
MOST_NEAR = 512  # rows of two levels, for kernels that need shared memory for other things too

_ONE, _EIGHT, _NINE, _SEGMENT = np.uint64(1), np.uint64(8), np.uint64(9), np.uint64(255)


def one_sided() -> NDArray[np.float64]:
    """Return the table for positive numbers alone, transposed: (powers, levels times segments)."""
    rows = QUANTILE_TABLE.reshape(-1, 2, 256, POWERS)[:, 0].reshape(-1, POWERS)
    return np.ascontiguousarray(rows.T)


def bring_near(near: Any, far: Any, thread: int, threads: int) -> None:
    """Copy the rows that are read most, each thread of a block a part of them; then the block must synchronise."""
    for at in range(thread, near.size, threads):
        power, row = at // near.shape[1], at % near.shape[1]
        near[power, row] = far[power, row]


@lru_cache(maxsize=2)
def near_coefficients(rows: int) -> Any:
    """Return what replaces `rng.coefficients`: the first `rows` are in shared memory, all in global memory."""
    limit = np.uint64(rows)

    def coefficients(table: Any, row: Any) -> Any:
        near, far = table
        at = ((row >> _NINE) << _EIGHT) | (row & _SEGMENT)
        if at < limit:
            c0, c1, c2, c3 = near[0, at], near[1, at], near[2, at], near[3, at]
            c4, c5, c6, c7 = near[4, at], near[5, at], near[6, at], near[7, at]
        else:
            c0, c1, c2, c3 = far[0, at], far[1, at], far[2, at], far[3, at]
            c4, c5, c6, c7 = far[4, at], far[5, at], far[6, at], far[7, at]
        if (row >> _EIGHT) & _ONE:
            return -c0, -c1, -c2, -c3, -c4, -c5, -c6, -c7
        return c0, c1, c2, c3, c4, c5, c6, c7

    return coefficients
