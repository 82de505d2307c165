"""How much does a record of actions give away, counted in rewards that one would have had to see?

A defender who publishes which arm was pulled when, or cannot hide it, hides no more than this. For each arm:

- The outsider knows the rule, the horizon, the noise and the best arm's mean, and estimates the arm's mean by the
  closed form; `MSE_i` is the mean squared error over the runs that have an estimate, a share `p_i` of them.
- Someone who sees `m` of the arm's own rewards knows its mean with a mean squared error of `sigma_i^2 / m`.
- The record therefore gives away `m_i = p_i sigma_i^2 / MSE_i` rewards: *equivalent observed rewards*. A run without an
  estimate counts as giving nothing away, although it may give a bound.

Beside it stand the arm's pulls `n_i`; `m_i / n_i` is the share of what the rule itself learnt about the arm.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unbandit import checks, datasets
from unbandit.checks import whole
from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.estimators.procedures import check_comparable, most_pulled
from unbandit.instance import Instance
from unbandit.planning.runs import arm_deviations, read_runs, without_each_fold
from unbandit.study.grid import cell_seed
from unbandit.study.monte_carlo import Measured, measured, share

if TYPE_CHECKING:
    import polars
    from matplotlib.figure import Figure

__all__ = ["ArmLeak", "Leak", "leak"]

SCHEMA = "unbandit.leak/1"


@dataclass(frozen=True)
class ArmLeak:
    """Hold what the record gives away about one arm; None where there is no number.

    Attributes
    ----------
    arm, mean, gap
        Which arm, and what is true of it.
    pulls
        `n_i`, the mean over runs.
    estimated
        `p_i`, the share of runs in which the arm's gap has an estimate.
    rmse, rmse_error
        Root of the mean squared error of these estimates, with its Monte-Carlo error.
    equivalent, equivalent_error
        `m_i`, equivalent observed rewards, with its Monte-Carlo error; 0 for rules that give no values away, None for
        the best arm, whose gap is nothing to be learnt.
    share, share_error
        `m_i / n_i`.
    """

    arm: str
    mean: float
    gap: float
    pulls: float
    estimated: float
    rmse: float | None
    rmse_error: float | None
    equivalent: float | None
    equivalent_error: float | None
    share: float | None
    share_error: float | None


@dataclass(frozen=True, eq=False)
class Leak:
    """Hold how much the record of a rule gives away.

    Attributes
    ----------
    instance, rule, horizon, runs, seed
        What was simulated.
    reveals
        What the rule's actions can tell: `values`, only the `best` arm, or `nothing`.
    found, found_error
        How often the best arm can be told from the record, with its Monte-Carlo error; None where a rule reveals
        nothing.
    arms
        One row an arm.
    """

    instance: str
    rule: str
    horizon: int
    runs: int
    seed: int
    reveals: str
    found: float | None
    found_error: float | None
    arms: tuple[ArmLeak, ...]

    def __repr__(self) -> str:
        return f"<Leak: {self.rule} on {self.instance}, {self.horizon:,} rounds, {self.total:.4g} equivalent rewards>"

    def __getitem__(self, arm: object) -> ArmLeak:
        """Return the row of an arm."""
        for row in self.arms:
            if row.arm == str(arm):
                return row
        raise KeyError(f"{arm!r}: expected an arm among {', '.join(row.arm for row in self.arms[:12])}")

    @property
    def total(self) -> float:
        """Return the equivalent observed rewards of all arms but the best."""
        return sum(row.equivalent or 0.0 for row in self.arms)

    @cached_property
    def frame(self) -> polars.DataFrame:
        """Return the answer as a table, one row an arm."""
        import polars as pl

        kinds = {name: pl.Float64 if name != "arm" else pl.String for name in ArmLeak.__dataclass_fields__}
        return pl.DataFrame([asdict(row) for row in self.arms], schema=kinds)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer in the form that `--json` prints."""
        asked = ("instance", "rule", "horizon", "runs", "seed", "reveals", "found", "found_error")
        named = {name: getattr(self, name) for name in asked}
        return {"schema": SCHEMA, **named, "arms": [asdict(row) for row in self.arms]}

    def to_json(self) -> str:
        """Return the answer as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def plot(self) -> Figure:
        """Draw equivalent rewards beside pulls, arm by arm."""
        from unbandit.plots.plan import draw_leak

        return draw_leak(self)


def leak(
    instance: Instance | str,
    rule: Demonstrator | str,
    horizon: int,
    *,
    runs: int = 400,
    seed: int = 1,
    threads: int | None = None,
) -> Leak:
    """Return how much the record of a rule gives away about each arm, as equivalent observed rewards.

    Parameters
    ----------
    instance
        What the rule faces, or a data set by name.
    rule
        Who plays, or its text.
    horizon
        `T`.
    runs
        How many runs are simulated.
    seed
        The same seed gives the same numbers, on any number of threads.

    Examples
    --------
    UCB's actions tell nearly all that UCB itself knows.

    >>> answer = leak("two-armed", "ucb:alpha=0.25", 5_000, runs=200)
    >>> row = answer["1"]
    >>> 100 < row.equivalent < row.pulls < 200
    True
    >>> leak("two-armed", "uniform", 1_000, runs=20).total
    0.0
    """
    faced = datasets.load(instance) if isinstance(instance, str) else instance
    played = parse_rule(rule) if isinstance(rule, str) else rule
    horizon, runs, seed = whole("horizon", horizon), checks.whole("runs", runs, 2), checks.seed(seed)
    told = (faced.name, str(played), horizon, runs, seed, played.reveals)
    if played.reveals != "values":
        pulls, judged = _counted(faced, played, horizon, runs, seed, threads)
        found = share(float(judged.sum()), runs) if played.reveals == "best" else None
        rows = [_row(faced, arm, float(pulls[arm])) for arm in range(len(faced))]
        if found is None:
            return Leak(*told, None, None, tuple(rows))
        return Leak(*told, found.value, found.error, tuple(rows))
    check_comparable(played, "switching")
    read = read_runs(faced, played, horizon, runs, seed, 0.95, threads)
    kept = without_each_fold(runs).astype(np.float64)
    known = np.isfinite(read.error)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = (kept @ known) / kept.sum(axis=1, keepdims=True)
        mse = (kept @ np.where(known, read.error, 0.0) ** 2) / (kept @ known)
        worth = np.where(shares > 0, shares * arm_deviations(faced) ** 2 / mse, 0.0)
        pulls = (kept @ read.pulls) / kept.sum(axis=1, keepdims=True)
        of_pulls = worth / pulls
    found = share(float(read.found.sum()), runs)
    rows = [
        _row(faced, arm, float(pulls[0, arm]), float(shares[0, arm]),
             *(_measured(values[:, arm]) for values in (np.sqrt(mse), worth, of_pulls)))
        for arm in range(len(faced))
    ]  # fmt: skip
    return Leak(*told, found.value, found.error, tuple(rows))


def _counted(
    instance: Instance, rule: Demonstrator, horizon: int, runs: int, seed: int, threads: int | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return mean pulls, and in which runs the most-pulled arm is the best, for a rule that gives no values away."""
    own_seed = cell_seed(seed, instance.name, instance, rule, horizon)
    pulls = rule.demonstrate(instance, horizon, runs=runs, seed=own_seed, threads=threads).pulls
    judged = (most_pulled(pulls) & (instance.gaps == 0)).any(axis=1)
    return pulls.mean(axis=0), judged


def _row(
    instance: Instance, arm: int, pulls: float, estimated: float = 0.0, rmse: Measured | None = None,
    worth: Measured | None = None, of_pulls: Measured | None = None,
) -> ArmLeak:  # fmt: skip
    """Lay out one arm; what gives no values away gives none of this one's either."""
    told = (instance.arms[arm], float(instance.means[arm]), float(instance.gaps[arm]), pulls)
    if arm == instance.means.argmax():
        return ArmLeak(*told, estimated, None, None, None, None, None, None)
    if rmse is None or worth is None or of_pulls is None:
        return ArmLeak(*told, 0.0, None, None, 0.0, 0.0, 0.0, 0.0)
    numbers = (each for pair in (rmse, worth, of_pulls) for each in (pair.value, pair.error))
    known = (float(number) if np.isfinite(number) else None for number in numbers)
    return ArmLeak(*told, estimated, *known)


def _measured(replicates: NDArray[np.float64]) -> Measured:
    if np.isfinite(replicates).all():
        return measured(replicates)
    return Measured(float(replicates[0]), float("nan"), len(replicates) - 1)
