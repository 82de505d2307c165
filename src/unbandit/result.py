"""The answer: for every arm a value, an interval and a verdict, and notices; as rows, a table, JSON or text."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.errors import Audience, ParameterError, python_option
from unbandit.errors import Notice as Notice
from unbandit.fit import UNCHECKED, Check, FittedNumber
from unbandit.formatting import Unit, counted, number, plural, short_numbers
from unbandit.log.columns import Demonstrations, column_of, noun_of
from unbandit.log.labels import MOST_IN_TUPLE, LazySequence
from unbandit.tables import Finding, as_written_by, read_json, read_notices

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

    from unbandit.inference import Posterior

SCHEMA = "unbandit.estimate/1"

VERDICTS = ("best", "estimated", "bounded", "unseen")
BEST, ESTIMATED, BOUNDED, UNSEEN = range(4)

Quantity = Literal["mean", "gap", "ratio"]

NUMBERS = ("gap", "gap_low", "gap_high", "mean", "mean_low", "mean_high", "ratio")

ROWS_OF_LONG_JSON = 10_000  # from this many on, JSON has no spaces and is written in blocks
ROWS_PER_BLOCK = 100_000
MOST_LISTED, FIRST_LISTED = 100, 10  # of more demonstrations than the first, text lists as many as the second


class Integers(LazySequence[int]):
    """Integers of Python, kept in an array."""

    def __init__(self, values: NDArray[np.int64]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def _member(self, at: int) -> int:
        return int(self.values[at])


class Marked(LazySequence[tuple[str, ...]]):
    """For each demonstration, the names of the arms that are marked in its row."""

    def __init__(self, marks: NDArray[np.bool_], arms: tuple[str, ...]) -> None:
        self.marks, self.arms = marks, arms

    def __len__(self) -> int:
        return len(self.marks)

    def _member(self, at: int) -> tuple[str, ...]:
        return tuple(self.arms[arm] for arm in np.flatnonzero(self.marks[at]))


def integers(values: NDArray[np.int64]) -> Sequence[int]:
    """Return integers as a sequence."""
    return tuple(map(int, values)) if len(values) <= MOST_IN_TUPLE else Integers(values)


def marked(marks: NDArray[np.bool_], arms: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
    """Return for each row the names of the arms that are marked."""
    names = Marked(marks, arms)
    return tuple(names) if len(names) <= MOST_IN_TUPLE else names


@dataclass(frozen=True)
class ArmEstimate:
    """One row of the answer; None where there is no number."""

    arm: str
    pulls: int
    gap: float | None
    gap_low: float | None
    gap_high: float | None
    mean: float | None
    mean_low: float | None
    mean_high: float | None
    ratio: float | None
    verdict: str
    demonstration: str

    def value(self, quantity: Quantity) -> float | None:
        """Return the arm's estimate of a quantity, if there is one."""
        value: float | None = getattr(self, quantity)
        return value

    def interval(self, quantity: Quantity) -> tuple[float | None, float | None]:
        """Return both ends of the arm's interval, None where an end is open; ratios have no intervals."""
        if quantity == "ratio":
            return None, None
        return (self.mean_low, self.mean_high) if quantity == "mean" else (self.gap_low, self.gap_high)


