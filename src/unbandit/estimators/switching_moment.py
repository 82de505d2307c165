"""The switching moment: both decision values around the round at which a rule turned away from an arm.

At an arm's switching round the rule's two decision values were equal, up to one reward. Procedures 1 and 2 read a gap
off that moment; this module shows it round by round.
"""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule, parse_rule
from unbandit.errors import AssumptionWarning, NotIdentifiable, ParameterError
from unbandit.estimators.api import estimate as estimated
from unbandit.estimators.arguments import as_log
from unbandit.estimators.procedures import check_comparable, needed
from unbandit.formatting import json_number
from unbandit.log import ActionLog
from unbandit.result import Estimate
from unbandit.tables import Finding, as_written_by, check_fields, read_number, read_whole

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

SCHEMA = "unbandit.switching-moment/1"

SHOWN_PULLS = 8  # how many of the arm's pulls before its switching round are shown
MOST_POINTS = 300  # at most this many rounds are kept

ASKED = ("rule", "kind", "arm", "best", "round", "gap", "best_mean", "demonstration", "horizon")
VALUES = ("own", "other")

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class SwitchingMoment(Finding):
    """Both decision values around an arm's switching round.

    The sample means that decided are hidden. The values are those at the estimate: the arm's mean lies the estimated
    gap below the best arm's.

    Attributes
    ----------
    rule, arm
        As for `switching_moment`.
    kind
        An `index` rule compares two indices, an `elimination` rule the arm's upper with the best arm's lower bound.
    best
        The arm that the rule turned to.
    round
        The switching round (`tau_i`): the arm's last pull before the rule turned to the best arm for good.
    gap
        By how much the arm's mean is taken to lie below the best arm's.
    best_mean
        The best arm's mean; None where no mean is known, and values are counted from it.
    rounds
        After how many rounds the values were computed.
    own
        The decision value of the arm then.
    other
        The decision value of the best arm then.
    own_pulls
        The pulls behind the value of the arm.
    other_pulls
        The pulls behind the value of the best arm.
    """

    rule: str
    kind: Literal["index", "elimination"]
    arm: str
    best: str
    round: int
    gap: float
    best_mean: float | None
    rounds: Counts
    own: Numbers
    other: Numbers
    own_pulls: Counts
    other_pulls: Counts
    demonstration: str
    horizon: int

    def __repr__(self) -> str:
        return f'<SwitchingMoment: "{self.arm}" or "{self.best}" at round {self.round:,}, {self.rule}>'

    def to_frame(self) -> polars.DataFrame:
        """Return a table, one row per round: both decision values, and the pulls behind them."""
        import polars as pl

        names = ("own", "other", "own_pulls", "other_pulls")
        return pl.DataFrame({"round": self.rounds} | {name: getattr(self, name) for name in names})

    def to_dict(self) -> dict[str, Any]:
        """Return the moment, ready for JSON: what it is about, and the rows of the table."""
        about = {name: getattr(self, name) for name in ASKED}
        rows = self.to_frame().to_dicts()
        return {
            "schema": SCHEMA,
            **about,
            "rows": [row | {name: json_number(row[name]) for name in VALUES} for row in rows],
        }

    @classmethod
    @as_written_by("SwitchingMoment")
    def from_json(cls, text: str | bytes) -> SwitchingMoment:
        """Return the switching moment that `to_json` wrote."""
        said = read_whole(text, SCHEMA, "rows", "SwitchingMoment")
        check_fields(said, ("round", "gap", "horizon"), ("rule", "kind", "arm", "best", "demonstration"))
        missing = {"own": math.inf, "other": -math.inf if said["kind"] == "elimination" else math.inf}
        numbers: dict[str, Any] = {
            name: np.array([read_number(row[name], missing[name]) for row in said["rows"]], np.float64)
            for name in VALUES
        }
        for name, column in (("rounds", "round"), ("own_pulls", "own_pulls"), ("other_pulls", "other_pulls")):
            numbers[name] = np.array([row[column] for row in said["rows"]], np.int64)
        return cls(**{name: said[name] for name in ASKED}, **numbers)

    @property
    def here(self) -> int:
        """Return the place of the switching round among `rounds`."""
        return min(int(np.searchsorted(self.rounds, self.round)), self.rounds.size - 1)

    @property
    def equal(self) -> bool:
        """Return whether the two values are equal at the switching round.

        They are where the gap was read off that very moment; not where the rule decides in batches or tests rarely (the
        gap is then put between two of its decisions), nor where another method made the estimate.
        """
        return bool(np.isclose(self.own[self.here], self.other[self.here], rtol=1e-6))

    def plot(self, *, ax: Axes | None = None) -> Any:
        """Draw both decision values around the switching round; on `ax`, which is returned, or on a new figure."""
        from unbandit import plots

        return plots.switching_moment(self, ax=ax)


