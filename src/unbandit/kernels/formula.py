"""The seam through which a rule's formula reaches the compiled loops.

A loop calls `index_value(parameters, mean, pulls, round)`. What that means is decided by the *type* of `parameters`:

- a table of widths, one for each pull count: the index is `mean + widths[pulls]`. An additive rule needs no more, and
  compiles nothing of its own;
- a `PowerWidth`: the same for the paper's width, computed anew at every pull, where a table would be too long;
- a record made by `formula_parameters`: the formula is the rule's own function. The record's type carries a digest of
  the file that the function stands in, so a kernel kept on disk is never reused for an edited formula.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from unbandit.kernels.compiling import digest_of, inlined

__all__ = ["Formula", "PowerWidth", "formula_parameters", "index_value"]

Formula = Callable[[Any, float, Any, Any], float]


class PowerWidth(NamedTuple):
    """Stand for the widths `factor sqrt(growth / n)` without a table of them."""

    factor: float
    growth: float


_known: dict[Formula, str] = {}


def index_value(parameters: Any, mean: float, pulls: Any, round: Any) -> float:
    """Return an arm's index after `pulls` pulls with sample mean `mean`, before round `round` (from 1)."""
    if isinstance(parameters, np.ndarray):
        return float(mean + parameters[pulls])
    if isinstance(parameters, PowerWidth):
        return mean + _power_width(parameters, pulls)
    field = parameters.dtype.names[-1]
    return next(formula for formula, marker in _known.items() if marker == field)(parameters, mean, pulls, round)


@overload(index_value, strict=False)
def _additive(parameters: Any, mean: Any, pulls: Any, round: Any) -> Any:
    if not isinstance(parameters, types.Array):
        return None

    def table(parameters: Any, mean: float, pulls: Any, round: Any) -> Any:
        return mean + parameters[pulls]

    return table


@inlined
def _power_width(parameters: PowerWidth, pulls: Any) -> float:
    return parameters.factor * math.sqrt(parameters.growth / np.float64(np.int64(pulls)))


@overload(index_value, strict=False)
def _without_a_table(parameters: Any, mean: Any, pulls: Any, round: Any) -> Any:
    if not (isinstance(parameters, types.BaseNamedTuple) and parameters.instance_class is PowerWidth):
        return None

    def computed(parameters: Any, mean: float, pulls: Any, round: Any) -> Any:
        return mean + _power_width(parameters, pulls)

    return computed


def formula_parameters(formula: Formula, values: Mapping[str, float]) -> np.record:
    """Return a rule's numbers as the record by which compiled loops find its formula.

    Parameters
    ----------
    formula
        `formula(parameters, mean, pulls, round)`, compilable by numba; it reads `parameters.name`.
    values
        The numbers it reads, by name.
    """
    if formula not in _known:
        _register(formula)
    marker = _known[formula]
    kind = np.dtype([(name, np.float64) for name in values] + [(marker, np.int8)], align=True)
    return np.rec.array([(*values.values(), 0)], dtype=kind)[0]


def _register(formula: Formula) -> None:
    """Teach the compiler that a record with this formula's marker means this formula."""
    file, code = Path(inspect.getfile(formula)), formula.__code__
    closure = [cell.cell_contents for cell in formula.__closure__ or ()]
    named = {name: formula.__globals__.get(name) for name in code.co_names}
    own = closure if file.exists() else (closure, code.co_code, code.co_consts, named)  # a notebook has no file
    digest = digest_of(*sorted(_files_behind(formula, set())), text=repr(own))
    marker = f"formula_{formula.__qualname__}_{digest}".replace(".", "_").replace("<", "").replace(">", "")
    _known[formula] = marker

    @overload(index_value, strict=False)
    def _chosen(parameters: Any, mean: Any, pulls: Any, round: Any) -> Any:
        return formula if isinstance(parameters, types.Record) and marker in parameters.fields else None


def _files_behind(function: Any, seen: set[Path]) -> set[Path]:
    """Return the source files of a function and of all that it calls by name, as far as they are Python of ours."""
    function = getattr(function, "py_func", function)  # what numba has wrapped
    if inspect.ismodule(function):
        named: list[Any] = []
    elif inspect.isfunction(function):
        named = [function.__globals__.get(name) for name in function.__code__.co_names]
    else:
        return seen
    file = Path(getattr(function, "__file__", None) or function.__code__.co_filename)
    if file in seen or not file.exists() or _installed(function.__name__, function):
        return seen
    seen.add(file)
    for other in named:
        _files_behind(other, seen)
    return seen


def _installed(name: str, function: Any) -> bool:
    """Tell what need not be read: numba, NumPy and the standard library change only with their version."""
    package = (getattr(function, "__module__", None) or name).partition(".")[0]
    return package in sys.stdlib_module_names or package in {"numba", "numpy"}
