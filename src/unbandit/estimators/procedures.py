"""Procedures 1 and 2 on tallies: what demonstrations say about every arm's gap, before any noise level is put in.

The formulas are in `kernels.procedures`; here a rule, its horizons and its counts are laid out for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit import theory
from unbandit.demonstrators import AdditiveIndexRule, Demonstrator, EliminationRule, IndexRule
from unbandit.demonstrators.base import RegretWidth, has_power_width
from unbandit.errors import NotIdentifiable, option
from unbandit.instance import Gaussian, Noise
from unbandit.kernels import procedures as kernels
from unbandit.kernels.formula import SparseWidths
from unbandit.kernels.procedures import BEST_ARM, COLUMNS, NO_ARM, Assumptions, PowerWidths
from unbandit.log.tallies import Need, Tallies

Method = Literal["switching", "counts", "naive", "posterior", "bootstrap"]

Horizon = int | NDArray[np.int64]
"""`T`: one for all demonstrations, or one for each of them."""

SMALLER_ERROR = 50
"""How many times smaller the error of a bound is made where luck may have caused it."""

BACK, BLOCK = 64, 1 << 16
"""Epochs that are looked at backwards from one, and together."""

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class Anchor:
    """One arm's known mean; arm None stands for the best arm, whichever it is."""

    arm: int | None
    value: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """What demonstrations say about every arm's gap: (demonstrations, arms), or one place per arm.

    Attributes
    ----------
    best
        Which arms may be best: one, or several where the record leaves it open.
    verdict
        One of `result.VERDICTS`, as its number.
    numbers
        The numbers of `kernels.procedures.Compared`, one table each.
    at_the_end
        Of an index rule that was read at its switching rounds: the gaps that its last round shows.
    """

    best: Marks
    verdict: NDArray[np.int8]
    numbers: Numbers
    at_the_end: Numbers

    @classmethod
    def empty(cls, shape: tuple[int, int], *, at_the_end: bool = False) -> Comparison:
        """Return room for the loops to fill in."""
        end = shape if at_the_end else (0, 0)
        return cls(np.empty(shape, np.bool_), np.empty(shape, np.int8), np.empty((len(COLUMNS), *shape)), np.empty(end))

    @property
    def gap(self) -> Numbers:
        """Return the points, NaN where there is none."""
        return np.asarray(self.numbers[0])

    @property
    def below(self) -> Numbers:
        """Return what the lower ends start from."""
        return np.asarray(self.numbers[1])

    @property
    def own(self) -> Numbers:
        """Return how many rewards stand behind each arm's sample mean."""
        return np.asarray(self.numbers[3])

    @property
    def other(self) -> Numbers:
        """Return how many rewards stand behind the sample mean that it was compared with."""
        return np.asarray(self.numbers[4])

    @property
    def slope(self) -> Numbers:
        """Return how far each arm's estimated mean moves with the best arm's."""
        return np.asarray(self.numbers[7])

    def row(self, which: int) -> Comparison:
        """Return one of several demonstrations, one place per arm."""
        end = self.at_the_end[which] if self.at_the_end.size else self.at_the_end
        return Comparison(self.best[which], self.verdict[which], self.numbers[:, which], end)

    def put(self, rows: Counts, part: Comparison) -> None:
        """Put some demonstrations in their places."""
        self.best[rows], self.verdict[rows], self.numbers[:, rows] = part.best, part.verdict, part.numbers
        if self.at_the_end.size:
            self.at_the_end[rows] = part.at_the_end

    @classmethod
    def joined(cls, parts: Sequence[Comparison]) -> Comparison:
        """Put demonstrations below one another."""
        columns = [(part.best, part.verdict, part.numbers, part.at_the_end) for part in parts]
        best, verdict, numbers, at_the_end = zip(*columns, strict=True)
        return cls(
            np.concatenate(best), np.concatenate(verdict), np.concatenate(numbers, axis=1), np.concatenate(at_the_end)
        )


def can_compare(rule: Demonstrator, method: Method) -> bool:
    """Return whether a method can read demonstrations of a rule: the naive one needs pull counts alone.

    Examples
    --------
    >>> from unbandit import SAE, Uniform
    >>> can_compare(SAE(), "counts"), can_compare(Uniform(), "naive")
    (True, False)
    """
    return rule.reveals == "values" and (method == "naive" or isinstance(rule, EliminationRule | IndexRule))


def check_comparable(rule: Demonstrator, method: Method) -> None:
    """Refuse a rule that a method cannot read, and say why."""
    if can_compare(rule, method):
        return
    if rule.reveals == "nothing":
        raise NotIdentifiable(
            f"{rule.name}: the rule's choices do not depend on rewards, so they reveal nothing about values."
        )
    if rule.reveals == "best":
        raise NotIdentifiable(
            f"{rule.name}: the rule's choices show which arm it judged best, and no values: every other arm is pulled "
            "the same number of times, whatever its value."
        )
    raise NotIdentifiable(
        f"{rule.name}: the rule draws its arms at random, so no round shows two arms of equal value as method "
        f"{method} needs.",
        remedy=f"Use {option('method', 'posterior')}.",
    )