@dataclass(frozen=True, eq=False)
class Columns:
    """Numbers of an answer: arrays of (demonstrations, arms), NaN where there is no number."""

    pulls: NDArray[np.int64]
    gap: NDArray[np.float64]
    gap_low: NDArray[np.float64]
    gap_high: NDArray[np.float64]
    mean: NDArray[np.float64]
    mean_low: NDArray[np.float64]
    mean_high: NDArray[np.float64]
    ratio: NDArray[np.float64]
    verdict: NDArray[np.int8]

    def times(self, factor: float) -> Columns:
        """Return gaps and means, with their intervals, multiplied; ratios have no unit."""
        numbers = {name: factor * getattr(self, name) for name in NUMBERS if name != "ratio"}
        return replace(self, **numbers)

    @classmethod
    def read(cls, rows: Sequence[Mapping[str, Any]], shape: tuple[int, int]) -> Columns:
        """Read the rows of JSON."""
        names = ("pulls", *NUMBERS)
        numbers = {name: np.array([row[name] for row in rows], np.float64).reshape(shape) for name in names}
        verdict = np.array([VERDICTS.index(row["verdict"]) for row in rows], np.int8).reshape(shape)
        return cls(numbers.pop("pulls").astype(np.int64), **numbers, verdict=verdict)

    def frame(
        self, arms: Sequence[str], names: Mapping[str, Any], start: int = 0, stop: int | None = None
    ) -> polars.DataFrame:
        """Return some demonstrations, by default all, as a table with one row per arm; `names` are columns for each."""
        import polars as pl

        rows = range(len(self.pulls))[start:stop]
        part, positions = slice(rows.start, rows.stop), np.arange(len(arms), dtype=np.uint32)
        each = np.repeat(np.arange(len(rows), dtype=np.uint32), len(arms))
        table: dict[str, Any] = {name: pl.Series(values[part]).gather(each) for name, values in names.items()}
        table["arm"] = pl.Series(arms, dtype=pl.String).gather(np.tile(positions, len(rows)))
        table |= {name: getattr(self, name)[part].reshape(-1) for name in ("pulls", *NUMBERS)}
        table["verdict"] = pl.Series(VERDICTS).gather(self.verdict[part].reshape(-1).astype(np.uint32))
        return pl.DataFrame(table, nan_to_null=True).with_columns(pl.col(NUMBERS).cast(pl.Float64))


