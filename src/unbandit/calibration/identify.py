"""`identify` on simulated records: how often it names the rule that made a record, another one, or none.

Every record is played with other parameters, which `identify` is not told: drawn between the smallest and the largest
of the rule's grid. All rules that `identify` proposes are candidates. Some records are made as other programs do:
with ties broken at random, with arms opened in an order of their own, or without an opening. Others are made with the
parameters that papers and packages have: many of those that are drawn explore so little that a record shows nothing.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.calibration import settings
from unbandit.calibration.measure import Criterion, Measure, Score, averaged, judge, percent
from unbandit.calibration.settings import Sizes, TrialSetting, trial_setting
from unbandit.calibration.trials import DECIDING, Trial, Trials, play
from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.errors import AssumptionWarning, InferenceError, NotIdentifiable
from unbandit.formatting import counted
from unbandit.instance import Bernoulli, Instance, Noise
from unbandit.log import ActionLog
from unbandit.study.monte_carlo import Measured, Share, measured, replicates, share
from unbandit.study.taskgrid import Task

RIGHT, WRONG, CANNOT_TELL = "right", "wrong", "cannot tell"
SECONDS = 8.0  # about, of one record
MOST_WRONG = 0.02  # share of records of which another rule may be named
GOALS: Mapping[int, float] = {2: 0.75, 5: 0.9}  # share of records whose rule is named, by the number of arms


@dataclass(frozen=True)
class ForeignSetting(TrialSetting):
    """A rule as another program plays it: its arms stand in an order of their own, drawn for every run."""

    way: str = ""  # in which it differs

    @property
    def described(self) -> dict[str, object]:
        own = super().described
        return own | {"name": f"{own['name']}, {self.way}", "way": self.way}

    def seed(self, seed: int, *purpose: object) -> int:
        """Derive a seed from what is played, except the number of runs, and from the seed of the calibration."""
        return super().seed(seed, self.way, *purpose)


class UsualSetting(TrialSetting):
    """A rule with its usual parameters, the same in every run; `identify` is not told them."""

    @property
    def described(self) -> dict[str, object]:
        own = super().described
        return own | {"name": f"{own['name']}, usual parameters", "parameters": "usual"}

    def seed(self, seed: int, *purpose: object) -> int:
        """Derive a seed from what is played, except the number of runs, and from the seed of the calibration."""
        return super().seed(seed, "usual", *purpose)


def row_of(setting: TrialSetting) -> str:
    """Return the row of a table that a cell stands in."""
    return f"{setting.rule.name}, {setting.way}" if isinstance(setting, ForeignSetting) else setting.rule.name


def reordered(trial: Trial, order: NDArray[np.int64]) -> Trial:
    """Return a trial whose arms have other names: arm `a` is called `order[a]`, so that arms open in that order."""
    names, back = trial.log.arms, np.argsort(order)
    log = ActionLog.from_codes(order[trial.log.demonstration(0)], names)
    instance = Instance(trial.instance.means[back], trial.instance.noise, arms=trial.instance.arms)
    return replace(trial, instance=instance, log=log, sums=trial.sums[back])


def drawn_rule(rule: Demonstrator, noise: Noise, generator: np.random.Generator) -> Demonstrator:
    """Draw a rule's parameters: positive numbers between the ends of its grid (or of `DRAWN`), all else from the grid.

    What is not in the grid stays as it was given.

    >>> from unbandit import MOSS, Gaussian
    >>> 0.5 <= drawn_rule(MOSS(), Gaussian(0.5), np.random.default_rng(1)).scale <= 2.0
    True
    """
    drawn: dict[str, Any] = {}
    for name, values in {**type(rule).grid(noise), **settings.DRAWN.get(rule.name, {})}.items():
        if len(values) > 1 and all(isinstance(each, float) and each > 0 for each in values):
            drawn[name] = math.exp(generator.uniform(math.log(min(values)), math.log(max(values))))
        else:
            drawn[name] = values[int(generator.integers(len(values)))]
    return type(rule)(**(rule.model_dump(include=rule.model_fields_set) | drawn))


@dataclass(frozen=True, eq=False)
class IdentifyTrials(Trials):
    """Trials of `identify` among all candidates, with parameters that it is not told; one row per record."""

    particles: int | None = None  # by default as many as `identify` takes
    among: tuple[str, ...] | None = None  # candidates; by default all that `identify` proposes
    measure: ClassVar[str] = "identify"
    deciding: ClassVar[tuple[str, ...]] = (
        *DECIDING, "identification", "estimators/arguments.py", "calibration/identify.py"
    )  # fmt: skip
    rounds_of_a_task: ClassVar[int] = 3_000
    columns: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("played", "outcome", "verdict", "leading", "left"), pl.String),
        **dict.fromkeys(("assured", "largest"), pl.Float64),
        **dict.fromkeys(("gaps", "held"), pl.Int64),
        "failure": pl.String,
    }

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"particles": self.particles, "among": self.among}

    def seconds(self, cell: TrialSetting) -> float:
        return SECONDS

    def rows(self, task: Task) -> pl.DataFrame:
        """Make the trials of a task, each with other parameters."""
        setting = self.cells[task.cell]
        tables = []
        for run in range(task.first_run, task.last_run):
            generator = np.random.default_rng([setting.seed(self.seed, "parameters"), run])
            usual = isinstance(setting, UsualSetting)
            drawn = setting if usual else replace(setting, rule=drawn_rule(setting.rule, setting.noise, generator))
            cell = {"rule": str(setting.rule), "arms": setting.arms, "horizon": setting.horizon, "run": run}
            schema = {"rule": pl.String, "arms": pl.Int64, "horizon": pl.Int64, "run": pl.Int64, **self.columns}
            trial = play(drawn, self.seed, run)
            if isinstance(setting, ForeignSetting):
                trial = reordered(trial, generator.permutation(setting.arms))
            tables.append(pl.DataFrame(cell | self.one(trial), schema=schema))
        return pl.concat(tables, rechunk=True)

    def one(self, trial: Trial) -> dict[str, Any]:
        """Return whether the rule that made a record was found.

        It is wrong to name another one, to say that none fits, and to leave it out of those that cannot be told apart.
        A rule of another name that is the same one is right (`Contender.twins`).
        """
        from unbandit.identification import identify

        setting = trial.setting
        played = {"played": [str(setting.rule)]}
        try:
            with warnings.catch_warnings():  # its outcome is counted instead
                warnings.simplefilter("ignore", AssumptionWarning)
                result = identify(
                    trial.log, self.among, prior=setting.prior, sigma=setting.sigma, particles=self.particles,
                    bernoulli=isinstance(setting.noise, Bernoulli), seed=trial.seed, threads=1,
                )  # fmt: skip
        except (InferenceError, NotIdentifiable) as error:
            return dict.fromkeys(self.columns) | played | {"outcome": [WRONG], "failure": [str(error)]}
        rule = setting.rule
        same = {rule.name, *(each.name for each in result.candidates if rule in each.twins)}
        undecided = result.verdict == CANNOT_TELL and same.intersection(result.left)
        outcome = CANNOT_TELL if undecided else RIGHT if result.winner in same else WRONG
        gaps = held = 0
        table = result.value_table()
        if table is not None:
            truth = dict(zip(trial.instance.arms, trial.instance.gaps.tolist(), strict=True))
            others = [row for row in table.to_dicts() if truth[row["arm"]] > 0 and row["pulls"]]
            gaps, held = len(others), sum(row["gap_low"] <= truth[row["arm"]] <= row["gap_high"] for row in others)
        largest = max(each.probability for each in result.candidates)
        left = ", ".join(result.left)
        row = (outcome, result.verdict, result.leading.name, left, result.assured, largest, gaps, held, None)
        names = [name for name in self.columns if name != "played"]
        return played | {name: [value] for name, value in zip(names, row, strict=True)}


@dataclass(frozen=True)
class IdentifyMetrics:
    """Shares of one rule's records by outcome, and what the wrong ones were taken for, how often."""

    setting: TrialSetting
    right: Share
    wrong: Share
    cannot_tell: Share
    taken_for: dict[str, int]
    gaps: Share | None = None  # how often intervals of gaps held, averaged over the rules that were left
    reachable: Measured | None = None  # average probability of the most probable rule
    largest: list[float] | None = None  # that probability of each record that has one