def needed(rule: Demonstrator, method: Method) -> Need:
    """Return what must be counted for a method to read a rule's demonstrations."""
    if method != "switching":
        return "counts"
    return "epochs" if isinstance(rule, EliminationRule) else "switching"


def compare(
    tallies: Tallies, rule: Demonstrator, method: Method, horizon: Horizon, constant: float = 1.0,
    anchor: Anchor | None = None, *, at_the_end: bool = False,
) -> Comparison:  # fmt: skip
    """Return what demonstrations, of a log or of a simulation, say about every arm's gap.

    Parameters
    ----------
    tallies
        What was counted of them.
    constant
        Of the naive estimator.
    anchor
        The one mean that is known; rules whose index does not rise one for one with the mean need it.
    at_the_end
        Whether the gaps that an index rule's last round shows are filled in too.
    """
    check_comparable(rule, method)
    horizon, rule = _common(horizon), rule.for_arms(tallies.pulls.shape[1])
    kept = at_the_end and method == "switching" and isinstance(rule, IndexRule)
    if method == "naive":
        return compare_naive(tallies.pulls, horizon, constant)
    result = Comparison.empty(tallies.pulls.shape, at_the_end=kept)
    if isinstance(horizon, int) or _is_power(rule, horizon):
        work: Callable[..., None] = _procedure_1 if isinstance(rule, EliminationRule) else _procedure_2
        work(tallies, rule, method, horizon, anchor, result)
        return result
    order = np.argsort(horizon, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(horizon[order])) + 1):
        one = int(horizon[rows[0]])
        result.put(rows, compare(tallies.at(rows), rule, method, one, constant, anchor, at_the_end=at_the_end))
    return result


def compare_naive(pulls: Counts, horizon: Horizon, constant: float) -> Comparison:
    """Return the naive estimate, which needs no rule: `constant sqrt(ln T / n_i)`."""
    result = Comparison.empty(pulls.shape)
    horizons = np.ascontiguousarray(np.broadcast_to(np.asarray(horizon, np.float64), len(pulls)))
    kernels.compare_naive(horizons, float(constant), _fixed(pulls), result.best, result.verdict, result.numbers)
    return result


def assumptions(
    rule: Demonstrator | None = None, anchor: Anchor | None = None, noise: Noise | None = None, z: float = 0.0
) -> Assumptions:
    """Return what is assumed besides the counts, as the kernels take it; `noise` and `z` are for intervals alone."""
    initial, batch, shifts = (
        (rule.initial, rule.batch, bool(rule.shifts)) if isinstance(rule, IndexRule) else (1, 1, True)
    )
    error = NormalDist().cdf(-z)
    return Assumptions(
        initial=initial,
        batch=batch,
        shifts=shifts,
        anchor=NO_ARM if anchor is None else BEST_ARM if anchor.arm is None else anchor.arm,
        known_mean=float("nan") if anchor is None else float(anchor.value),
        sigma=float(noise.sigma) if isinstance(noise, Gaussian) else float("nan"),
        z=float(z),
        wider=NormalDist().inv_cdf(1 - error / SMALLER_ERROR),
        log_error=float(np.log(error)),
    )


