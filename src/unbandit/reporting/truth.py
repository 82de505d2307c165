"""The truth, where it is known: read from a file, and compared with an answer."""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from unbandit.errors import ParameterError
from unbandit.formatting import counted, quoted
from unbandit.log.formats import open_source
from unbandit.log.labels import label_of
from unbandit.result import ArmEstimate, Estimate, Quantity


def read_truth(path: str | os.PathLike[str]) -> dict[str, float]:
    """Read every arm's true mean from a table with the columns `arm` and `mean`, as `unbandit simulate` writes it."""
    table = open_source(path)
    for name in ("arm", "mean"):
        if name not in table.names:
            raise table.refuse(f'expected a column "{name}": the truth is a table of every arm and its mean.')
    truth: dict[str, float] = {}
    for batch in table.batches(["arm", "mean"]):
        cells = zip(batch.columns["arm"].to_list(), batch.columns["mean"].cast(pl.String).to_list(), strict=True)
        for row, (arm, cell) in enumerate(cells, 1):
            try:
                value = float(cell)
            except (TypeError, ValueError):
                value = math.nan
            if not math.isfinite(value):
                raise batch.refuse(f'expected a number; got "{cell}".', row=row, column="mean", value=cell)
            label = label_of(arm)
            if label in truth:
                text = f"expected every arm once; got {quoted(label)} again."
                raise batch.refuse(text, row=row, column="arm", value=arm)
            truth[label] = value
    if not truth:
        raise table.refuse_empty()
    return truth


def read_arm_names(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read what arms are called from a table with the columns `arm` and `name`."""
    table = open_source(path)
    for name in ("arm", "name"):
        if name not in table.names:
            raise table.refuse(f'expected a column "{name}": names are a table of arms and what they are called.')
    names: dict[str, str] = {}
    for batch in table.batches(["arm", "name"]):
        for arm, name in zip(*(batch.columns[each].cast(pl.String).to_list() for each in ("arm", "name")), strict=True):
            names[label_of(arm)] = "" if name is None else name
    if not names:
        raise table.refuse_empty()
    return names


def check_truth(truth: Mapping[str, float], arms: Sequence[str]) -> dict[str, float]:
    """Refuse a truth that names none of the log's arms, or that holds anything but finite numbers."""
    means = {str(arm): float(value) for arm, value in truth.items()}
    if not means.keys() & set(arms):
        message = f"expected the means of arms in the log, such as {quoted(arms[0])}; got none of it."
        raise ParameterError(message, parameter="truth")
    for arm, value in means.items():
        if not math.isfinite(value):
            raise ParameterError(f"expected a finite number for {quoted(arm)}; got {value}.", parameter="truth")
    return means


def holds_truth(row: ArmEstimate, quantity: Quantity, truth: Mapping[str, float]) -> bool | None:
    """Return whether an arm's interval, or bound, contains the truth; None where there is none, or no truth."""
    low, high = row.interval(quantity)
    if row.arm not in truth or (low is None and high is None):
        return None
    return (low is None or low <= truth[row.arm]) and (high is None or truth[row.arm] <= high)


def intervals_with_truth(rows: Sequence[ArmEstimate], quantity: Quantity, truth: Mapping[str, float]) -> list[bool]:
    """Return for each arm with an interval and a truth whether the one contains the other."""
    return [held for row in rows if (held := holds_truth(row, quantity, truth)) is not None]


def compare(
    rows: Sequence[ArmEstimate], quantity: Quantity, means: Mapping[str, float], answer: Estimate,
    options: Mapping[str, Any], truth: Mapping[str, float], stayed: Sequence[str],
) -> str:  # fmt: skip
    """Say in a sentence how the answer compares with the truth, and what of it was given beforehand.

    `truth` has the true values of the quantity shown; the best arm is that of those that `stayed` to the end.
    """
    held, all_stayed = intervals_with_truth(rows, quantity, truth), len(stayed) == len(answer.arms)
    there = list(means) if all_stayed else [arm for arm in stayed if arm in means]  # the truth may name more arms
    if not there:
        return "True values are known only of arms that were withdrawn, and were not used."
    best = tuple(arm for arm in answer.best_by_demonstration[0] if arm in stayed)
    whose = "the best arm" if all_stayed else "the best arm that stayed to the end"
    true_best = [arm for arm in there if means[arm] == max(means[each] for each in there)]
    known = "The true values are known, but were not used"
    if options.get("best_mean") is not None:
        known = "The true values are known, but only the best arm's mean was used"
    elif options.get("anchor"):
        known = f"The true values are known, but only the mean of {quoted(str(next(iter(options['anchor']))))} was used"
    if len(best) == 1:
        outcome = "was found" if best[0] in true_best else "was not found"
    else:
        outcome = f"is {'' if set(best) & set(true_best) else 'not '}among those that may be the best"
    text = f"{known}: {whose}, {quoted(true_best[0])}, {outcome}"
    if held:
        text += f", and {sum(held):,} of {counted(len(held), 'interval')} hold the true value"
    return f"{text}."