def identify_metrics(setting: TrialSetting, rows: pl.DataFrame) -> IdentifyMetrics:
    """Return what the records of one rule were taken for."""
    right, wrong, neither = (
        share(rows.filter(outcome=outcome).height, rows.height) for outcome in (RIGHT, WRONG, CANNOT_TELL)
    )
    named, several = pl.col("verdict") == "identified", pl.col("verdict") == CANNOT_TELL
    taken = pl.when(named).then("leading").when(several).then(pl.lit("one of several others"))
    mistaken = rows.filter(outcome=WRONG).select(taken.otherwise(pl.lit("none of them")).alias("for"))
    counted = mistaken.group_by("for").len().sort("len", "for", descending=[True, False])
    held = share(int(rows["held"].sum()), int(rows["gaps"].sum())) if "gaps" in rows.columns else None
    most = rows["largest"].drop_nulls().to_numpy() if "largest" in rows.columns else np.zeros(0)
    reachable = measured(replicates(np.mean, most)) if most.size > 1 else None
    listed = sorted(np.round(most, 6).tolist()) if most.size else None
    return IdentifyMetrics(setting, right, wrong, neither, dict(counted.iter_rows()), held, reachable, listed)


def most_named(largest: NDArray[np.float64], wrong: float = MOST_WRONG) -> float:
    """Return the share of records whose rule can be named rightly if few of all records may be named wrongly.

    Whoever names a rule of probability `p` is wrong with probability `1 - p`. So the most are right, for so many that
    are wrong, if rules are named from the largest probability downwards until that is used up.

    >>> round(most_named(np.array([1.0, 1.0, 0.98, 0.9, 0.5]), wrong=0.02), 3)
    0.596
    """
    ordered = np.sort(largest)[::-1]
    named = np.cumsum(1 - ordered) <= wrong * ordered.size + 1e-9
    return float(ordered[named].sum() / max(ordered.size, 1))


