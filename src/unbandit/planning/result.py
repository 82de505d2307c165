"""The answers of `plan` and `leak`, as tables, JSON and figures."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit.formatting import json_number
from unbandit.tables import Finding, as_written_by, check_fields, read_json, read_number, read_whole

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

Numbers = NDArray[np.float64]
Criterion = Literal["interval", "error"]

CRITERIA: dict[str, str] = {"interval": "half the interval's length", "error": "the root-mean-square error"}
"""When a gap counts as known to within d, and what is then at most d."""

PLAN_SCHEMA, LEAK_SCHEMA = "unbandit.plan/1", "unbandit.leak/1"
PLAN_ASKED = ("instance", "rule", "best", "within", "level", "runs", "seed")
LEAK_ASKED = ("instance", "rule", "horizon", "runs", "seed", "reveals", "found", "found_error")


@dataclass(frozen=True)
class Need:
    """What it takes to know one arm's gap; None where there is no number.

    `status` is `reached`, `not reached` at any horizon simulated, or `earlier`: the shortest horizon simulated, which
    `horizon` then is, is enough. Errors are Monte-Carlo standard errors; where the curve jumps between two simulated
    horizons, as when the arm comes to be estimated, `horizon_error` is at least half their distance.
    """

    arm: str
    gap: float  # the true one
    criterion: str  # a key of `CRITERIA`
    status: str
    theory_horizon: float | None  # of the typical run
    theory_regret: float | None
    horizon: float | None  # of the simulated runs
    horizon_error: float | None
    regret: float | None
    regret_error: float | None


@dataclass(frozen=True, eq=False)
class Curves:
    """The curves behind a plan, over simulated horizons, each with its Monte-Carlo error; and those of the typical run.

    Reach and error are (horizons, arms), infinite where they are not known.
    """

    horizons: Numbers
    reach: tuple[Numbers, Numbers]  # median of half the interval's length
    error: tuple[Numbers, Numbers]  # root-mean-square
    regret: tuple[Numbers, Numbers]  # mean
    found: Numbers  # share of the runs that found the best arm
    theory_horizons: Numbers
    theory_reach: Numbers
    theory_error: Numbers
    theory_regret: Numbers


@dataclass(frozen=True, eq=False)
class Plan(Finding):
    """How long a rule must run for each gap to be known to within a distance.

    Attributes
    ----------
    best
        The best arm of the instance.
    instance, rule, within, level, runs, seed
        As given to `plan`.
    arms
        Of the instance.
    needs
        One for each arm but the best, and each criterion.
    curves
        What they were read from.
    notes
        What is worth knowing.
    """

    instance: str
    rule: str
    best: str
    within: float
    level: float
    runs: int
    seed: int
    arms: tuple[str, ...]
    needs: tuple[Need, ...]
    curves: Curves
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<Plan: {self.rule} on {self.instance}, every gap to within {self.within:g}: {self.answer('interval')}>"

    def need(self, arm: object, criterion: Criterion = "interval") -> Need:
        """Return what one arm needs."""
        for need in self.needs:
            if (need.arm, need.criterion) == (str(arm), criterion):
                return need
        raise KeyError(f"{arm!r}, {criterion!r}: expected an arm but the best, {self.best}, and interval or error")

    def longest(self, criterion: Criterion = "interval") -> Need:
        """Return the need that takes longest: all gaps are known by then."""
        asked = [need for need in self.needs if need.criterion == criterion]
        return max(asked, key=lambda need: (need.status == "not reached", need.horizon or 0.0))

    def answer(self, criterion: Criterion = "interval") -> str:
        """Return as a phrase how long all gaps take."""
        need = self.longest(criterion)
        if need.horizon is None:
            return f"not within {self.curves.horizons[-1]:,.0f} rounds"
        about = "at most " if need.status == "earlier" else ""
        return f"{about}{rounded(need.horizon)} rounds at a regret of {amount(need.regret or 0.0)}"

    def to_frame(self) -> polars.DataFrame:
        """Return the needs as a table, one row per arm and criterion."""
        import polars as pl

        kinds = {name: pl.Float64 if name not in ("arm", "criterion", "status") else pl.String
                 for name in Need.__dataclass_fields__}  # fmt: skip
        return pl.DataFrame([asdict(need) for need in self.needs], schema=kinds)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in the form that `--json` prints."""
        curves = self.curves
        (reach, reach_error), (error, error_error), (regret, regret_error) = curves.reach, curves.error, curves.regret
        by_arm = {
            arm: _lists(interval=reach[:, at], interval_error=reach_error[:, at], error=error[:, at],
                        error_error=error_error[:, at])
            for at, arm in enumerate(self.arms)
            if arm != self.best
        }  # fmt: skip
        typical: dict[str, Any] = _lists(horizon=curves.theory_horizons, regret=curves.theory_regret)
        reaches = zip(curves.theory_reach.T, curves.theory_error.T, strict=True)
        typical["arms"] = {
            arm: _lists(interval=reach, error=error) for arm, (reach, error) in zip(self.arms, reaches, strict=True)
        }
        simulated = _lists(regret=regret, regret_error=regret_error, found=curves.found)
        return {
            "schema": PLAN_SCHEMA,
            **{name: getattr(self, name) for name in PLAN_ASKED},
            "arms": [asdict(need) for need in self.needs],
            "curves": {"horizon": curves.horizons.astype(int).tolist(), **simulated, "arms": by_arm},
            "typical_run": typical,
            "notes": list(self.notes),
        }

    @classmethod
    @as_written_by("Plan")
    def from_json(cls, text: str | bytes) -> Plan:
        """Return the plan that `to_json` or `unbandit plan --json` wrote."""
        said = read_whole(text, PLAN_SCHEMA, "typical_run", "Plan")
        check_fields(said, ("within", "level", "runs", "seed"), ("instance", "rule", "best"))
        simulated, typical = said["curves"], said["typical_run"]
        arms, reaches = tuple(typical["arms"]), list(typical["arms"].values())
        none = {
            name: [None] * len(simulated["horizon"]) for name in ("interval", "interval_error", "error", "error_error")
        }
        rows = [simulated["arms"].get(arm, none) for arm in arms]  # the best arm has no gap
        curves = Curves(
            np.array(simulated["horizon"], np.float64),
            (_by_arm(rows, "interval"), _by_arm(rows, "interval_error", math.nan)),
            (_by_arm(rows, "error"), _by_arm(rows, "error_error", math.nan)),
            (_numbers(simulated["regret"]), _numbers(simulated["regret_error"], math.nan)),
            _numbers(simulated["found"]),
            _numbers(typical["horizon"]), _by_arm(reaches, "interval"), _by_arm(reaches, "error"),
            _numbers(typical["regret"]),
        )  # fmt: skip
        needs = tuple(Need(**need) for need in said["arms"])
        return cls(
            **{name: said[name] for name in PLAN_ASKED}, arms=arms, needs=needs, curves=curves, notes=said["notes"]
        )

    def plot(self, *, ax: Any = None) -> Any:
        """Draw what is known over the horizon, and what it costs.

        On `ax`, up to three axes, which are then returned; default a new figure.
        """
        from unbandit.plots.plan import draw_plan

        return draw_plan(self, ax=ax)


