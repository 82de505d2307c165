"""The seam through which a rule's formulas reach the compiled loops.

A loop calls `index_value(parameters, mean, pulls, round)` or one of the functions like it below. What they mean depends
on the *type* of `parameters`:

- widths `C(n)`: a table over pull counts, a `PowerWidth` (the paper's, computed at every pull, where a table would be
  too long) or `SparseWidths`. The index is `mean + C(pulls)`; an additive rule needs no more, and no kernel is compiled
  for it;
- a record made by `formula_parameters`: the formulas are the rule's own functions. The record's type carries a digest
  of the files that define them, so a kernel kept on disk is never reused for an edited formula.
"""

import inspect
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from unbandit.kernels.compile import CALLED, Integers, Numbers, called, digest_of, inlined

Formula = Callable[..., Any]

HALVINGS = DOUBLINGS = 60  # of the interval in a bisection


class PowerWidth(NamedTuple):
    """The widths `factor sqrt(growth / n)`, without a table of them."""

    factor: float
    growth: float


class SparseWidths(NamedTuple):
    """The widths of some counts alone, which are in increasing order."""

    counts: Integers
    widths: Numbers


_known: dict[str, dict[str, Formula]] = {}
"""By the marker in a record's type: the rule's own formulas, by the name of the seam that they fill."""


def index_value(parameters: Any, mean: float, pulls: Any, round: Any) -> float:
    """Return an arm's index after `pulls` pulls with sample mean `mean`, before round `round` (from 1)."""
    return float(meaning(parameters)["index_value"](parameters, mean, pulls, round))


def mean_value(parameters: Any, index: float, pulls: Any, round: Any) -> float:
    """Return the sample mean at which an arm's index has a value: the inverse of `index_value`."""
    return float(meaning(parameters)["mean_value"](parameters, index, pulls, round))


def width_value(parameters: Any, pulls: Any) -> float:
    """Return `C(pulls)` of a rule that is given by its widths."""
    return float(meaning(parameters)["width_value"](parameters, pulls))


def probability(parameters: Any, pulls: Integers, memory: Numbers, round: Any, arm: Any) -> float:
    """Return the probability that a randomised rule pulls `arm` in round `round` (from 1).

    `memory` has one row per arm: first the sum of its rewards, then whatever else the rule keeps.
    """
    return float(meaning(parameters)["probability"](parameters, pulls, memory, round, arm))


def choose(parameters: Any, pulls: Integers, memory: Numbers, round: Any, draws: Numbers) -> int:
    """Return the arm that a randomised rule pulls in a round, from one uniform number per arm."""
    return int(meaning(parameters)["choose"](parameters, pulls, memory, round, draws))


def learn(parameters: Any, pulls: Integers, memory: Numbers, round: Any, arm: Any, reward: float) -> None:
    """Let a rule learn from a reward, before the arm's pull count and reward sum are raised."""
    meaning(parameters)["learn"](parameters, pulls, memory, round, arm, reward)


def log_expansion(
    parameters: Any, pulls: Integers, scores: Numbers, round: Any, arm: Any, slope: Numbers, bend: Numbers
) -> float:
    """Return the log of `probability` as a function of the arms' scores; fill in its gradient and negative Hessian."""
    return float(meaning(parameters)["log_expansion"](parameters, pulls, scores, round, arm, slope, bend))


_SEAMS: dict[str, Formula] = {
    seam.__name__: seam for seam in (index_value, mean_value, probability, choose, learn, log_expansion)
}


@inlined
def table_width(parameters: Any, pulls: Any) -> Any:
    """Look a width up in a table."""
    return parameters[pulls]


@inlined
def power_width(parameters: Any, pulls: Any) -> Any:
    """Compute a width."""
    return parameters.factor * math.sqrt(parameters.growth / np.float64(np.int64(pulls)))


@inlined
def _sparse_width(parameters: Any, pulls: Any) -> Any:
    return parameters.widths[np.searchsorted(parameters.counts, np.int64(pulls))]


def _additive_index(parameters: Any, mean: float, pulls: Any, round: Any) -> Any:
    return mean + width_value(parameters, pulls)


def _additive_mean(parameters: Any, index: float, pulls: Any, round: Any) -> Any:
    return index - width_value(parameters, pulls)


_WIDTHS: dict[type, Formula] = {np.ndarray: table_width, PowerWidth: power_width, SparseWidths: _sparse_width}


def _width_of(parameters: Any) -> Formula | None:
    """Return how widths of a compiled type are looked up; None for a rule with its own formulas."""
    kind = np.ndarray if isinstance(parameters, types.Array) else getattr(parameters, "instance_class", None)
    return _WIDTHS.get(kind)


def is_additive(parameters: Any) -> bool:
    """Return whether the index of parameters of a compiled type is the sample mean plus a width."""
    return _width_of(parameters) is not None