class Identify(Measure):
    """How often `identify` names the right rule."""

    name = "identify"
    title = "Which rule made a log"
    about = "how often `identify` names the rule that made a log, another one, or none"
    metrics_type = IdentifyMetrics
    metrics = staticmethod(identify_metrics)

    def trials(self, sizes: Sizes) -> Iterator[tuple[str, IdentifyTrials]]:
        for name in settings.FAMILIES:
            text = f"{name}:noise=gaussian" if name in ("klucb", "thompson") else name
            cells = [
                trial_setting(text, *cell, sizes.runs or settings.FAMILY_RUNS) for cell in settings.FAMILY_CELLS
            ]  # fmt: skip
            yield name, IdentifyTrials(tuple(cells), sizes.seed, sizes.particles, settings.FAMILY_CANDIDATES)
        for way, text, successes in settings.FOREIGN:
            prior, noise = (settings.BETA, Bernoulli()) if successes else (settings.NORMAL, settings.NOISE)
            own = parse_rule(text)
            foreign = [
                ForeignSetting(own, *cell, sizes.runs or settings.FAMILY_RUNS, prior, noise, way)
                for cell in settings.FAMILY_CELLS
            ]
            trials = IdentifyTrials(tuple(foreign), sizes.seed, sizes.particles, settings.FAMILY_CANDIDATES)
            yield f"{own.name} on {way}", trials
        for text in settings.USUAL:
            played = [trial_setting(text, *cell, sizes.runs or settings.USUAL_RUNS) for cell in settings.FAMILY_CELLS]
            usual = tuple(UsualSetting(**vars(each)) for each in played)
            trials = IdentifyTrials(usual, sizes.seed, sizes.particles, settings.FAMILY_CANDIDATES)
            yield f"{usual[0].rule.name} on usual parameters", trials

    def criteria(self, metrics: Sequence[IdentifyMetrics]) -> list[Criterion]:
        where = "`identify` among all rules, parameters unknown, means from the prior"
        found = list[Criterion]()
        for key, title in (("identify", where), ("identify, usual", f"{where}; rules with their usual parameters")):
            own = [each for each in metrics if isinstance(each.setting, UsualSetting) == (title != where)]
            found += self._criteria(own, key, title) if own else ()
        return found

    @staticmethod
    def _criteria(metrics: Sequence[IdentifyMetrics], key: str, where: str) -> list[Criterion]:
        mistaken = [
            f"`{row_of(each.setting)}` ({each.setting.cell}) was taken for {name} {counted(count, 'time')}."
            for each in metrics
            for name, count in each.taken_for.items()
        ]
        note = " ".join(
            [
                "It is wrong to name another rule, to say that none of them fits, and to leave the right one out.",
                "Gaussian KL-UCB is UCB or UCB1 with a certain parameter, unless it has both ln t and ln ln t: naming "
                "those is right.",
                *mistaken,
            ]
        )
        right, wrong, held = list[Score](), list[Score](), list[Score]()
        for arms in dict.fromkeys(each.setting.arms for each in metrics):
            own = [each for each in metrics if each.setting.arms == arms]
            cell, rows = own[0].setting.cell, [(row_of(each.setting), (each.right, each.wrong)) for each in own]
            together = [
                share(sum(pair[at].held for _, pair in rows), sum(pair[at].runs for _, pair in rows)) for at in (0, 1)
            ]  # fmt: skip
            for row, (named, mistakes) in (*rows, ("all together", together)):
                goal = GOALS.get(arms)
                judged = None if goal is None or row != "all together" else judge(named, goal)
                right.append(Score(row, cell, named, percent(named), judged))
                judged = judge(mistakes, high=0.02) if row == "all together" else None
                wrong.append(Score(row, cell, mistakes, percent(mistakes), judged))
            held += [
                Score(row_of(each.setting), cell, each.gaps, percent(each.gaps), judge(each.gaps, 0.92, 0.98))
                for each in own
                if each.gaps is not None and each.gaps.runs
            ]
        goals = " and ".join(f"at least {goal:.0%} of K={arms}" for arms, goal in GOALS.items())
        found = [
            Criterion(f"{key}, right", f"{where}: right", goals, "", "made by", scores=right),
            Criterion(f"{key}, wrong", f"{where}: wrong", "at most 2%", note, "made by", scores=wrong),
        ]
        best = [
            Score(row_of(each.setting), each.setting.cell, each.reachable, percent(each.reachable), None)
            for each in metrics
            if each.reachable is not None
        ]
        most = list[Score]()
        for arms in dict.fromkeys(each.setting.arms for each in metrics):
            own = [each for each in metrics if each.setting.arms == arms]
            cell, shares = own[0].setting.cell, [each.reachable for each in own if each.reachable is not None]
            if shares:
                best.append(Score("all together", cell, averaged(shares), percent(averaged(shares)), None))
            records = sum(each.right.runs for each in own)
            known = np.array([one for each in own for one in each.largest or ()])
            if all(each.largest is not None for each in own) and records > 1:  # where there is none, nothing is named
                known = np.concatenate([known, np.zeros(records - known.size)])
                bound = measured(replicates(most_named, np.random.default_rng(0).permutation(known)))
                most.append(Score("all together", cell, bound, percent(bound), None))
        if best:
            measure = "average probability of the most probable rule"
            about = (
                "Whoever always names the most probable rule is right that often on average over the rules, if rules "
                "and parameters are as likely as `identify` takes them to be. No method is right more often."
            )
            found.append(Criterion(f"{key}, reachable", measure, "no goal", about, "made by", scores=best))
        if most:
            measure = f"most that can be right with at most {MOST_WRONG:.0%} wrong"
            about = (
                "Records are named from the largest probability downwards, until the sum of what is missing to 1 is "
                f"{MOST_WRONG:.0%} of all records. If rules and parameters are as likely as `identify` takes them to "
                f"be, nobody is right more often who is wrong that seldom. The goals are {goals}."
            )
            found.append(Criterion(f"{key}, at most", measure, "no goal", about, "made by", scores=most))
        if held:
            measure = (
                "values of `identify`: gaps within their 95% intervals, averaged over the rules that are still probable"
            )
            measure += "" if key == "identify" else "; rules with their usual parameters"
            found.append(Criterion(f"{key}, gaps", measure, "92% to 98%", "", "made by", scores=held))
        return found
