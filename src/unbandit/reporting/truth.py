"""The truth, where it is known: read from a file, and put into the terms of an answer."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from unbandit.errors import ParameterError
from unbandit.formatting import counted, quoted
from unbandit.log.labels import label_of
from unbandit.log.reading import open_table
from unbandit.result import ArmEstimate, Estimate, Quantity

__all__ = ["checked", "compared", "held", "in_terms_of", "read_truth"]


def read_truth(path: str | os.PathLike[str]) -> dict[str, float]:
    """Read every arm's true mean from a table with the columns `arm` and `mean`, as `unbandit simulate --truth` writes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "truth.csv"
    >>> _ = path.write_text("arm,mean,gap\\nA,1,0\\nB,0.25,0.75\\n")
    >>> read_truth(path)
    {'A': 1.0, 'B': 0.25}
    """
    table = open_table(path)
    for name in ("arm", "mean"):
        if name not in table.names:
            raise table.refuse(
                f'expected a column "{name}": the truth is a table of every arm and its mean, as unbandit simulate '
                "--truth writes it."
            )
    arms, means = table.take([table.names.index("arm"), table.names.index("mean")])
    truth: dict[str, float] = {}
    for row, (arm, cell) in enumerate(zip(arms.to_list(), means.cast(pl.String).to_list(), strict=True), 1):
        try:
            value = float(cell)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise table.refuse(f'expected a number; got "{cell}".', row=row, column="mean", value=cell)
        label = label_of(arm)
        if label in truth:
            raise table.refuse(f"expected every arm once; got {quoted(label)} again.", row=row, column="arm", value=arm)
        truth[label] = value
    return truth


def checked(truth: Mapping[str, float], arms: Sequence[str]) -> dict[str, float]:
    """Refuse a truth about other arms altogether, or one that is no number."""
    means = {str(arm): float(value) for arm, value in truth.items()}
    if not means.keys() & set(arms):
        raise ParameterError(
            f"expected the means of arms in the log, such as {quoted(arms[0])}; got none of it.", parameter="truth"
        )
    for arm, value in means.items():
        if not math.isfinite(value):
            raise ParameterError(f"expected a finite number for {quoted(arm)}; got {value}.", parameter="truth")
    return means


def in_terms_of(means: Mapping[str, float], shown: Quantity, answer: Estimate) -> dict[str, float]:
    """Turn true means into true gaps or ratios, as the answer has them."""
    if shown == "mean" or not means:
        return dict(means)
    best = max(means.values())
    gaps = {arm: best - mean for arm, mean in means.items()}
    if shown == "gap":
        return gaps
    unit = next((notice.arm for notice in answer.notes if notice.code == "reference"), None)
    if unit is None or not gaps.get(unit):
        return {}
    return {arm: gap / gaps[unit] for arm, gap in gaps.items()}


def held(row: ArmEstimate, shown: Quantity, truth: Mapping[str, float]) -> bool | None:
    """Tell whether an arm's interval, or bound, holds the truth; None where there is none, or no truth."""
    low, high = row.interval(shown)
    if row.arm not in truth or (low is None and high is None):
        return None
    return (low is None or low <= truth[row.arm]) and (high is None or truth[row.arm] <= high)


def compared(
    rows: Sequence[ArmEstimate], shown: Quantity, terms: Mapping[str, float], means: Mapping[str, float],
    best: Sequence[str], options: Mapping[str, Any],
) -> str:  # fmt: skip
    """Say in a sentence how the answer fares against the truth, and what of it was given away beforehand."""
    found = [held(row, shown, terms) for row in rows]
    judged = [fact for fact in found if fact is not None]
    highest = max(means.values())
    true_best = [arm for arm, mean in means.items() if mean == highest]
    said = f"The truth is known here, and was not used{_but_for(options)}"
    if len(best) == 1:
        was = "found" if best[0] in true_best else "not found"
        said += f": the best arm, {quoted(true_best[0])}, was {was}"
    elif set(best) & set(true_best):
        said += f": the best arm, {quoted(true_best[0])}, is among those that may be the best"
    else:
        said += f": the best arm, {quoted(true_best[0])}, is not among those that may be the best"
    if judged:
        said += f", and {sum(judged):,} of {counted(len(judged), 'interval')} hold the true value"
    return f"{said}."


def _but_for(options: Mapping[str, Any]) -> str:
    """Name the mean that was given with the question."""
    if options.get("best_mean") is not None:
        return ", but for the best arm's mean, which was given"
    if options.get("anchor"):
        return f", but for the mean of {quoted(str(next(iter(options['anchor']))))}, which was given"
    return ""
