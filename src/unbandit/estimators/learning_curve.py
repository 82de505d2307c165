"""The learning curve of an estimate: the same estimate on ever more rounds of the log."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator, RandomisedRule, parse_rule
from unbandit.errors import AssumptionWarning, NotIdentifiable, ParameterError
from unbandit.estimators.api import estimate
from unbandit.estimators.arguments import DRAWING, as_log, usable_method
from unbandit.estimators.procedures import Answer, check_comparable
from unbandit.log import ActionLog
from unbandit.result import Columns, Estimate, Quantity, shown_quantity, shown_truth
from unbandit.tables import Finding, as_written_by, read_whole

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

SCHEMA = "unbandit.learning-curve/1"


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve(Finding):
    """Estimates from the first rounds of a log, from more of them, and from all.

    Attributes
    ----------
    rounds
        After how many rounds each estimate was made.
    columns
        The numbers, as arrays of (rounds, arms).
    answer
        The estimate from the whole log, which the last row repeats.
    """

    rule: str
    method: str
    arms: tuple[str, ...]
    demonstration: str
    rounds: NDArray[np.int64]
    columns: Columns
    answer: Estimate

    def __repr__(self) -> str:
        first, last = self.rounds[0], self.rounds[-1]
        return (
            f"<LearningCurve: {len(self.arms)} arms, {self.rounds.size} estimates after {first:,} to {last:,} rounds>"
        )

    @property
    def quantity(self) -> Quantity:
        """Return what is known of the arms: their means, else their gaps, else ratios of gaps."""
        return shown_quantity(self.answer)

    def to_frame(self) -> polars.DataFrame:
        """Return a table, one row per number of rounds and arm."""
        return self.columns.frame(self.arms, {"rounds": self.rounds})

    def summary(self) -> polars.DataFrame:
        """Return the estimate from the whole log, briefly."""
        return self.answer.summary()

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates, ready for JSON: the rows of the table, and the answer from the whole log."""
        rows = self.to_frame().to_dicts()
        return {"schema": SCHEMA, "demonstration": self.demonstration, "rows": rows, "answer": self.answer.to_dict()}

    @classmethod
    @as_written_by("LearningCurve")
    def from_json(cls, text: str | bytes) -> LearningCurve:
        """Return the learning curve that `to_json` wrote."""
        said = read_whole(text, SCHEMA, "answer", "LearningCurve")
        answer, rows = Estimate.from_dict(said["answer"]), said["rows"]
        rounds = np.array([row["rounds"] for row in rows[:: len(answer.arms)]], np.int64)
        columns = Columns.read(rows, (rounds.size, len(answer.arms)))
        return cls(answer.rule, answer.method, answer.arms, said["demonstration"], rounds, columns, answer)

    def plot(self, *, truth: Mapping[str, float] | None = None, ax: Axes | None = None) -> Any:
        """Draw the estimates of up to eight arms as the log grew, with the true mean of each where it is known.

        Where gaps are shown, means are drawn as gaps to the best of them. On `ax`, which is then returned; default on a
        new figure.
        """
        from unbandit import plots

        return plots.learning_curve(self, truth=shown_truth(truth, self.quantity, self.answer), ax=ax)


def learning_curve(
    log: ActionLog | str | os.PathLike[str] | Any, rule: Demonstrator | str, *, demonstration: object = None,
    points: int = 24, **options: Any,
) -> LearningCurve:  # fmt: skip
    """Estimate from the first rounds of a log, then from more of them, up to all.

    The rule keeps its horizon throughout: it is the record that grows, not the experiment.

    Parameters
    ----------
    log, rule
        As for `estimate`.
    demonstration
        The name of the one to take from a log of several; by default the first.
    points
        How many estimates at most, at numbers of rounds spaced by logarithm.
    options
        Of `estimate`; methods that draw random numbers are refused, for they would take as long each time.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.UCB(alpha=0.25).demonstrate(ub.Instance([1.0, 0.5]), horizon=5_000, seed=7)
    >>> growth = ub.learning_curve(log, "ucb:alpha=0.25", sigma=1.0, points=3)
    >>> growth.rounds.tolist(), growth.columns.verdict[:, 1].tolist()
    ([10, 224, 5000], [1, 1, 1])
    """
    record = as_log(log, "learning curve")
    assumed = parse_rule(rule).for_arms(len(record.arms))
    _check(record, assumed, points, options)
    which = checks.position("demonstration", demonstration, record.demonstrations)
    whole, name = record.select(which), record.demonstrations[which]
    length = int(whole.lengths[0])
    options = options | {"horizon": length if options.get("horizon") is None else options["horizon"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        answer = estimate(whole, rule, **(options | {"check": False}))
        for notice in answer.notes:
            if notice.code == "reference":  # ratios are counted in the gap of one arm throughout
                options["reference"] = notice.arm
        first = min(length, max(2 * len(record.arms), 10))
        rounds = np.unique(np.geomspace(length, first, points).round().astype(np.int64))
        columns = [_after(whole, rule, seen, options) for seen in rounds[:-1].tolist()] + [answer.columns]
    stacked = {field.name: np.vstack([getattr(one, field.name) for one in columns]) for field in fields(Columns)}
    return LearningCurve(answer.rule, answer.method, record.arms, name, rounds, Columns(**stacked), answer)


def _check(record: ActionLog, rule: Demonstrator, points: int, options: Mapping[str, Any]) -> None:
    """Refuse what cannot be estimated again and again in good time."""
    if not record.ordered:
        raise ParameterError("learning curve: expected a log with rounds; this one holds counts, which have no order.")
    checks.whole("points", points)
    for name in ("starting_pulls", "kept"):
        if options.get(name) is not None:
            text = "a learning curve begins with the first round, and no round may be missing; leave it out."
            raise ParameterError(text, parameter=name)
    if options.get("pool"):
        text = "demonstrations are followed one by one; leave it out, and name a demonstration."
        raise ParameterError(text, parameter="pool")
    if rule.reveals != "values":
        check_comparable(rule, "bracket")
    method = usable_method(options.get("method"), record, rule)
    if method in DRAWING:
        why = f"{rule.name} draws its arms at random, and only" if isinstance(rule, RandomisedRule) else "only"
        raise ParameterError(
            f"learning curve: {why} closed forms are fast enough to be repeated; method {method} draws "
            "random numbers. Use another method, or estimate from the first rounds yourself."
        )


def _after(whole: ActionLog, rule: Demonstrator | str, rounds: int, options: Mapping[str, Any]) -> Columns:
    """Estimate from the first rounds; no numbers where nothing follows from them."""
    assert whole.actions is not None
    begun = replace(whole, actions=whole.actions[:rounds], offsets=np.array([0, rounds]), rewards=None)
    try:
        return estimate(begun, rule, **{**options, "check": False}).columns
    except NotIdentifiable:
        return Answer(whole.demonstrations, np.zeros((1, len(whole.arms)), np.int64), ()).columns