@dataclass(frozen=True, eq=False)
class Estimate(Finding):
    """Estimates of every arm from a log, with intervals, verdicts and notices.

    Attributes
    ----------
    rule
        The demonstrator that was assumed.
    method
        How it was inverted.
    arms
        The arms' names, in the order of the columns' second axis.
    demonstrations
        The demonstrations' names, in the order of the columns' first axis.
    columns
        The numbers, as arrays of (demonstrations, arms).
    horizons
        `T` of each demonstration.
    level
        Of the intervals.
    sigma
        The rewards' standard deviation; None where it differs by arm (Bernoulli rewards).
    warnings
        What may be wrong.
    notes
        What is worth knowing.
    best_by_demonstration
        The arms that are, or may still be, the best.
    apart_by_demonstration
        Those whose gap is to another arm than that of the arms that stayed to the end (`availability`), so that they
        have no rank among these.
    posteriors
        The posteriors behind the numbers, one per demonstration; none where the method needs none.
    alternatives
        The same from other known means, by label, where the means that were given disagree; empty as a rule.
    check
        Whether the assumed rule fits the log.
    fitted
        The rule's numbers that were fitted from the log (`FIT`), each with an interval.
    unit
        The unit of the numbers (`in_unit`); None for that of the rewards, as the rule knows them.

    Examples
    --------
    >>> import unbandit
    >>> log = unbandit.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> result = unbandit.estimate(log, unbandit.UCB(alpha=0.25), best_mean=1.0, sigma=1.0)
    >>> [(row.arm, row.verdict, row.pulls) for row in result]
    [('A', 'best', 179), ('B', 'estimated', 21)]
    >>> round(result["B"].mean, 2)
    0.51
    """

    rule: str
    method: str
    arms: tuple[str, ...]
    demonstrations: Sequence[str]
    columns: Columns
    horizons: Sequence[int]
    level: float
    sigma: float | None
    warnings: tuple[Notice, ...] = ()
    notes: tuple[Notice, ...] = ()
    seed: int | None = None
    best_by_demonstration: Sequence[tuple[str, ...]] = field(default=())
    apart_by_demonstration: Sequence[tuple[str, ...]] = field(default=())
    posteriors: tuple[Posterior, ...] = field(default=(), repr=False)
    alternatives: Mapping[str, Estimate] = field(default_factory=dict, repr=False)
    check: Check = field(default=UNCHECKED, repr=False)
    fitted: tuple[FittedNumber, ...] = ()
    unit: Unit | None = None

    @property
    def noun(self) -> str:
        """Return what a demonstration is called, by the column of their names: "subject", say."""
        return noun_of(self.demonstrations)

    def in_unit(self, unit: str | tuple[str, float]) -> Estimate:
        """Return the same answer in another unit: gaps, means and sigma multiplied, and a note that says so.

        Posteriors, the rule and what other notices say stay as they are.

        Examples
        --------
        >>> import unbandit as ub
        >>> log = ub.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
        >>> result = ub.estimate(log, "ucb:alpha=0.25", best_mean=1.0, sigma=1.0)
        >>> round(result["B"].mean, 3), round(result.in_unit("cycles=1208")["B"].mean)
        (0.512, 618)
        """
        checked = checks.unit(unit)
        if checked is None or self.unit is not None:
            text = "expected a unit." if checked is None else f"the numbers are in {self.unit} already."
            raise ParameterError(text, parameter="unit", value=unit)
        text = f"Values are in {checked.name}: those of the rule's rewards times {number(checked.factor, 6)}."
        return replace(
            self,
            columns=self.columns.times(checked.factor),
            sigma=None if self.sigma is None else checked.factor * self.sigma,
            notes=(Notice("unit", text), *self.notes),
            alternatives={label: other.in_unit(checked) for label, other in self.alternatives.items()},
            unit=checked,
        )

    @property
    def best(self) -> tuple[str, ...]:
        """Return the arms that are, or may still be, the best: one, unless the record leaves it open."""
        return tuple(arm for arm, marked in zip(self.arms, np.any(self.marks, axis=0), strict=True) if marked)

    @property
    def marks(self) -> NDArray[np.bool_]:
        """Return which arms are, or may still be, the best: (demonstrations, arms)."""
        best = self.best_by_demonstration
        if isinstance(best, Marked):
            return best.marks
        return np.array([[arm in names for arm in self.arms] for names in best], np.bool_).reshape(-1, len(self.arms))

    @property
    def gaps(self) -> NDArray[np.float64]:
        """Return the estimated gaps, (demonstrations, arms); NaN where there is none."""
        return self.columns.gap

    @property
    def means(self) -> NDArray[np.float64]:
        """Return the estimated means, (demonstrations, arms); NaN where there is none."""
        return self.columns.mean

    def __len__(self) -> int:
        return self.columns.pulls.size

    def __iter__(self) -> Iterator[ArmEstimate]:
        for which in range(len(self.demonstrations)):
            yield from self._rows(which)

    def _rows(self, which: int, places: Sequence[int] | None = None) -> Iterator[ArmEstimate]:
        """Yield one demonstration's rows: of all arms in their order, or of those at some places."""
        demonstration = self.demonstrations[which]
        arms, chosen = (self.arms, slice(None)) if places is None else ([self.arms[at] for at in places], list(places))
        pulls, verdicts = self.columns.pulls[which, chosen].tolist(), self.columns.verdict[which, chosen].tolist()
        numbers = [getattr(self.columns, name)[which, chosen].tolist() for name in NUMBERS]
        for arm, count, verdict, *values in zip(arms, pulls, verdicts, *numbers, strict=True):
            named = {name: None if math.isnan(value) else value for name, value in zip(NUMBERS, values, strict=True)}
            yield ArmEstimate(arm=arm, pulls=count, verdict=VERDICTS[verdict], demonstration=demonstration, **named)

    def __repr__(self) -> str:
        many = "" if len(self.demonstrations) == 1 else f", {counted(len(self.demonstrations), self.noun)}"
        best, quantity = listed_names(self.best), shown_quantity(self)
        known = getattr(self.columns, quantity)[self.columns.verdict == ESTIMATED]
        ends = sorted({f"{end:.3g}" for end in (known.min(), known.max())}, key=float) if known.size else []
        numbers = f", other {quantity}s {' to '.join(ends)}" if ends else ""
        rule = short_numbers(self.rule)
        return f"<Estimate: {len(self.arms)} arms{many}, {rule}, method {self.method}, best {best}{numbers}>"

    def __getitem__(self, key: object) -> ArmEstimate:
        """Return the row of an arm; of several demonstrations, `result[arm, demonstration]`."""
        arm, demonstration = key if isinstance(key, tuple) else (key, None)
        if demonstration is None and len(self.demonstrations) > 1:
            raise KeyError(f"{key!r}: expected result[arm, demonstration], since there are several demonstrations")
        if demonstration is None:
            demonstration = self.demonstrations[0]
        if isinstance(demonstration, str) and demonstration in self.demonstrations and str(arm) in self.arms:
            rows = self._rows(self.demonstrations.index(demonstration))
            return next(islice(rows, self.arms.index(str(arm)), None))
        raise KeyError(f"{key!r}: expected an arm among {', '.join(self.arms[:12])}")

    def ranked(self, demonstration: str | None = None, most: int | None = None) -> list[ArmEstimate]:
        """Return the rows best first: by gap, then those only bounded, those never seen, and those that have no rank.

        Of one demonstration, or of all, one after the other; of each the first `most`, if given.
        """
        if demonstration is None:
            return [row for name in self.demonstrations for row in self.ranked(name, most)]
        which = checks.position("demonstration", demonstration, tuple(self.demonstrations))
        best, apart = set(self.best_by_demonstration[which]), set(self.apart(demonstration))
        gap, low, ratio = (getattr(self.columns, name)[which] for name in ("gap", "gap_low", "ratio"))
        by = np.where(np.isnan(gap), np.where(np.isnan(ratio), low, ratio), gap)
        by = np.where(np.isnan(by), np.inf, by)
        is_best = np.array([arm in best for arm in self.arms])
        if self.method == "posterior" and is_best.any():  # others that may be the best stand where their gaps put them
            is_best &= by == by[is_best].min()
        verdict = np.where(is_best, 0, self.columns.verdict[which])
        unranked = np.array([arm in apart for arm in self.arms])
        order = np.lexsort((-self.columns.pulls[which].astype(np.int64), by, verdict, unranked))
        return list(self._rows(which, order[:most].tolist()))

    def apart(self, demonstration: str) -> tuple[str, ...]:
        """Return the arms of a demonstration without a rank: their gaps are to another arm than those of the rest."""
        which = checks.position("demonstration", demonstration, tuple(self.demonstrations))
        return self.apart_by_demonstration[which] if self.apart_by_demonstration else ()

    def to_frame(self) -> polars.DataFrame:
        """Return the answer as a table, one row per arm (and demonstration)."""
        return self.columns.frame(self.arms, self._named)

    def summary(self) -> polars.DataFrame:
        """Return the arms best first: pulls, what is known of each with its interval, and the verdict.

        Of several demonstrations one row per arm: in how many it is, or may be, the best, and the median of its value.
        """
        import polars as pl

        quantity = shown_quantity(self)
        if len(self.demonstrations) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # an arm without a number has none in the median
                middle = np.nanmedian(getattr(self.columns, quantity), axis=0)
            numbers = {"pulls": self.columns.pulls.sum(axis=0), "best_in": self.marks.sum(axis=0)}
            table = pl.DataFrame({"arm": self.arms} | numbers | {f"median_{quantity}": middle}, nan_to_null=True)
            return table.sort("best_in", descending=True, maintain_order=True)
        ends = () if quantity == "ratio" else (f"{quantity}_low", f"{quantity}_high")
        names = ("arm", "pulls", quantity, *ends, "verdict")
        rows = [[getattr(row, name) for name in names] for row in self.ranked()]
        kinds: dict[str, Any] = dict.fromkeys(names, pl.Float64) | {"arm": pl.String, "verdict": pl.String}
        return pl.DataFrame(rows, schema=kinds | {"pulls": pl.Int64}, orient="row")

    @property
    def _named(self) -> dict[str, Sequence[str]]:
        """Return the column that names the demonstrations, where there are several."""
        return {"demonstration": self.demonstrations} if len(self.demonstrations) > 1 else {}

    def to_dict(self, audience: Audience = python_option) -> dict[str, Any]:
        """Return the answer in the form that `--json` prints."""
        names = (*self._named, "arm", "pulls", *NUMBERS, "verdict")
        return _head(self, audience) | {"arms": [{name: getattr(row, name) for name in names} for row in self]}

    def to_json(self) -> str:
        """Return the answer as JSON text."""
        return "".join(json_pieces(self))

    @classmethod
    @as_written_by("Estimate")
    def from_json(cls, text: str | bytes) -> Estimate:
        """Return the answer that `to_json` or `unbandit estimate --json` wrote; `posteriors` are not in it.

        Examples
        --------
        >>> import unbandit as ub
        >>> result = ub.estimate(ub.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118), "ucb", sigma=1.0)
        >>> ub.Estimate.from_json(result.to_json()).to_json() == result.to_json()
        True
        """
        return _read_answer(read_json(text, SCHEMA))

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Estimate:
        """Return the answer that `to_dict` gave."""
        return _read_answer(said)

    def plot(
        self, kind: Literal["arms", "errors"] = "arms", *, truth: Mapping[str, float] | None = None,
        unit: float = 1.0, label: str | None = None, demonstration: object = None, ax: Axes | None = None,
    ) -> Any:  # fmt: skip
        """Draw every arm's interval, best first; or every arm's error, where the truth is known.

        Parameters
        ----------
        kind
            `arms` (`plots.arms_with_intervals`) or `errors` (`plots.errors`), which needs the truth.
        truth
            The true mean of each arm. Where gaps (or ratios) are shown, it is drawn as a gap to the best of them.
        unit, label, demonstration
            As for `plots.arms_with_intervals` and `plots.errors`.
        ax
            Axes to draw into, which are then returned; default a new figure, which is returned.
        """
        from unbandit import plots

        checks.text("label", label)
        unit = checks.positive("unit", unit)
        truth = shown_truth(truth, shown_quantity(self), self)
        options: dict[str, Any] = {"unit": unit, "label": label, "demonstration": demonstration, "ax": ax}
        if checks.one_of("kind", kind, ("arms", "errors")) == "errors":
            if truth is None:
                raise ParameterError("expected the true value of each arm to draw errors.", parameter="truth")
            return plots.errors(self, truth, **options)
        return plots.arms_with_intervals(self, truth=truth, **options)

    def __str__(self) -> str:
        """Return one line per arm, then warnings and notes; of very many demonstrations the first."""
        several = len(self.demonstrations)
        listed = self.demonstrations if several <= MOST_LISTED else self.demonstrations[:FIRST_LISTED]
        lines = [f"{self.rule} | {self.method} | {self.level:.0%} intervals"]
        lines += [f"  {row.arm}: {row.verdict}{_numbers(row)}" for name in listed for row in self.ranked(name)]
        if len(listed) < several:
            lines.append(f"  ... and {several - len(listed):,} more {plural(self.noun)}: see to_frame()")
        for label, other in self.alternatives.items():
            lines.append(f"{label}:")
            lines += [f"  {row.arm}: {row.verdict}{_numbers(row)}" for name in listed for row in other.ranked(name)]
        lines += [f"  warning: {notice.message}" for notice in self.warnings]
        return "\n".join(lines + [f"  note: {notice.message}" for notice in self.notes])

    def _repr_html_(self) -> str:
        """Show a table with interval bars in notebooks."""
        from unbandit.plots.notebook import notebook_table

        return notebook_table(self)