def switching_rounds(
    log: ActionLog | str | os.PathLike[str] | Any, rule: Demonstrator | str, *, demonstration: object = None
) -> dict[str, int]:
    """Return each arm's switching round: its last pull before the rule turned away from it.

    For an index rule that is the last pull followed by one of the best arm, for an elimination rule the last pull of
    an arm that was visibly eliminated. Arms that have none are left out: the best arm, those pulled in the opening
    alone, those never pulled, and those still active.

    Parameters
    ----------
    log
        As for `estimate`.
    rule
        As for `estimate`; one that draws its arms at random has no such rounds, and is refused.
    demonstration
        The name of the one to take from a log of several; by default the first.

    Examples
    --------
    >>> import unbandit as ub
    >>> ub.switching_rounds(ub.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118), "ucb")
    {'B': 82}
    """
    record = as_log(log, "switching rounds")
    _, _, rounds = _rounds(record, rule, demonstration)
    return {record.arms[arm]: int(rounds[arm]) for arm in np.flatnonzero(rounds)}


def switching_moment(
    log: ActionLog | str | os.PathLike[str] | Any, rule: Demonstrator | str, arm: object = None, *,
    estimate: Estimate | None = None, demonstration: object = None, **options: Any,
) -> SwitchingMoment:  # fmt: skip
    """Return both decision values around the round at which the rule turned away from an arm.

    Parameters
    ----------
    log
        As for `estimate`.
    rule
        As for `estimate`; one that draws its arms at random never weighs two values, and is refused.
    arm
        By default the best arm's closest rival: the most-pulled arm that has a switching round and an estimate.
    estimate
        The answer whose gaps are put in for the hidden means; by default it is made here, by method switching.
    demonstration
        The name of the one to take from a log of several; by default the first.
    options
        Of `estimate`, if it is made here.

    Raises
    ------
    NotIdentifiable
        If the record shows no such round for the arm, or for any.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> moment = ub.switching_moment(log, "ucb:alpha=0.25", sigma=1.0)
    >>> moment
    <SwitchingMoment: "B" or "A" at round 82, ucb:alpha=0.25,scale=1.4142135623730951>
    >>> moment.equal
    True
    """
    record = as_log(log, "switching moment")
    fitted, which, rounds = _rounds(record, rule, demonstration)
    answer = _answer(record, rule, estimate, options)
    name, several = record.demonstrations[which], len(answer.demonstrations) > 1
    at = checks.position("demonstration", name, answer.demonstrations) if several else 0
    # the arm that was preferred: the most-pulled of those that may be best
    pulls, candidates = record.pulls[which], [record.arms.index(each) for each in answer.best_by_demonstration[at]]
    best = max(candidates, key=lambda each: pulls[each]) if candidates else int(pulls.argmax())
    gaps = answer.columns.gap[at]
    chosen = _chosen(arm, record.arms, pulls, best, rounds, gaps)
    offset = gaps[best] if np.isfinite(gaps[best]) else 0.0
    gap, mean = float(gaps[chosen] - offset), float(answer.columns.mean[at, best])
    known = mean if np.isfinite(mean) else 0.0
    horizon, codes = answer.horizons[min(which, len(answer.horizons) - 1)], record.demonstration(which)
    tau = int(rounds[chosen])
    if isinstance(fitted, EliminationRule):
        shown, own_pulls, other_pulls = _epochs(codes, chosen, best, tau)
        width = partial(fitted.width, horizon=horizon)
        own = known - gap + width(own_pulls.astype(np.float64))
        other = known - width(other_pulls.astype(np.float64))
    else:
        assert isinstance(fitted, IndexRule)
        shown, own_pulls, other_pulls = _decisions(codes, chosen, best, tau)

        def indices(mean: float, pulls: Counts) -> Numbers:
            pairs = zip(pulls.tolist(), shown.tolist(), strict=True)
            return np.array([fitted.index(mean, count, at + 1, horizon) for count, at in pairs])

        own, other = indices(known - gap, own_pulls), indices(known, other_pulls)
    return SwitchingMoment(
        rule=answer.rule, kind="elimination" if isinstance(fitted, EliminationRule) else "index",
        arm=record.arms[chosen], best=record.arms[best], round=tau, gap=gap,
        best_mean=mean if np.isfinite(mean) else None, rounds=shown, own=own, other=other, own_pulls=own_pulls,
        other_pulls=other_pulls, demonstration=name, horizon=horizon,
    )  # fmt: skip


