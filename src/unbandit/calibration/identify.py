"""`identify` on simulated records: how often it names the rule that made a record, another one, or none."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from unbandit.calibration import settings
from unbandit.calibration.measure import Criterion, Measure, Score, judge, percent
from unbandit.calibration.settings import Sizes, TrialSetting, short, trial_setting
from unbandit.calibration.trials import DECIDING, Trial, Trials
from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.errors import AssumptionWarning, InferenceError, NotIdentifiable
from unbandit.instance import Bernoulli
from unbandit.study.monte_carlo import Share, share
from unbandit.study.taskgrid import describe_rule

RIGHT, WRONG, CANNOT_TELL = "right", "wrong", "cannot tell"
SECONDS = 8.0  # about, of one record


@dataclass(frozen=True, eq=False)
class IdentifyTrials(Trials):
    """Trials of `identify` among some candidates; one row per record."""

    candidates: tuple[Demonstrator, ...] = ()
    particles: int | None = None  # by default as many as `identify` takes
    measure: ClassVar[str] = "identify"
    deciding: ClassVar[tuple[str, ...]] = (
        *DECIDING, "identification", "estimators/arguments.py", "calibration/identify.py"
    )  # fmt: skip
    columns: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("outcome", "verdict", "leading"), pl.String),
        "assured": pl.Float64,
        "failure": pl.String,
    }

    def describe(self) -> dict[str, Any]:
        """Return all that determines the bytes, also the candidates and how much work each record is."""
        candidates = [describe_rule(rule) for rule in self.candidates]
        return super().describe() | {"candidates": candidates, "particles": self.particles}

    def seconds(self, cell: TrialSetting) -> float:
        """Return about how long a record takes."""
        return SECONDS

    def one(self, trial: Trial) -> dict[str, Any]:
        """Return whether the rule that made a record was found; to say that none fits is wrong."""
        from unbandit.identification import identify

        setting = trial.setting
        try:
            with warnings.catch_warnings():  # its outcome is counted instead
                warnings.simplefilter("ignore", AssumptionWarning)
                result = identify(
                    trial.log, self.candidates, prior=setting.prior, sigma=setting.sigma, particles=self.particles,
                    bernoulli=isinstance(setting.noise, Bernoulli), seed=trial.seed, threads=1,
                )  # fmt: skip
        except (InferenceError, NotIdentifiable) as error:
            return dict.fromkeys(self.columns) | {"outcome": [WRONG], "failure": [str(error)]}
        right = result.winner == str(setting.rule)
        outcome = CANNOT_TELL if result.verdict == CANNOT_TELL else RIGHT if right else WRONG
        row = (outcome, result.verdict, result.leading.name, result.assured, None)
        return {name: [value] for name, value in zip(self.columns, row, strict=True)}


@dataclass(frozen=True)
class IdentifyMetrics:
    """Shares of one rule's records by outcome, and what the wrong ones were taken for, how often."""

    setting: TrialSetting
    right: Share
    wrong: Share
    cannot_tell: Share
    taken_for: dict[str, int]


def identify_metrics(setting: TrialSetting, rows: pl.DataFrame) -> IdentifyMetrics:
    """Return what the records of one rule were taken for."""
    right, wrong, neither = (
        share(rows.filter(outcome=outcome).height, rows.height) for outcome in (RIGHT, WRONG, CANNOT_TELL)
    )
    mistaken = rows.filter(outcome=WRONG).select(
        pl.when(pl.col("verdict") == "identified").then("leading").otherwise(pl.lit("none of them")).alias("for")
    )
    counted = mistaken.group_by("for").len().sort("len", "for", descending=[True, False])
    return IdentifyMetrics(setting, right, wrong, neither, dict(counted.iter_rows()))


class Identify(Measure):
    """How often `identify` names the right rule."""

    name = "identify"
    title = "Which rule made a log"
    about = "how often `identify` names the rule that made a log, another one, or none"

    def trials(self, sizes: Sizes) -> Iterator[tuple[str, IdentifyTrials]]:
        """Yield the records of each rule."""
        candidates = tuple(map(parse_rule, settings.CANDIDATES))
        for text in settings.CANDIDATES:
            cell = trial_setting(text, *settings.USUAL_CELL, sizes.runs or settings.RUNS)
            yield text, IdentifyTrials((cell,), sizes.seed, candidates, sizes.particles)

    def metrics(self, cell: TrialSetting, rows: pl.DataFrame) -> IdentifyMetrics:
        """Return what the records of one rule were taken for."""
        return identify_metrics(cell, rows)

    def criteria(self, metrics: Sequence[IdentifyMetrics]) -> list[Criterion]:
        """Return the criteria with their scores, one per rule and one for all together."""
        where = f"`identify` among these rules, means from the prior, {metrics[0].setting.cell}"
        note = " ".join(
            [
                "It is wrong to name another rule, and to say that none of them fits.",
                *(
                    f"`{short(each.setting.rule)}` was taken for {short(name)} {count:,} times."
                    for each in metrics
                    for name, count in each.taken_for.items()
                ),
            ]
        )
        rows = [(short(each.setting.rule), (each.right, each.wrong, each.cannot_tell)) for each in metrics]
        by_outcome = zip(*(shares for _, shares in rows), strict=True)
        together = [share(sum(one.held for one in every), sum(one.runs for one in every)) for every in by_outcome]
        right_scores, wrong_scores = [], []
        for row, (right, wrong, neither) in (*rows, ("all together", together)):
            right_scores.append(Score(row, "right", right, percent(right), judge(right, 0.85)))
            right_scores.append(Score(row, "cannot tell", neither, percent(neither), None))
            wrong_scores.append(Score(row, "wrong", wrong, percent(wrong), judge(wrong, high=0.02)))
        return [
            Criterion("identify, right", f"{where}: right", "at least 85%", "", "made by", scores=right_scores),
            Criterion("identify, wrong", f"{where}: wrong", "at most 2%", note, "made by", scores=wrong_scores),
        ]