@dataclass(frozen=True)
class ArmLeak:
    """What the record reveals about one arm; None where there is no number. Errors are Monte-Carlo standard errors."""

    arm: str
    mean: float
    gap: float
    pulls: float  # `n_i`, the mean over runs
    estimated: float  # `p_i`, the share of runs in which the arm's gap has an estimate
    rmse: float | None  # root of the mean squared error of these estimates
    rmse_error: float | None
    equivalent: float | None  # `m_i`, equivalent observed rewards; 0 if no values are revealed, None for the best arm
    equivalent_error: float | None
    share: float | None  # `m_i / n_i`
    share_error: float | None


@dataclass(frozen=True, eq=False)
class Leak(Finding):
    """How much the record of a rule reveals.

    Attributes
    ----------
    instance, rule, horizon, runs, seed
        As given to `leak`.
    reveals
        What the rule's actions reveal: `values`, only the `best` arm, or `nothing`.
    found
        How often the record shows the best arm; None where a rule reveals nothing.
    found_error
        Its Monte-Carlo error.
    arms
        One row per arm.
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

    def to_frame(self) -> polars.DataFrame:
        """Return the answer as a table, one row per arm."""
        import polars as pl

        kinds = {name: pl.Float64 if name != "arm" else pl.String for name in ArmLeak.__dataclass_fields__}
        return pl.DataFrame([asdict(row) for row in self.arms], schema=kinds)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer in the form that `--json` prints."""
        named = {name: getattr(self, name) for name in LEAK_ASKED}
        return {"schema": LEAK_SCHEMA, **named, "arms": [asdict(row) for row in self.arms]}

    @classmethod
    @as_written_by("Leak")
    def from_json(cls, text: str | bytes) -> Leak:
        """Return the answer that `to_json` or `unbandit leak --json` wrote."""
        said = read_json(text, LEAK_SCHEMA)
        check_fields(said, ("horizon", "runs", "seed"), ("instance", "rule", "reveals"))
        rows = tuple(ArmLeak(**row) for row in said["arms"])
        return cls(**{name: said[name] for name in LEAK_ASKED}, arms=rows)

    def plot(self, *, ax: Axes | None = None) -> Any:
        """Draw equivalent rewards beside pulls, per arm; on `ax`, which is then returned, or on a new figure."""
        from unbandit.plots.plan import draw_leak

        return draw_leak(self, ax=ax)


def rounded(horizon: float) -> str:
    """Write a horizon to three significant digits."""
    return f"{horizon:.3g}" if horizon >= 1e9 else f"{float(f'{horizon:.3g}'):,.0f}"


def amount(value: float) -> str:
    """Write a regret: whole where it is large, else to three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _numbers(values: list[float | None], missing: float = math.inf) -> Numbers:
    """Read a curve: infinite where a number is not known; an error is then no number."""
    return np.array([read_number(value, missing) for value in values], np.float64)


def _by_arm(rows: list[dict[str, list[float | None]]], name: str, missing: float = math.inf) -> Numbers:
    """Read the curves of all arms: (horizons, arms)."""
    return np.stack([_numbers(row[name], missing) for row in rows], axis=1)


def _lists(**arrays: Numbers) -> dict[str, list[float | None]]:
    return {name: [json_number(value) for value in values] for name, values in arrays.items()}