def _rounds(record: ActionLog, rule: Demonstrator | str, demonstration: object) -> tuple[Demonstrator, int, Counts]:
    """Return the rule for this many arms, the place of a demonstration, and every arm's switching round: 0 for none.

    A rule that never weighs two values is refused, and a record without order.
    """
    fitted = parse_rule(rule).for_arms(len(record.arms))
    check_comparable(fitted, "switching")
    if fitted.is_late:
        text = f"{fitted.name}: with late rewards, as of {fitted}, an arm was last weighed before its last pull."
        raise NotIdentifiable(text, remedy="There is no such moment to show.")
    if not record.ordered:
        raise ParameterError("switching rounds: expected a log with rounds; this one holds counts, without order.")
    which = checks.position("demonstration", demonstration, record.demonstrations)
    single = record if len(record) == 1 else record.select(which)  # what was read of it before is kept
    found = single.tallied(needed(fitted, "switching"))
    if isinstance(fitted, EliminationRule):
        return fitted, which, np.where(found.eliminated, found.last, 0)[0]
    assert isinstance(fitted, IndexRule)
    own, of_best, rounds = found.at_switching
    return fitted, which, np.where((own > fitted.initial) & (of_best > 0), rounds, 0)[0]


def _answer(record: ActionLog, rule: Demonstrator | str, given: Estimate | None, options: dict[str, Any]) -> Estimate:
    """Return the answer that was given, or make one."""
    if given is not None:
        if options:
            raise ParameterError(f"{next(iter(options))}: expected only where no estimate is given; leave it out.")
        if given.arms != record.arms:
            raise ParameterError("estimate: expected the answer for this log; its arms are others.")
        return given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return estimated(record, rule, **{"method": "switching"} | options)


def _chosen(arm: object, arms: tuple[str, ...], pulls: Counts, best: int, rounds: Counts, gaps: Numbers) -> int:
    """Return the arm asked for, or the closest rival of the best."""
    usable = (rounds > 0) & np.isfinite(gaps)
    usable[best] = False
    if arm is None:
        if not rounds.any():
            raise NotIdentifiable("The log shows no round at which the rule turned from an arm it had reconsidered.")
        if not usable.any():
            raise NotIdentifiable("No arm that has a switching round has an estimated gap to put in for hidden means.")
        return int(np.where(usable, pulls, -1).argmax())
    chosen = checks.position("arm", arm, arms)
    if chosen == best:
        raise ParameterError(
            f'"{arm}" is the best arm, which the others are weighed against; name another.', parameter="arm"
        )
    if not usable[chosen]:
        raise NotIdentifiable(
            f'The log shows no moment of hesitation over "{arm}": it was pulled in the opening alone, is still '
            "active, or has no estimated gap."
        )
    return chosen


def _decisions(codes: NDArray[Any], arm: int, best: int, tau: int) -> tuple[Counts, Counts, Counts]:
    """Choose rounds around an index rule's switching round, and count the pulls of both arms after each."""
    turns = np.flatnonzero(codes[:tau] == arm) + 1
    reach = max(tau - int(turns[max(turns.size - 1 - SHOWN_PULLS, 0)]), 12)
    begin, end = max(tau - reach, 1), min(tau + reach, codes.size)
    own = np.cumsum(codes[begin - 1 : end] == arm) + np.count_nonzero(codes[: begin - 1] == arm)
    other = np.cumsum(codes[begin - 1 : end] == best) + np.count_nonzero(codes[: begin - 1] == best)
    rounds = np.arange(begin, end + 1)
    kept = (own > 0) & (other > 0)
    if rounds.size > MOST_POINTS:  # the arm's own pulls, and rounds that are evenly apart
        places = np.unique(np.linspace(0, rounds.size - 1, MOST_POINTS).astype(np.int64))
        some = np.isin(rounds, turns) | np.isin(rounds, turns - 1)
        some[places] = True
        kept &= some
    return rounds[kept], own[kept].astype(np.int64), other[kept].astype(np.int64)


def _epochs(codes: NDArray[Any], arm: int, best: int, tau: int) -> tuple[Counts, Counts, Counts]:
    """Choose epochs around an elimination, and the pulls of both arms at the end of each."""
    own, other = np.flatnonzero(codes[:tau] == arm) + 1, np.flatnonzero(codes == best) + 1
    gone = own.size
    before = np.arange(min(max(gone // 2, 1), max(gone - SHOWN_PULLS, 1)), gone + 1)
    after = np.arange(gone + 1, min(gone + before.size, other.size) + 1)
    if before.size > MOST_POINTS // 2:
        before = np.unique(np.linspace(before[0], gone, MOST_POINTS // 2).astype(np.int64))
        after = np.unique(np.linspace(gone + 1, after[-1], MOST_POINTS // 2).astype(np.int64)) if after.size else after
    rounds = np.concatenate([own[before - 1], other[after - 1]])
    return rounds, np.concatenate([before, np.full(after.size, gone)]), np.concatenate([before, after])