def most_pulled(pulls: Counts) -> Marks:
    """Mark the most-pulled arm of each demonstration, the first of them if several are tied.

    Examples
    --------
    >>> most_pulled(np.array([[1, 3, 3], [4, 2, 0]])).astype(int).tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    marks = np.zeros(pulls.shape, np.bool_)
    np.put_along_axis(marks, pulls.argmax(axis=-1)[..., None], True, axis=-1)
    return marks


def _procedure_2(
    tallies: Tallies, rule: IndexRule, method: Method, horizon: Horizon, anchor: Anchor | None, result: Comparison
) -> None:
    """Equate the indices of arm and best arm, at the switching rounds or from final counts alone."""
    if not rule.shifts and anchor is None:
        raise NotIdentifiable(
            f"{rule.name}: this rule's index does not rise one for one with the mean, so its choices give no gap "
            f"without one known mean; give {option('best_mean')}, or the mean of any one arm as {option('anchor')}."
        )
    pulls, counts_only = _fixed(tallies.pulls), method == "counts"
    none = _fixed(np.empty((0, 0), np.int64))
    own, of_best, rounds = (pulls,) * 3 if counts_only else (_fixed(each) for each in tallies.at_switching)
    last = none if counts_only or tallies.last is None else _fixed(tallies.last)
    parameters = _index_parameters(rule, horizon, pulls, own, of_best)
    kernels.compare_index(
        parameters, assumptions(rule, anchor), counts_only, pulls, last, own, of_best, rounds, result.best,
        result.verdict, result.numbers, result.at_the_end,
    )  # fmt: skip


def _procedure_1(
    tallies: Tallies, rule: EliminationRule, method: Method, horizon: Horizon, anchor: Anchor | None, result: Comparison
) -> None:
    """Read off when arms were eliminated.

    By counts alone, an arm was eliminated if it was pulled two times less than the most-pulled one, or fewer.
    """
    pulls, most = tallies.pulls, tallies.pulls.max(axis=-1, keepdims=True)
    gone = (pulls > 0) & (pulls < most - 1) if method == "counts" else tallies.eliminated
    epochs = np.maximum(pulls - 1, 0)
    before = epochs if rule._width_is_plain() else latest_test(rule.tests, epochs)
    parameters = _elimination_parameters(rule, horizon, pulls, before, most)
    kernels.compare_elimination(
        parameters, _fixed(pulls), _fixed(before), np.ascontiguousarray(gone), result.best, result.verdict,
        result.numbers,
    )  # fmt: skip


def _index_parameters(rule: IndexRule, horizon: Horizon, pulls: Counts, own: Counts, of_best: Counts) -> Any:
    """Return the rule as the kernels take it: a table of widths where that is short, else what there are counts of."""
    if not isinstance(rule, AdditiveIndexRule):
        return rule.parameters(int(horizon))
    most = int(pulls.max(initial=0))
    if isinstance(horizon, int) and most < pulls.size:
        return np.concatenate(([np.nan], rule.width(np.arange(1.0, most + 2), horizon)))
    if _is_power(rule, horizon):
        return _power_widths(rule, horizon, len(pulls))
    before = np.maximum(own - rule.batch, rule.initial)
    return _sparse(
        partial(rule.width, horizon=int(horizon)), own, before, of_best, pulls, np.minimum(pulls, rule.initial)
    )


def _elimination_parameters(
    rule: EliminationRule, horizon: Horizon, pulls: Counts, before: Counts, most: Counts
) -> Any:
    """Return the rule's widths of half pulls as the kernels take them; see `_index_parameters`."""
    longest = int(most.max(initial=0))
    if isinstance(horizon, int) and longest < pulls.size:
        return np.concatenate(([np.nan], rule.width(np.arange(1, 2 * longest + 3) / 2, horizon)))
    if _is_power(rule, horizon):
        return _power_widths(rule, horizon, len(pulls), halves=2)
    halves = 2 * pulls, 2 * before, pulls + most, 2 * np.maximum(most - 1, pulls)
    return _sparse(lambda counts: rule.width(counts / 2, int(horizon)), *halves)


def _is_power(rule: Demonstrator, horizon: Horizon) -> bool:
    return isinstance(rule, RegretWidth) and has_power_width(rule, int(np.max(horizon)))


def _power_widths(rule: Any, horizon: Horizon, demonstrations: int, halves: int = 1) -> PowerWidths:
    growth = np.broadcast_to(halves * theory.growth(horizon, rule.alpha), demonstrations)
    return PowerWidths(float(rule.factor), np.ascontiguousarray(growth, np.float64))


def _sparse(width: Callable[[Numbers], Numbers], *counts: NDArray[Any]) -> SparseWidths:
    """Return the widths of some counts; those of 0 are never asked for."""
    different = np.unique(np.concatenate([each.reshape(-1) for each in counts]))
    different = different[different > 0]
    return SparseWidths(different, width(different.astype(np.float64)))


def _common(horizon: Horizon) -> Horizon:
    """Return the one horizon of all demonstrations as a number; where they differ, each as it is."""
    if isinstance(horizon, int | np.integer):
        return int(horizon)
    return int(horizon[0]) if horizon.size and (horizon == horizon[0]).all() else horizon


def _fixed(array: Counts) -> Counts:
    """Return a view that cannot be written to, as counts of a log are: kernels are compiled for one kind only."""
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


def latest_test(tests: Callable[[Counts], Marks], epochs: Counts) -> Counts:
    """Return for each of some epochs the latest one up to it that ended in a test; 0 where none did.

    Where it is far back, all epochs are looked at, a block after the other, since there may be billions.
    """
    asked, places = np.unique(epochs, return_inverse=True)
    found = np.where(asked > 0, -1, 0)
    for back in range(BACK):  # most rules test at every epoch, or at regular intervals
        tested = (found < 0) & (asked > back) & tests(np.maximum(asked - back, 1))
        found[tested] = asked[tested] - back
        if (found >= 0).all():
            break
    so_far = 0
    for start in range(0, int(asked[found < 0].max(initial=-1)) + 1, BLOCK):
        numbers = np.arange(start, start + BLOCK)
        up_to = np.maximum.accumulate(np.where((numbers > 0) & tests(numbers), numbers, so_far))
        block = (found < 0) & (asked >= start) & (asked < start + BLOCK)
        found[block], so_far = up_to[asked[block] - start], int(up_to[-1])
    return found[places].reshape(epochs.shape)