def shown_quantity(estimate: Estimate) -> Quantity:
    """Return what an answer is shown in: means if any arm but the best has one (or a bound), else gaps, else ratios."""
    columns = estimate.columns
    others = columns.verdict != BEST
    names: tuple[Quantity, ...] = ("mean", "gap", "ratio")
    for name in names:
        numbers = (getattr(columns, name + end, None) for end in ("", "_low", "_high"))
        if any(np.isfinite(each[others]).any() for each in numbers if each is not None):
            return name
    return "mean" if np.isfinite(columns.mean).any() else "gap"


def true_values(
    means: Mapping[str, float], quantity: Quantity, answer: Estimate, rivals: NDArray[np.bool_] | None = None
) -> dict[str, float]:
    """Turn true means into true gaps or ratios, as the answer has them.

    A gap is to the best arm of all, or of an arm's `rivals`, (arms, arms), where arms come and go.
    """
    if quantity == "mean" or not means:
        return dict(means)
    best = dict.fromkeys(means, max(means.values()))
    if rivals is not None:
        known = np.array([means.get(arm, -np.inf) for arm in answer.arms])
        highest = np.where(rivals, known, -np.inf).max(axis=1)
        best = {arm: float(value) for arm, value in zip(answer.arms, highest, strict=True) if arm in means}
        means = {arm: means[arm] for arm in best}
    gaps = {arm: best[arm] - mean for arm, mean in means.items()}
    if quantity == "gap":
        return gaps
    reference = next((notice.arm for notice in answer.notes if notice.code == "reference"), None)
    if reference is None or not gaps.get(reference):
        return {}
    return {arm: gap / gaps[reference] for arm, gap in gaps.items()}


