"""What demonstrations say about every arm's gap, before any noise level is put in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import AdditiveIndexRule, Demonstrator, EliminationRule, IndexRule, SwitchingCounts
from unbandit.demonstrators.width import RegretWidth
from unbandit.errors import NotIdentifiable
from unbandit.log.tallies import Need, Tallies
from unbandit.result import BEST, BOUNDED, ESTIMATED, UNSEEN

Width = Callable[[NDArray[np.float64], NDArray[np.bool_]], NDArray[np.float64]]
"""The rule's width `C(n)` of pull counts, one for each place that is marked; see `widths.RuleWidth`."""

Tests = Callable[[NDArray[np.int64]], NDArray[np.bool_]]
"""Whether an elimination rule tests its arms at the end of these epochs."""


Method = Literal["switching", "counts", "naive", "posterior", "bootstrap"]


@dataclass(frozen=True)
class Anchor:
    """Hold one arm's known mean; arm None stands for the best arm, whichever it is."""

    arm: int | None
    value: float


@dataclass
class Comparison:
    """Hold, for each arm, two sample means whose difference the record tells, exactly or up to a bound.

    An interval end is `below - z s` or `above + z s` with `s^2 = sigma_i^2 / own + (slope sigma_best)^2 / other`, the
    upper one with the counts of an earlier comparison where there was one. All arrays have one place an arm, or one row
    a demonstration and one column an arm.

    Attributes
    ----------
    best
        Which arms may be best: one, or several where the record leaves it open.
    verdict
        One of `result.VERDICTS`, as its number.
    gap
        The point, NaN where there is none.
    below, above
        What the interval's ends start from: the point for an estimated arm, NaN where there is no end.
    own, other
        How many rewards stand behind the arm's sample mean, and behind that of the arm it was compared with.
    own_above, other_above
        The same of the comparison that `above` comes from: the last one that the arm still won or survived.
    slope
        How far the arm's estimated mean moves with the best arm's: 1 where gaps need no known mean.
    cut
        Of an arm that was eliminated: the smallest gap whose elimination the record was long enough to show; None for
        rules that eliminate none.
    """

    best: NDArray[np.bool_]
    verdict: NDArray[np.int8]
    gap: NDArray[np.float64]
    below: NDArray[np.float64]
    above: NDArray[np.float64]
    own: NDArray[np.float64]
    other: NDArray[np.float64]
    own_above: NDArray[np.float64]
    other_above: NDArray[np.float64]
    slope: NDArray[np.float64]
    cut: NDArray[np.float64] | None = None

    @classmethod
    def of_nothing(cls, shape: tuple[int, ...]) -> Comparison:
        """Return the comparison of records that tell nothing."""
        gap, below, above, own, other, own_above, other_above = np.full((7, *shape), np.nan)
        best, verdict = np.zeros(shape, np.bool_), np.full(shape, UNSEEN, np.int8)
        return cls(best, verdict, gap, below, above, own, other, own_above, other_above, np.ones(shape))

    @property
    def steepness(self) -> float | NDArray[np.float64]:
        """Return `slope`, as one number where one was made to stand for all."""
        return self.slope if any(self.slope.strides) else float(self.slope.flat[0])

    def row(self, which: int) -> Comparison:
        """Return one of several demonstrations, one place an arm."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: array[which] for name, array in arrays.items() if array is not None})

    @classmethod
    def joined(cls, parts: Sequence[Comparison]) -> Comparison:
        """Put demonstrations below one another."""
        if len(parts) == 1:
            return parts[0]
        names = [field.name for field in fields(cls) if getattr(parts[0], field.name) is not None]
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    def settle(self, best: NDArray[np.bool_]) -> None:
        """Take these arms, one a demonstration, as the best."""
        self.best[best], self.verdict[best], self.gap[best] = True, BEST, 0.0


def most_pulled(pulls: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the most-pulled arm of each demonstration, the first of them if several are tied.

    Examples
    --------
    >>> most_pulled(np.array([[1, 3, 3], [4, 2, 0]])).astype(int).tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    marks = np.zeros(pulls.shape, np.bool_)
    np.put_along_axis(marks, pulls.argmax(axis=-1)[..., None], True, axis=-1)
    return marks


Horizon = int | NDArray[np.int64]
"""`T`: one for all demonstrations, or one for each of them."""


@dataclass(frozen=True)
class RuleWidth:
    """Give a rule's width `C(n)`, whatever the horizon of each demonstration is."""

    rule: AdditiveIndexRule | EliminationRule
    horizon: Horizon

    def __call__(self, pulls: NDArray[np.float64], where: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the widths of pull counts, one for each place that is marked in an array of demonstrations and arms.

        Examples
        --------
        >>> from unbandit import UCB
        >>> both = np.array([[True, True], [True, False]])
        >>> RuleWidth(UCB(alpha=0), np.array([10, 100]))(np.array([1.0, 4.0, 4.0]), both).round(3).tolist()
        [2.146, 1.073, 1.517]
        """
        rounds = spread_out(self.horizon, where)
        if isinstance(self.rule, RegretWidth) and not isinstance(rounds, int):
            return self.rule.width(pulls, rounds)
        return by_horizon(lambda one, counts: self.rule.width(counts, one), rounds, pulls)

    def of_counts(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the widths of whole counts, a row each demonstration; of 0, or of more than the horizon, anything.

        Where there are more counts than rounds, every width is computed once and looked up.
        """
        if isinstance(self.horizon, int) and self.horizon < counts.size:
            return self._table.take(counts, mode="clip")
        rows = np.broadcast_to(True, counts.shape)
        return self(np.maximum(counts, 1).reshape(-1).astype(np.float64), rows).reshape(counts.shape)

    @cached_property
    def _table(self) -> NDArray[np.float64]:
        assert isinstance(self.horizon, int)
        widths = self.rule.width(np.arange(1, self.horizon + 1, dtype=np.float64), self.horizon)
        return np.concatenate(([np.nan], widths))


def spread_out(horizon: Horizon, where: NDArray[np.bool_]) -> Horizon:
    """Return the horizon of each place that is marked, or the one of them all."""
    return horizon if isinstance(horizon, int) else np.broadcast_to(horizon[..., None], where.shape)[where]


def by_horizon(work: Callable[..., NDArray[np.float64]], horizon: Horizon, *arrays: Any) -> NDArray[np.float64]:
    """Call `work(horizon, ...)` once for each horizon there is, with the places of the arrays that have it.

    Examples
    --------
    >>> by_horizon(lambda one, values: values / one, np.array([2, 4, 2]), np.array([1.0, 1.0, 3.0])).tolist()
    [0.5, 0.25, 1.5]
    """
    if isinstance(horizon, int):
        return work(horizon, *arrays)
    found = np.empty(horizon.shape)
    order = np.argsort(horizon, kind="stable")
    starts = np.flatnonzero(np.diff(horizon[order], prepend=-1))
    for at in np.split(order, starts[1:]) if order.size else []:
        found[at] = work(int(horizon[at[0]]), *(array[at] for array in arrays))
    return found


def common(horizons: NDArray[np.int64]) -> Horizon:
    """Return the one horizon of all demonstrations as a number; where they differ, each as it is."""
    return int(horizons[0]) if horizons.size and (horizons == horizons[0]).all() else horizons


STEP = 1e-5
"""By how much the best arm's mean is moved to see how far another arm's follows."""

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class Equation:
    """Solve `index(m_i, n_i, t) = index(mu_best, n_best, t)` for the gap `mu_best - m_i`.

    Attributes
    ----------
    rule, horizon
        Whose index, and its `T`.
    width
        The rule's width, if its index is the mean plus a width: gaps are then differences of widths.
    best_mean
        The best arm's mean in each demonstration, as an array that fits the pull counts; zeros where the index rises
        one for one with the mean, so that gaps do not depend on it.
    """

    rule: IndexRule
    horizon: Horizon
    width: RuleWidth | None
    best_mean: Numbers

    def solve(self, where: Marks, own: Counts, other: Counts, after: Counts) -> tuple[Numbers, Numbers]:
        """Return the gaps of the arms marked by `where`, and how far each of their means moves with the best arm's.

        All arrays have a row each demonstration and a place each arm, or one for all of them: pulls of the arm, pulls
        of the best arm, and the round after which the two indices are equated. A gap is NaN where no mean solves the
        equation, and where no arm is marked.
        """
        if self.width is not None:
            gap = self.width.of_counts(own) - self.width.of_counts(other)
            return np.where(where, gap, np.nan), np.broadcast_to(1.0, where.shape)
        best = np.broadcast_to(self.best_mean, where.shape)[where]
        counts, others, rounds = (np.broadcast_to(each, where.shape)[where] for each in (own, other, after))
        horizon = spread_out(self.horizon, where)
        solved = partial(_equated, self.rule, horizon, of_known=others, own=counts, rounds=rounds + 1)
        found, slopes = np.full(where.shape, np.nan), np.ones(where.shape)
        gaps = best - solved(best)
        found[where] = gaps
        if self.rule.shifts:
            return found, slopes
        step = STEP * np.maximum(np.abs(best), 1.0)
        below, here, above = solved(best - step), best - gaps, solved(best + step)
        with np.errstate(invalid="ignore"):
            slope = (above - below) / (2 * step)
            slope = np.where(np.isfinite(slope), slope, (here - below) / step)  # at the edge of what a mean can be
        found[where] = np.where(np.isfinite(gaps), gaps, np.nan)
        slopes[where] = np.where(np.isfinite(slope), slope, 1.0)
        return found, slopes


def equation(rule: IndexRule, horizon: Horizon, anchor: Anchor | None, read: SwitchingCounts) -> Equation:
    """Set the equation up; where gaps depend on the best arm's mean, take it from the one mean that is known.

    `read` has the counts at which each arm, the anchor too, is compared with the best one.
    """
    if isinstance(rule, AdditiveIndexRule):
        return Equation(rule, horizon, RuleWidth(rule, horizon), np.zeros(1))
    if rule.shifts:
        return Equation(rule, horizon, None, np.zeros(1))
    if anchor is None:
        raise NotIdentifiable(
            f"{rule.name}: this rule's index does not rise one for one with the mean, so its choices give no gap "
            "without one known mean; give best_mean, or the mean of any one arm as anchor."
        )
    if anchor.arm is None:
        return Equation(rule, horizon, None, np.full(1, anchor.value))
    own, other, rounds = (values[..., anchor.arm] for values in (read.own, read.of_best, read.rounds))
    compared = (own > rule.initial) & (other > 0)
    known = np.where(compared, anchor.value, np.nan).reshape(-1)
    solved = _equated(rule, horizon, known, own.reshape(-1), other.reshape(-1), rounds.reshape(-1) + 1)
    solved = np.where(np.isfinite(solved), solved, np.nan).reshape(own.shape)
    itself = most_pulled(read.pulls)[..., anchor.arm]
    return Equation(rule, horizon, None, np.where(itself, anchor.value, solved)[..., None])


def _equated(
    rule: IndexRule, horizon: Horizon, known: Numbers, of_known: Counts, own: Counts, rounds: Counts
) -> Numbers:
    """Call the compiled loop, on arrays laid out as it takes them."""
    from unbandit.kernels.procedures import equated_means

    def solved(one: int, means: Numbers, *counts: Counts) -> Numbers:
        laid_out = (np.ascontiguousarray(values, np.int64) for values in counts)
        return equated_means(rule.parameters(one), np.ascontiguousarray(means, np.float64), *laid_out)

    return by_horizon(solved, horizon, known, of_known, own, rounds)


BACK, BLOCK = 64, 1 << 16
"""Epochs that are looked at backwards from one, and together."""

SetUp = Callable[[SwitchingCounts], Equation]
"""What makes the rule's equation from what was read."""


def eliminated_and_active(pulls: NDArray[np.int64], gone: NDArray[np.bool_], width: Width, tests: Tests) -> Comparison:
    """Invert successive elimination: an arm eliminated after `n_i` pulls has gap `2 C(n_i)` (Procedure 1).

    An arm counts as eliminated only if its turn visibly passed (`gone`). One that is still active at the end has
    survived test `n_i - 1`: its gap is at most `2 C(n_i - 1)`. While two or more are active, none of them is known to
    be best. Of one demonstration, or of many: one row each.

    Where tests are not made at every epoch, an arm that went at one of them was still there after the test before: its
    gap lies between twice the width at the one and at the other, and the point halfway.
    """
    result = Comparison.of_nothing(pulls.shape)
    n, at = pulls[gone].astype(np.float64), pulls[gone]
    before = _latest_test(tests, at - 1)
    skipped = before < at - 1  # no test at the epoch before: the last one survived is further back
    survived = skipped & (before > 0)
    result.below[gone] = 2 * width(n, gone)
    above = np.where(skipped, np.nan, result.below[gone])
    if survived.any():
        places = np.zeros_like(gone)
        places[gone] = survived
        above[survived] = 2 * width(before[survived].astype(np.float64), places)
    result.above[gone] = above
    result.gap[gone] = np.where(survived, (result.below[gone] + above) / 2, result.below[gone])
    result.own[gone] = result.other[gone] = n
    result.own_above[gone] = result.other_above[gone] = np.where(survived, before, n)
    result.verdict[gone] = np.where(skipped & ~survived, BOUNDED, ESTIMATED)
    result.gap[gone & (result.verdict == BOUNDED)] = np.nan

    active = (pulls > 0) & ~gone
    alone = active & (active.sum(axis=-1, keepdims=True) == 1)
    # How long the arm could have stayed: until the end or, against the last arm alone, for half of what that had.
    most = pulls.max(axis=-1, keepdims=True)
    longest = np.where(alone.any(axis=-1, keepdims=True), (pulls + most) / 2, np.maximum(most - 1, pulls))[gone]
    result.cut = np.full(pulls.shape, np.nan)
    result.cut[gone] = np.where(skipped, np.nan, 2 * width(longest.astype(np.float64), gone))
    result.settle(alone)
    result.best, open_still = active, active & ~alone
    result.verdict[open_still], result.below[open_still] = BOUNDED, 0.0
    last = _latest_test(tests, np.maximum(pulls - 1, 0))
    tested = open_still & (last > 0)
    result.above[tested] = 2 * width(last[tested].astype(np.float64), tested)
    for counts in (result.own, result.other, result.own_above, result.other_above):
        counts[tested] = last[tested]
    return result


def _latest_test(tests: Tests, epochs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each of some epochs the latest one up to it that ended in a test; 0 where none did.

    Where it is far back, all epochs are looked at, a block after the other, for there may be billions.
    """
    asked, places = np.unique(epochs, return_inverse=True)
    found = np.where(asked > 0, -1, 0)
    for back in range(BACK):  # most rules test at every epoch, or at every so many
        tested = (found < 0) & (asked > back) & tests(np.maximum(asked - back, 1))
        found[tested] = asked[tested] - back
        if (found >= 0).all():
            break
    so_far = 0
    for start in range(0, int(asked[found < 0].max(initial=-1)) + 1, BLOCK):
        numbers = np.arange(start, start + BLOCK)
        up_to = np.maximum.accumulate(np.where((numbers > 0) & tests(numbers), numbers, so_far))
        here = (found < 0) & (asked >= start) & (asked < start + BLOCK)
        found[here], so_far = up_to[asked[here] - start], int(up_to[-1])
    return found[places].reshape(epochs.shape)


def index_comparison(read: SwitchingCounts, over: NDArray[np.bool_] | bool, set_up: SetUp) -> Comparison:
    """Invert an index rule: equate the indices of arm and best arm, both counts at the switching round (Procedure 2).

    Of an additive rule, `gap_i = C(n_i) - C(n_best)`. An arm that was never reconsidered, pulled in the opening alone
    before the best arm's last pull or not at all since, is bounded from below by the same equation with all of the best
    arm's pulls. It had all its own pulls behind it then if it is marked in `over`, otherwise those of the opening.
    (After an opening that no index rule makes, an arm may have more pulls then: all of them count.)
    Of one demonstration, or of many: one row each.
    """
    pulls, equation = read.pulls, set_up(read)
    initial, batch = equation.rule.initial, equation.rule.batch
    best, top = most_pulled(pulls), pulls.argmax(axis=-1)[..., None]
    all_of_best, ended = (np.take_along_axis(counts, top, axis=-1) for counts in (pulls, read.rounds))
    seen = (pulls > 0) & ~best
    compared = seen & (read.own > initial) & (read.of_best > 0)
    below, slope = equation.solve(compared, read.own, read.of_best, read.rounds)
    # Before the last decision for it, the arm's index was still in front; since then it was never taken up again, so it
    # fell to below where the best arm's index stood in the end. The upper end starts halfway between the two.
    before = np.maximum(read.own - batch, initial)
    then, _ = equation.solve(compared, before, read.of_best, read.rounds)
    in_the_end, _ = equation.solve(compared, before, all_of_best, ended)
    above = (then + in_the_end) / 2
    gap = below.copy() if batch == 1 else (below + above) / 2
    own, other, own_above = (np.where(compared, counts, np.nan) for counts in (read.own, read.of_best, before))
    other_above = other.copy()
    verdict = np.where(compared, np.int8(ESTIMATED), np.int8(UNSEEN))

    never = seen & ~compared
    if never.any():
        pulls_then = np.where(over, pulls, np.minimum(pulls, initial))
        bound, slope_then = equation.solve(never, pulls_then, all_of_best, ended)
        below = np.where(never, bound, below)
        slope = slope if equation.width is not None else np.where(never, slope_then, slope)
        own, other = np.where(never, pulls_then, own), np.where(never, all_of_best, other)
        verdict[never] = BOUNDED
    unsolved = seen & np.isnan(below)
    if unsolved.any():
        verdict[unsolved], below[unsolved] = BOUNDED, 0.0
    result = Comparison(best, verdict, gap, below, above, own, other, own_above, other_above, slope)
    result.settle(best)
    return result


def index_counts(pulls: NDArray[np.int64], set_up: SetUp) -> Comparison:
    """Put every index at one common level `V`: of an additive rule, `m_i = V - C(n_i)`, `gap_i = C(n_i) - C(n_best)`.

    The indices are those before the last round, as far as they depend on it.
    """
    return index_comparison(_at_the_end(pulls, pulls.sum(axis=-1)), True, set_up)


def gaps_at_the_end(
    pulls: NDArray[np.int64], lengths: NDArray[np.int64], where: NDArray[np.bool_], set_up: SetUp
) -> NDArray[np.float64]:
    """Return the same gaps alone, of the arms that are marked; 0 where no mean gives one, NaN for the others."""
    read = _at_the_end(pulls, lengths)
    gap, _ = set_up(read).solve(where, pulls, read.of_best, read.rounds)
    return np.where(where & np.isnan(gap), 0.0, gap)


def _at_the_end(pulls: NDArray[np.int64], lengths: NDArray[np.int64]) -> SwitchingCounts:
    """Take the last round for the switching round of every arm."""
    most = np.take_along_axis(pulls, pulls.argmax(axis=-1)[..., None], axis=-1)
    of_best = np.broadcast_to(most, pulls.shape)
    rounds = np.broadcast_to(np.maximum(lengths - 1, 0)[..., None], pulls.shape)
    return SwitchingCounts(pulls, pulls, of_best, rounds)


def elimination_counts(pulls: NDArray[np.int64], width: Width, tests: Tests) -> Comparison:
    """Take an arm as eliminated if it was pulled two times less than the most-pulled one, or fewer."""
    gone = (pulls > 0) & (pulls < pulls.max(axis=-1, keepdims=True) - 1)
    return eliminated_and_active(pulls, gone, width, tests)


def naive(pulls: NDArray[np.int64], horizon: Horizon, constant: float) -> Comparison:
    """Return `gap_i = constant sqrt(ln T / n_i)`: it needs no rule, is not consistent, and has no interval."""
    result, seen = Comparison.of_nothing(pulls.shape), pulls > 0
    result.gap[seen] = constant * np.sqrt(np.log(spread_out(horizon, seen)) / pulls[seen])
    result.verdict[seen] = ESTIMATED
    result.settle(most_pulled(pulls))
    return result


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
            f"{rule.name}: the rule's choices do not depend on rewards, so they tell nothing of values."
        )
    if rule.reveals == "best":
        raise NotIdentifiable(
            f"{rule.name}: the rule's choices show which arm it judged best, and no values: every other arm is pulled "
            "the same number of times, whatever it is worth."
        )
    raise NotIdentifiable(
        f"{rule.name}: the rule draws its arms at random, so no round shows two arms of equal value as method "
        f"{method} needs. The posterior reads a record of it: method posterior, or the command posterior."
    )


def compare_many(
    evidence: Any, rule: Demonstrator, method: Method, horizon: Horizon, constant: float, anchor: Anchor | None = None
) -> Comparison:
    """Return what the demonstrations behind `rule.evidence(...)` say about every arm's gap.

    The same numbers as `estimate` gives for their logs, without its warnings.

    Parameters
    ----------
    evidence
        What the rule's kind gives: `SwitchingCounts` or `Eliminations`.
    constant
        Of the naive estimator.
    anchor
        The one mean that is known; rules whose index does not rise one for one with the mean need it.
    """
    check_comparable(rule, method)
    if method == "naive":
        return naive(evidence.pulls, horizon, constant)
    rule = rule.for_arms(evidence.pulls.shape[-1])
    if isinstance(rule, EliminationRule):
        width = RuleWidth(rule, horizon)
        if method == "counts":
            return elimination_counts(evidence.pulls, width, rule.tests)
        return eliminated_and_active(evidence.pulls, (evidence.pulls > 0) & evidence.gone, width, rule.tests)
    assert isinstance(rule, IndexRule)
    set_up = partial(equation, rule, horizon, anchor)
    if method == "counts":
        return index_counts(evidence.pulls, set_up)
    return index_comparison(evidence, False, set_up)


@dataclass(frozen=True)
class Reading:
    """Hold demonstrations with what they say: one row each; or one of them, one place an arm.

    Attributes
    ----------
    rule, method, sigma
        Who is taken to have made them, how they were read, and how noisy a reward is taken to be.
    ordered
        Whether the order of rounds is known.
    lengths, horizon
        How many rounds each has, and `T`.
    tallies, comparison
        What was counted, and what follows for every arm's gap.
    at_the_end
        Of an index rule that was read at its switching rounds: the gaps that its last round tells.
    """

    rule: Demonstrator
    method: Method
    sigma: float
    ordered: bool
    lengths: Counts
    horizon: Horizon
    tallies: Tallies
    comparison: Comparison
    at_the_end: NDArray[np.float64] | None = None

    @cached_property
    def deviation(self) -> NDArray[np.float64]:
        """Return the standard deviation of each gap at this noise."""
        result = self.comparison
        return np.asarray(self.sigma * np.sqrt(1 / result.own + np.square(result.steepness) / result.other))

    def row(self, which: int) -> Reading:
        """Return one of the demonstrations."""
        return replace(
            self,
            lengths=self.lengths[which],
            horizon=self.horizon if isinstance(self.horizon, int) else int(self.horizon[which]),
            tallies=self.tallies.row(which),
            comparison=self.comparison.row(which),
            at_the_end=None if self.at_the_end is None else self.at_the_end[which],
        )


def needed(rule: Demonstrator, method: Method) -> Need:
    """Return what must be counted for a method to read a rule's demonstrations.

    Examples
    --------
    >>> from unbandit import SAE, UCB
    >>> needed(UCB(), "switching"), needed(SAE(), "switching"), needed(SAE(), "counts")
    ('switching', 'epochs', 'counts')
    """
    if method != "switching":
        return "counts"
    return "epochs" if isinstance(rule, EliminationRule) else "switching"


def compare(
    tallies: Tallies, lengths: Counts, ordered: bool, rule: Demonstrator, method: Method, horizons: Counts,
    sigma: float, constant: float, anchor: Anchor | None = None,
) -> Reading:  # fmt: skip
    """Return what demonstrations say about every arm's gap, from what was counted of them."""
    horizon, pulls = common(horizons), tallies.pulls
    made = partial(Reading, rule, method, sigma, ordered, lengths, horizon, tallies)
    if method == "naive":
        return made(naive(pulls, horizon, constant))
    if isinstance(rule, EliminationRule):
        width = RuleWidth(rule, horizon)
        if method == "counts":
            return made(elimination_counts(pulls, width, rule.tests))
        gone = (pulls > 0) & (tallies.turns[0] > 0)
        return made(eliminated_and_active(pulls, gone, width, rule.tests))
    assert isinstance(rule, IndexRule)
    set_up = partial(equation, rule, horizon, anchor)
    if method == "counts":
        return made(index_counts(pulls, set_up))
    last = tallies.last
    over = last < np.take_along_axis(last, pulls.argmax(axis=-1)[:, None], axis=-1)
    comparison = index_comparison(SwitchingCounts(pulls, *tallies.at_switching), over, set_up)
    return made(comparison, gaps_at_the_end(pulls, lengths, comparison.verdict == ESTIMATED, set_up))


def ratios(comparison: Comparison, reference: int | None) -> tuple[NDArray[np.float64], Counts]:
    """Count every gap in units of one arm's gap: a common factor falls out.

    Returns the ratios, NaN where the reference arm has no estimated gap above 0, and for each demonstration the
    reference arm: the one given, or the one whose gap is known best; -1 where there is none.
    """
    with np.errstate(invalid="ignore"):
        usable = (comparison.verdict == ESTIMATED) & (comparison.gap > 0)
    known_best = np.where(usable, _uncertainty(comparison), np.inf).argmin(axis=-1)
    units = np.where(usable.any(axis=-1), known_best, -1)
    if reference is not None:
        units = np.full(units.shape, reference)
    place = np.maximum(units, 0)[..., None]
    counted = np.take_along_axis(usable, place, axis=-1) & (units >= 0)[..., None]
    unit = np.where(counted, np.take_along_axis(comparison.gap, place, axis=-1), np.nan)
    return np.asarray(comparison.gap / unit), units


def _uncertainty(comparison: Comparison) -> NDArray[np.float64]:
    """Return the variance of each gap in units of sigma squared; of naive gaps, which have none, a common one."""
    variance = 1 / comparison.own + 1 / comparison.other
    return np.where(np.isnan(variance), 1.0, variance)
