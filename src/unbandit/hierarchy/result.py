"""The answer of `population`: parameters of the population and of every participant, as tables, JSON and a figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import Audience, Notice, python_option
from unbandit.fit import Check
from unbandit.formatting import json_number
from unbandit.hierarchy.levels import PopulationDraws
from unbandit.hierarchy.likelihood import FreeParameter, Numbers, smallest_spreads
from unbandit.inference import Prior
from unbandit.inference.prior import parse_prior
from unbandit.instance import Gaussian, Noise, noise_with
from unbandit.tables import Finding, as_written_by, read_notices, read_number, read_whole, with_draws

if TYPE_CHECKING:
    import polars

SCHEMA = "unbandit.population/1"
DRAWN = ("centre", "spread", "people", "alone")  # of `PopulationDraws`
AT_THE_END = 0.05  # of an interval: so near the smallest spread that is resolved its lower end shows none


@dataclass(frozen=True)
class PopulationParameter:
    """A parameter in the population: that of a typical participant, and how much participants differ.

    `value` is the population's median. `spread` is a standard deviation on the parameter's `scale`: of the log odds for
    a number between 0 and 1, of the logarithm for other positive numbers. Where participants may differ by less than
    can be resolved (`spread_verdict` is `bounded`), there is no spread, only a bound: from 0 to `spread_high`.
    `two_thirds_low` to `two_thirds_high` says the same in the parameter's own unit: about two thirds of the
    participants lie there, within one spread of the typical one. Of a spread that is only bounded it is the widest
    such range.
    """

    parameter: str
    value: float
    low: float
    high: float
    spread: float | None
    spread_low: float
    spread_high: float
    spread_verdict: str  # "estimated" or "bounded"
    scale: str
    two_thirds_low: float
    two_thirds_high: float
    shrinkage: float  # by how much, on average, participants are nearer to the centre than each alone would be: 0 to 1

    @property
    def said_of_spread(self) -> tuple[str, str]:
        """Return the spread and its interval as text."""
        if self.spread is None:
            return "-", f"below {self.spread_high:.2g}"
        return f"{self.spread:.2g}", f"{self.spread_low:.2g} to {self.spread_high:.2g}"

    @property
    def said_of_two_thirds(self) -> str:
        """Return where two thirds of the participants lie, in the parameter's own unit, as text."""
        at_most = "within " if self.spread is None else ""
        return f"{at_most}{self.two_thirds_low:.2g} to {self.two_thirds_high:.2g}"