def shown_truth(means: Mapping[str, float] | None, quantity: Quantity, answer: Estimate) -> dict[str, float] | None:
    """Return true means as the quantity that is shown; refuse gaps to a best arm that may not be among them.

    Arms whose gap is to another arm than those of the rest are left out.
    """
    every = () if quantity == "mean" else answer.arms
    checks.by_arm("truth", means, every, "gaps to the best of them are shown")
    if not means or quantity == "mean":
        return None if means is None else dict(means)
    apart = {arm for names in answer.apart_by_demonstration for arm in names}
    return {arm: value for arm, value in true_values(means, quantity, answer).items() if arm not in apart}


def json_pieces(
    answer: Estimate, others: Mapping[str, Estimate] | None = None, audience: Audience = python_option,
    more: Mapping[str, Any] | None = None,
) -> Iterator[str]:  # fmt: skip
    """Yield the answer as JSON text, piece by piece; `others` are the answers under other assumptions.

    `more` is what is said besides.
    """
    if len(answer) < ROWS_OF_LONG_JSON:
        whole = answer.to_dict(audience) | dict(more or {})
        if others:
            whole["sensitivity"] = {name: other.to_dict(audience) for name, other in others.items()}
        yield json.dumps(whole, indent=2, allow_nan=False)
        return
    head = _head(answer, audience) | dict(more or {})
    yield json.dumps(head, indent=2, allow_nan=False).removesuffix("\n}") + ',\n  "arms": ['
    step = max(1, ROWS_PER_BLOCK // len(answer.arms))
    for start in range(0, len(answer.demonstrations), step):
        rows = answer.columns.frame(answer.arms, answer._named, start, start + step).write_json()
        yield ("\n" if start == 0 else ",\n") + rows[1:-1]
    yield "\n  ]"
    for at, (name, other) in enumerate((others or {}).items()):
        yield (',\n  "sensitivity": {\n' if at == 0 else ",\n") + f"{json.dumps(name)}: "
        yield from json_pieces(other, audience=audience)
    yield "}\n}" if others else "\n}"


def _head(answer: Estimate, audience: Audience) -> dict[str, Any]:
    """Return what JSON has beside the rows."""
    same = len(set(answer.horizons)) == 1
    alternatives = {label: other.to_dict(audience) for label, other in answer.alternatives.items()}
    fitted = [each.to_dict() for each in answer.fitted]
    apart = [arm for arm in answer.arms if any(arm in names for names in answer.apart_by_demonstration)]
    return (
        {
            "schema": SCHEMA,
            "rule": answer.rule,
            "method": answer.method,
            "horizon": answer.horizons[0] if same else list(answer.horizons),
            "demonstrations": len(answer.demonstrations),
            "level": answer.level,
            "sigma": answer.sigma,
            "seed": answer.seed,
            "best": list(answer.best),
            "check": answer.check.to_dict(),
            "warnings": [notice.to_dict(audience) for notice in answer.warnings],
            "notes": [notice.to_dict(audience) for notice in answer.notes],
        }
        | ({"best_by_demonstration": [list(names) for names in answer.best_by_demonstration]} if _open(answer) else {})
        | ({"demonstration_column": column} if (column := column_of(answer.demonstrations)) else {})
        | ({"apart": apart} if apart else {})
        | ({"fitted": fitted} if fitted else {})
        | ({} if answer.unit is None else {"unit": answer.unit._asdict()})
        | ({"alternatives": alternatives} if alternatives else {})
    )


def _open(answer: Estimate) -> bool:
    """Return whether verdicts do not say which arms may be best, so that JSON of several demonstrations has to."""
    return len(answer.demonstrations) > 1 and not np.array_equal(answer.marks, answer.columns.verdict == BEST)


def _read_answer(said: Mapping[str, Any]) -> Estimate:
    """Read what `_head` and the rows of JSON say."""
    rows, several = said["arms"], said["demonstrations"]
    arms = tuple(row["arm"] for row in rows[: len(rows) // several])
    columns = Columns.read(rows, (several, len(arms)))
    names = [row["demonstration"] for row in rows[:: len(arms)]] if several > 1 else ["1"]
    best = marked(columns.verdict == BEST, arms) if several > 1 else (tuple(said["best"]),)
    if "best_by_demonstration" in said:
        best = tuple(map(tuple, said["best_by_demonstration"]))
    horizon = said["horizon"]
    return Estimate(
        said["rule"], said["method"], arms, Demonstrations.of(names, said.get("demonstration_column")), columns,
        tuple(horizon) if isinstance(horizon, list) else (horizon,) * several, said["level"], said["sigma"],
        read_notices(said["warnings"]), read_notices(said["notes"]), said["seed"], best,
        (tuple(said["apart"]),) * several if "apart" in said else (),
        alternatives={label: _read_answer(other) for label, other in said.get("alternatives", {}).items()},
        check=Check.from_dict(said["check"]),
        fitted=tuple(FittedNumber(**each) for each in said.get("fitted", ())),
        unit=checks.unit(tuple(said["unit"].values())) if "unit" in said else None,
    )  # fmt: skip


def listed_names(names: Sequence[str], most: int = 4) -> str:
    """List names briefly."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def _numbers(row: ArmEstimate) -> str:
    """Write a row's numbers."""
    text = ""
    quantities: tuple[Quantity, ...] = ("gap", "mean", "ratio")
    for quantity in quantities:
        point, (low, high) = row.value(quantity), row.interval(quantity)
        if point is None and low is None and high is None:
            continue
        text += f", {quantity}" + ("" if point is None else f" {point:.4g}")
        if low is not None or high is not None:
            text += f" [{'' if low is None else f'{low:.4g}'}, {'' if high is None else f'{high:.4g}'}]"
    return text
