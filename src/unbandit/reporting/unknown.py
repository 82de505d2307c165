"""What cannot be known from a log, however it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from unbandit.demonstrators import Demonstrator
from unbandit.log import ActionLog
from unbandit.reporting.quantity import ends, quantity
from unbandit.reporting.written import counted, listed
from unbandit.result import ArmEstimate, Estimate

__all__ = ["unknown"]


def unknown(
    answer: Estimate, rule: Demonstrator, log: ActionLog, rows: Sequence[ArmEstimate], options: Mapping[str, Any]
) -> list[str]:
    """List what this log leaves open; `rows` are the first demonstration's, best first."""
    best = answer.best_by_demonstration[0]
    settled = set(best)
    found = ["What any single choice gave: the record holds choices, and this report gives averages."]
    if log.rewards is not None:
        found = ["What the choices gave whose rewards are not in the record."]
    found += _level(rule, options, len(log.arms), told=log.rewards is not None and answer.method == "posterior")
    if len(best) != 1:
        among = f"{listed(best, 6)}" if best else "the arms"
        found.append(f"Which of {among} is the best. Each of them may be, and the record ends before it is settled.")
    for verdict, said in (
        ("bounded", "Where exactly {} {}. The record gives a bound, and anything beyond it is possible."),
        ("unseen", "Anything at all about {}: never pulled."),
    ):
        names = [row.arm for row in rows if row.verdict == verdict and row.arm not in settled]
        if names:
            found.append(said.format(listed(names, 4), "lies" if len(names) == 1 else "lie"))
    found += _order(answer, rows)
    if not log.ordered:
        found.append("When each arm was pulled, and so whether the choices fit the rule round by round.")
    found.append(
        f"Whether {rule.name} really made the record. Where a record visibly does not fit, a warning says so; a short "
        "one may not show it. Other rules, or the same with other parameters, may explain it as well."
    )
    found.append("Whether the arms changed while the record was made, and what they are worth now.")
    return found


def _level(rule: Demonstrator, options: Mapping[str, Any], arms: int, *, told: bool) -> list[str]:
    """Say whether the common level of all means is open; it is not where known rewards told it."""
    if options.get("scale") == "unknown":
        if arms == 2:
            return ["How large the gap is. One factor of it is unknown, and there is no other gap to hold it against."]
        return ["How large any gap is. All gaps share one unknown factor; only their proportions are known."]
    if options.get("best_mean") is not None or options.get("anchor") or told:
        return []
    if getattr(rule, "shifts", True):
        return ["How much the arms are worth in all: if every reward were higher by the same amount, the choices would "
                "have been the same. Only differences are known. One known mean would tell the rest."]  # fmt: skip
    return []


def _order(answer: Estimate, rows: Sequence[ArmEstimate]) -> list[str]:
    """Count the neighbours in the ranking whose intervals overlap."""
    shown = quantity(answer)
    whole = [(low, high) for row in rows for low, high in [ends(row, shown)] if low is not None and high is not None]
    overlapping = sum(max(one[0], other[0]) <= min(one[1], other[1]) for one, other in pairwise(whole))
    if not overlapping:
        return []
    return [f"Which comes first where intervals overlap, as they do for {counted(overlapping, 'pair')} of neighbours "
            "in the ranking. Their order is a best guess."]  # fmt: skip
