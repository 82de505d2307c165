"""Tables that the kernels look up, made once for a horizon."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import ParameterError
from unbandit.instance import Gaussian, Instance
from unbandit.kernels.bandit import Bandit
from unbandit.kernels.scalar import QUANTILE_TABLE
from unbandit.tape import Tape

__all__ = ["has_power_width", "laid_out", "power_parameters", "width_parameters"]

Table = NDArray[np.float64]

BLOCK = 1 << 20  # entries made at a time, so that a long table needs no second one for its working
LONG = 1 << 20  # from this horizon on, what can be computed anew is not kept in tables


def kept(make: Callable[..., Table]) -> Callable[..., Table]:
    """Keep the last few tables that `make(..., horizon)` gave, for a study asks for the same ones again and again.

    Only those of up to `LONG` rounds: a longer one is quick to make beside its simulation, and large to keep.
    """
    keep = lru_cache(maxsize=4)(make)

    @wraps(make)
    def made(*arguments: Any) -> Table:
        return (keep if arguments[-1] <= LONG else make)(*arguments)

    return made


def _filled(values: Callable[[Table], Table], at_zero: float, horizon: int) -> Table:
    """Return `values(n)` for n = 0 ... horizon + 1, with `at_zero` in its place; read-only, for it is shared."""
    table = np.empty(horizon + 2)
    table[0] = at_zero
    for start in range(1, horizon + 2, BLOCK):
        stop = min(start + BLOCK, horizon + 2)
        table[start:stop] = values(np.arange(start, stop, dtype=np.float64))
    table.setflags(write=False)
    return table


@kept
def inverse_table(horizon: int) -> Table:
    """Return 1/n."""
    return _filled(lambda n: 1.0 / n, 1.0, horizon)


class HasWidth(Protocol):
    """Stand for any rule with a width."""

    name: ClassVar[str]

    def width(self, pulls: Table, horizon: int) -> Table:
        """Return `C(n)`."""


@kept
def width_table(rule: HasWidth, horizon: int) -> Table:
    """Return a rule's `C(n)`, infinite at 0."""
    table = _filled(lambda n: rule.width(n, horizon), np.inf, horizon)
    if not np.isfinite(table[1:]).all():
        raise ParameterError(f"{rule.name}: expected finite widths over {horizon} rounds. Check {rule}.")
    return table


def width_parameters(rule: HasWidth, horizon: int) -> Any:
    """Return a rule's widths as the kernels take them: a table or, for a long horizon, what computes them."""
    if horizon > LONG and hasattr(rule, "power_width"):
        return power_parameters(rule, horizon)
    _check_first(rule, horizon)
    return width_table(rule, horizon)


def has_power_width(rule: Any, horizon: int) -> bool:
    """Tell whether a rule's widths are in `1/sqrt(n)`: it says so, and no class below it gives others."""
    if not hasattr(rule, "power_width"):
        return False
    few, said = np.array([1.0, 2.0, 1000.0, horizon]), rule.power_width(horizon)
    with np.errstate(over="ignore"):
        return np.array_equal(rule.width(few, horizon), said.factor * np.sqrt(said.growth / few))


def power_parameters(rule: Any, horizon: int) -> Any:
    """Return what computes a rule's widths in `1/sqrt(n)`, at any horizon."""
    _check_first(rule, horizon)
    return rule.power_width(horizon)


def _check_first(rule: HasWidth, horizon: int) -> None:
    if not np.isfinite(rule.width(np.ones(1), horizon)).all():
        raise ParameterError(f"{rule.name}: expected a finite width after one pull. Check {rule}.")


def laid_out(instance: Instance, horizon: int, seed: int, orders: NDArray[np.int64] | None = None) -> Bandit:
    """Lay out an instance for the kernels; `orders` (runs x arms) has each run's order of the arms, if it has one."""
    gaussian, ranked = isinstance(instance.noise, Gaussian), np.sort(instance.means)
    sample = ranked[np.linspace(0, len(instance) - 1, min(len(instance), 64)).round().astype(int)]
    sigma = instance.sigma if gaussian else 1.0
    means = np.array(instance.means)
    inverse = inverse_table(min(horizon, LONG))
    key, kept_orders = Tape(seed).key, np.empty((0, means.size), np.int64) if orders is None else orders
    return Bandit(means, sample, sigma, not gaussian, inverse, key, QUANTILE_TABLE, horizon, means.copy(), kept_orders)