@overload(width_value, strict=False, jit_options=CALLED)
def _width_by_type(parameters: Any, pulls: Any) -> Any:
    return _width_of(parameters)


@overload(index_value, strict=False, jit_options=CALLED)
def _index_by_type(parameters: Any, mean: Any, pulls: Any, round: Any) -> Any:
    return None if _width_of(parameters) is None else _additive_index


@overload(mean_value, strict=False, jit_options=CALLED)
def _mean_by_type(parameters: Any, index: Any, pulls: Any, round: Any) -> Any:
    return None if _width_of(parameters) is None else _additive_mean


def meaning(parameters: Any) -> Mapping[str, Formula]:
    """Return the formulas behind the functions above for a rule's parameters, by name: for plain Python, and a GPU."""
    width = _WIDTHS.get(type(parameters))
    if width is not None:
        return {"width_value": width, "index_value": _additive_index, "mean_value": _additive_mean}
    return _known[parameters.dtype.names[-1]]


def formula_parameters(formulas: Mapping[str, Formula], values: Mapping[str, float]) -> np.record:
    """Return a rule's numbers, by name, as the record by which compiled loops find its formulas.

    These go by the name of the seam (`index_value`, `probability` ...): functions of the same arguments, compilable by
    numba, that read `parameters.name`.
    """
    marker = next((marker for marker, known in _known.items() if known == formulas), None) or _register(dict(formulas))
    names = sorted(values)  # in one order, whichever are given: loops are compiled again for every order
    kind = np.dtype([(name, np.float64) for name in names] + [(marker, np.int8)], align=True)
    return np.rec.array([(*(values[name] for name in names), 0)], dtype=kind)[0]


def _register(formulas: dict[str, Formula]) -> str:
    """Register the formulas with the compiler, under a marker in the type of their records."""
    digests = [_digest(formula) for formula in formulas.values()]
    name = next(iter(formulas.values())).__qualname__
    marker = f"formula_{name}_{digest_of(text=repr(digests))}".replace(".", "_").replace("<", "").replace(">", "")
    _known[marker] = formulas
    for seam, formula in formulas.items():
        overload(_SEAMS[seam], strict=False, jit_options=CALLED)(_chooser(marker, formula))
    return marker


def _chooser(marker: str, formula: Formula) -> Formula:
    """Return the function that resolves a seam to this formula, if the first argument's type has the marker."""

    def chosen(*arguments: Any) -> Any:
        return formula if isinstance(arguments[0], types.Record) and marker in arguments[0].fields else None

    return chosen


def _digest(formula: Formula) -> str:
    """Return a digest of the source of a formula, of all it calls, and of what it closes over."""
    file, code = Path(inspect.getfile(formula)), formula.__code__
    closure = [cell.cell_contents for cell in formula.__closure__ or ()]
    named = {name: formula.__globals__.get(name) for name in code.co_names}
    own = closure if file.exists() else (closure, code.co_code, code.co_consts, named)  # in a notebook there is no file
    return digest_of(*sorted(_files_behind(formula, set())), text=formula.__qualname__ + repr(own))


def _files_behind(function: Any, seen: set[Path]) -> set[Path]:
    """Return the source files of a function or module and of all that it calls by name, except those of libraries."""
    function = getattr(function, "py_func", function)  # what numba has wrapped
    calls = inspect.isfunction(function)
    if not (calls or inspect.ismodule(function)):
        return seen
    package = (getattr(function, "__module__", None) or function.__name__).partition(".")[0]
    path = function.__code__.co_filename if calls else getattr(function, "__file__", None)
    library = package in {*sys.stdlib_module_names, "numba", "numpy"}  # which changes with its version only
    if library or path is None or Path(path) in seen or not Path(path).exists():
        return seen
    seen.add(Path(path))
    for name in function.__code__.co_names if calls else ():
        _files_behind(function.__globals__.get(name), seen)
    return seen


@called
def mean_by_bisection(parameters: Any, index: float, pulls: Any, round: Any) -> float:
    """Return the mean at which `index_value` reaches `index`, by bisection; the index must not fall as the mean rises.

    The interval is found by doubling, so means may have any scale. Infinite where no mean has that index.
    """
    step = 1.0 + abs(index)
    low, high = index - step, index + step
    for _ in range(DOUBLINGS):
        if not index_value(parameters, low, pulls, round) > index:
            break
        step *= 2.0
        low -= step
    for _ in range(DOUBLINGS):
        if not index_value(parameters, high, pulls, round) < index:
            break
        step *= 2.0
        high += step
    if index_value(parameters, high, pulls, round) < index:
        return math.inf
    if index_value(parameters, low, pulls, round) > index:
        return -math.inf
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if index_value(parameters, middle, pulls, round) < index:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
