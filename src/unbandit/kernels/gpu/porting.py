"""Carry a function of ours over to the GPU, with every function of ours that it calls.

On the CPU, functions find each other through numba's overloads. Here a copy is made whose names mean the copies: what
`index_value` stands for is then simply the rule's formula. The source is one and the same; nothing is written twice.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from numba import config, cuda

from unbandit.kernels import formula, scalar
from unbandit.kernels.formula import Formula, meaning

__all__ = ["SIMULATED", "Formulas", "formulas_of", "kernel", "meanings_of", "ported"]

Formulas = tuple[tuple[str, Formula], ...]
"""A rule's formulas by the names of their seams (`kernels.formula.meaning`), in a form that can be looked up."""

config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # a few runs keep no GPU busy, and nobody need be told

SIMULATED = bool(config.ENABLE_CUDASIM)
"""Whether numba only plays a GPU, in plain Python (`NUMBA_ENABLE_CUDASIM=1`)."""

LIBRARIES = ("numba", "numpy", "math", "builtins")


def ported(function: Any, meanings: Mapping[Any, Any]) -> Any:
    """Return a function to be called from GPU kernels.

    Parameters
    ----------
    function
        Plain Python, as it stands in this room or in a rule's file.
    meanings
        For functions that mean something else here, what they mean: see `meanings_of`.
    """
    return _copied(function, meanings, {})


def formulas_of(parameters: Any) -> Formulas:
    """Return the formulas behind a rule's parameters."""
    return tuple(sorted(meaning(parameters).items()))


def meanings_of(formulas: Formulas, coefficients: Any) -> dict[Any, Any]:
    """Return what functions mean on the GPU: a rule's formulas, and another table of the normal quantile."""
    return {getattr(formula, seam): own for seam, own in formulas} | {scalar.coefficients: coefficients}


def _copied(function: Any, meanings: Mapping[Any, Any], made: dict[Any, Any]) -> Any:
    """Copy a function once for all that call it."""
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
    """Tell a function that has to be carried over from those that the GPU's compiler knows."""
    return inspect.isfunction(meant) and (meant.__module__ or "").partition(".")[0] not in LIBRARIES


def kernel(function: Any) -> Any:
    """Compile a loop for the GPU."""
    return cuda.jit(function)