@dataclass(frozen=True, eq=False, repr=False)
class Population(Finding):
    """The parameters of a rule in a population, and of every participant in it.

    Attributes
    ----------
    rule
        The rule with what all participants have in common.
    participants
        Their names.
    rounds
        How many choices each participant made.
    parameters
        Those that differ between participants.
    level
        Of all intervals.
    prior, seed
        As for `population`.
    noise
        What was assumed about rewards.
    rewards_known
        Whether the log has every reward, so that only the parameters had to be found.
    draws
        Draws of the population and of all participants, on the parameters' scales.
    arms
        The arms' names.
    pulls
        How often each participant chose each arm: (participants, arms).
    means
        The arms' means, for each participant: (participants, arms, 3), the ends of an interval and the expectation
        between them; NaN where an arm was never chosen. The same for everybody, where they are shared.
    probability_best
        That each arm is the best one of a participant: (participants, arms).
    check
        Whether the rule, with the population that was fitted, would have made this log.
    warnings
        What may be wrong.
    notes
        What is worth knowing.
    """

    rule: str
    participants: tuple[str, ...]
    rounds: NDArray[np.int64]
    parameters: tuple[FreeParameter, ...]
    level: float
    prior: Prior
    noise: Noise
    seed: int
    rewards_known: bool
    draws: PopulationDraws
    arms: tuple[str, ...]
    pulls: NDArray[np.int64]
    means: Numbers
    probability_best: Numbers
    check: Check
    warnings: tuple[Notice, ...] = field(default=())
    notes: tuple[Notice, ...] = field(default=())

    def __repr__(self) -> str:
        typical = ", ".join(f"{each.parameter} {each.value:.3g}" for each in self.population)
        return f"<Population: {len(self.participants)} participants, {self.rule}, typical {typical}>"

    def _quantiles(self, values: Numbers) -> Numbers:
        """Return the lower end, the median and the upper end of draws: (3, ...)."""
        return np.quantile(values, [0.5 - self.level / 2, 0.5, 0.5 + self.level / 2], axis=0)

    @cached_property
    def population(self) -> tuple[PopulationParameter, ...]:
        """Return each parameter in the population."""
        centre, spread = self._quantiles(self.draws.centre), self._quantiles(self.draws.spread)
        together, alone = np.median(self.draws.people, axis=0), np.median(self.draws.alone, axis=0)
        rows = []
        for at, (each, smallest) in enumerate(zip(self.parameters, smallest_spreads(self.parameters), strict=True)):
            off = alone[:, at] - alone[:, at].mean()
            slope = float(off @ together[:, at] / max(float(off @ off), 1e-12))
            low, middle, high = (float(each.value(end)) for end in centre[:, at])
            least, usual, most = spread[:, at].tolist()
            is_open = least - smallest < AT_THE_END * (most - smallest)
            reach = np.array([-1.0, 1.0]) * (most if is_open else usual)
            nearest, furthest = each.value(centre[1, at] + reach).tolist()
            rows.append(
                PopulationParameter(
                    each.name, middle, low, high, spread=None if is_open else usual,
                    spread_low=0.0 if is_open else least, spread_high=most,
                    spread_verdict="bounded" if is_open else "estimated", scale=each.scale,
                    two_thirds_low=nearest, two_thirds_high=furthest, shrinkage=min(max(1 - slope, 0.0), 1.0),
                )
            )  # fmt: skip
        return tuple(rows)

    def intervals(self, parameter: int, *, alone: bool = False) -> Numbers:
        """Return lower end, median and upper end of every participant's parameter: (3, participants).

        `alone` is what each participant's choices say without those of the others.
        """
        draws = self.draws.alone if alone else self.draws.people
        return self.parameters[parameter].value(self._quantiles(draws[:, :, parameter]))

    def to_frame(self) -> polars.DataFrame:
        """Return a table with a row for each participant and parameter: pooled, and from its choices alone."""
        import polars as pl

        tables = []
        for at, each in enumerate(self.parameters):
            low, value, high = self.intervals(at)
            alone_low, alone, alone_high = self.intervals(at, alone=True)
            columns = {
                "participant": list(self.participants), "rounds": self.rounds,
                "parameter": [each.name] * len(self.participants), "value": value, "low": low, "high": high,
                "alone": alone, "alone_low": alone_low, "alone_high": alone_high,
            }  # fmt: skip
            tables.append(pl.DataFrame(columns))
        return pl.concat(tables)

    @property
    def shared(self) -> bool:
        """Return whether all participants share the arms' values."""
        return self.draws.values is not None

    @cached_property
    def values(self) -> polars.DataFrame:
        """Return a table with a row for each participant and arm: what the arm was worth to that participant.

        Where values are shared, all participants have the same, and differ in pulls alone.
        """
        import polars as pl

        people, arms = self.pulls.shape
        low, mean, high = (self.means[:, :, at].reshape(-1) for at in range(3))
        columns = {
            "participant": np.repeat(np.array(self.participants, object), arms).tolist(),
            "arm": list(self.arms) * people, "pulls": self.pulls.reshape(-1),
            "probability_best": self.probability_best.reshape(-1), "mean": mean, "mean_low": low, "mean_high": high,
        }  # fmt: skip
        return pl.DataFrame(columns, nan_to_null=True)

    @cached_property
    def arm_summary(self) -> polars.DataFrame:
        """Return a table with a row for each arm over all participants; the most probably best one comes first.

        `probability_best` is how probable it is that the arm is a participant's best one, averaged over participants.
        The mean is averaged likewise over those who pulled the arm; `mean_lowest` and `mean_highest` are theirs.
        Where values are shared, there is one of each, and `mean_low` and `mean_high` are the ends of its interval.
        """
        import polars as pl

        mean = pl.col("mean")
        if self.shared:
            once = [pl.col(name).first() for name in ("probability_best", "mean", "mean_low", "mean_high")]
            table = self.values.group_by("arm", maintain_order=True).agg(pl.col("pulls").sum(), *once)
            return table.sort("probability_best", descending=True, nulls_last=True, maintain_order=True)
        table = self.values.group_by("arm", maintain_order=True).agg(
            pl.col("pulls").sum(), pl.col("probability_best").mean(), mean.mean(), mean.min().alias("mean_lowest"),
            mean.max().alias("mean_highest"),
        )  # fmt: skip
        return table.sort("probability_best", descending=True, nulls_last=True, maintain_order=True)

    def to_dict(self, audience: Audience = python_option) -> dict[str, Any]:
        """Return the answer in the form that `--json` prints; null where there is no number."""
        by_person: list[dict[str, Any]] = [
            {"participant": name, "rounds": int(rounds), "parameters": [], "arms": []}
            for name, rounds in zip(self.participants, self.rounds, strict=True)
        ]
        places = {name: at for at, name in enumerate(self.participants)}
        for name, rows in (("parameters", self.to_frame().drop("rounds")), ("arms", self.values)):
            for row in rows.to_dicts():
                by_person[places[row.pop("participant")]][name].append(row)
        return {
            "schema": SCHEMA,
            "rule": self.rule,
            "level": self.level,
            "sigma": self.noise.sigma if isinstance(self.noise, Gaussian) else None,
            "prior": str(self.prior),
            "seed": self.seed,
            "values": "shared" if self.shared else "own",
            "rewards_known": self.rewards_known,
            "effective_size": json_number(self.draws.effective_size),
            "check": self.check.to_dict(),
            "population": [vars(each) for each in self.population],
            "arms": self.arm_summary.to_dicts(),
            "participants": by_person,
            "warnings": [notice.to_dict(audience) for notice in self.warnings],
            "notes": [notice.to_dict(audience) for notice in self.notes],
        }

    def to_json(self) -> str:
        """Return the answer as JSON text, with all draws, from which `from_json` makes it again."""
        draws = {name: getattr(self.draws, name).tolist() for name in DRAWN}
        if self.draws.values is not None:
            draws["values"] = self.draws.values.tolist()
        about = {"units": [each.unit for each in self.parameters], "log_evidence": json_number(self.draws.log_evidence)}
        return with_draws(self.to_dict(), **about, draws=draws)

    @classmethod
    @as_written_by("Population")
    def from_json(cls, text: str | bytes) -> Population:
        """Return the answer that `to_json` wrote; refuses JSON of the command line, which has no draws."""
        said = read_whole(text, SCHEMA, "draws", "Population")
        people, drawn = said["participants"], said["draws"]
        draws = {
            name: np.array(drawn[name], np.float64) for name in (*DRAWN, *(["values"] if "values" in drawn else []))
        }
        size, evidence = (read_number(said[name]) for name in ("effective_size", "log_evidence"))

        def by_arm(name: str) -> Numbers:
            return np.array([[row[name] for row in each["arms"]] for each in people], np.float64)  # NaN for null

        return cls(
            said["rule"], tuple(each["participant"] for each in people), np.array([each["rounds"] for each in people]),
            tuple(
                FreeParameter(each["parameter"], each["scale"], unit)
                for each, unit in zip(said["population"], said["units"], strict=True)
            ),
            said["level"], parse_prior(said["prior"]),
            noise_with(said["sigma"]), said["seed"], said["rewards_known"],
            PopulationDraws(**draws, effective_size=size, log_evidence=evidence),
            tuple(row["arm"] for row in people[0]["arms"]), by_arm("pulls").astype(np.int64),
            np.stack([by_arm(name) for name in ("mean_low", "mean", "mean_high")], axis=-1),
            by_arm("probability_best"), Check.from_dict(said["check"]),
            read_notices(said["warnings"]), read_notices(said["notes"]),
        )  # fmt: skip

    def summary(self) -> polars.DataFrame:
        """Return one row per parameter: that of a typical participant, and how much participants differ."""
        import polars as pl

        return pl.DataFrame([vars(each) for each in self.population])

    def plot(self, *, ax: Any = None) -> Any:
        """Draw every participant's parameters on one axis each: pooled, alone, and the population (`plots.forest`).

        On `ax`, one axes per parameter, which are then returned; default a new figure.
        """
        from unbandit.plots.forest import forest

        return forest(self, ax=ax)
