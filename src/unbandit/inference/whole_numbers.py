"""Whole numbers of a rule that a log shows: how often every arm is pulled first, and how long a decision lasts.

A log leaves few values possible: an opening ends where an arm comes again too early, and an index rule that decides
every `batch` rounds changes its arm at the end of a batch only. All that are possible are compared by the evidence of
the log, which counts less for a longer batch: a few changes have some large common divisor by chance, so that the
prior of a batch is `1 / batch`. Other whole numbers, and choices such as `ties`, are refused with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import IndexRule, RandomisedRule
from unbandit.demonstrators.family import WHOLE, RuleFamily
from unbandit.errors import InferenceError, NotIdentifiable
from unbandit.fit import FittedNumber
from unbandit.formatting import joined
from unbandit.log import ActionLog

CLEARLY = 5.0  # nats by which the log must be more probable under one value than under every other
MOST_OPENING = 20  # pulls of every arm at the beginning, at most
BY_EVIDENCE = "evidence of every value that the log leaves possible"


def settled_whole_numbers(
    log: ActionLog, family: RuleFamily, evidence: Callable[[Mapping[str, int]], float]
) -> tuple[dict[str, int], tuple[FittedNumber, ...]]:
    """Find the whole numbers that are to be fitted; `evidence` is the log evidence of the log, given some values.

    Raises
    ------
    NotIdentifiable
        If several values explain the log about as well, or their evidence cannot be compared.
    InferenceError
        If none explains it.
    """
    names = [name for name in family.free if name in WHOLE]
    if not names:
        return {}, ()
    _refuse_hidden(family, names)
    given = dict(family.known)
    openings = _openings(log, family) if "initial" in names else [int(given.get("initial", _usual(family, "initial")))]
    tried: list[dict[str, int]] = []
    for opening in openings:
        batches = _batches(log, opening) if "batch" in names else [1]
        tried += [{"initial": opening, "batch": batch} for batch in batches]
    values = [{name: each[name] for name in names} for each in tried]
    found = [(evidence(each) - math.log(each.get("batch", 1)), each) for each in values]  # prior of a batch: 1 / batch
    found.sort(key=lambda pair: -pair[0])
    best, chosen = found[0]
    if best == -math.inf:
        raise InferenceError(
            f"no value of {joined(names)} explains the log under {family.kind.name}.",
            remedy="Check the rule: `check` and `identify` try others.",
        )
    near = [each for value, each in found[1:] if value > best - CLEARLY]
    if near:
        others = joined([_written(each) for each in (chosen, *near[:3])], "or")
        raise NotIdentifiable(
            f"{family}: the log does not show {joined(names)}: it may be {others}.",
            parameter=names[0],
            remedy=f"Give {joined(names)} a value, or a longer log.",
        )
    numbers = [FittedNumber(name, chosen[name], chosen[name], chosen[name], BY_EVIDENCE) for name in names]
    return chosen, tuple(numbers)


def _refuse_hidden(family: RuleFamily, names: Sequence[str]) -> None:
    """Refuse whole numbers that this kind of rule does not show."""
    index = issubclass(family.kind, IndexRule)
    if "batch" in names and not index:
        raise NotIdentifiable(
            f"{family}: a batch shows where a rule stays with one arm; this rule draws an arm in every round.",
            parameter="batch",
            remedy="Give batch a value.",
        )
    if not index and not issubclass(family.kind, RandomisedRule):
        raise NotIdentifiable(
            f"{family}: openings are compared for index rules and rules that choose at random only.",
            parameter=names[0],
            remedy=f"Give {joined(list(names))} a value.",
        )


def _usual(family: RuleFamily, name: str) -> int:
    return int(family.kind.model_fields[name].default)


def _openings(log: ActionLog, family: RuleFamily) -> list[int]:
    """Return how often every arm may have been pulled first, in every demonstration; fewest first."""
    arms, least = len(log.arms), 1 if issubclass(family.kind, IndexRule) else 0
    possible = list(range(least, MOST_OPENING + 1))
    for which in range(len(log)):
        actions = log.demonstration(which)
        possible = [turns for turns in possible if _opens(actions, arms, turns)]
    if not possible:
        raise InferenceError(
            f"{family.kind.name}: the rule pulls every arm first, and the log does not begin like that.",
            remedy="Another rule made this log, or it begins in mid-run.",
        )
    return possible


def _opens(actions: NDArray[np.integer], arms: int, turns: int) -> bool:
    """Return whether the first rounds pull every arm so many times.

    Examples
    --------
    >>> [_opens(np.array([1, 0, 0, 1, 1]), 2, turns) for turns in (0, 1, 2, 3)]
    [True, True, True, False]
    """
    head = actions[: turns * arms]
    return head.size == turns * arms and bool((np.bincount(head, minlength=arms) == turns).all())


def _batches(log: ActionLog, opening: int) -> list[int]:
    """Return the batches after which the arm may have changed: whatever divides the rounds of all changes.

    Examples
    --------
    >>> _batches(ActionLog.from_codes(np.array([0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1]), ("a", "b")), 1)
    [1]
    >>> _batches(ActionLog.from_codes(np.array([0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]), ("a", "b")), 1)
    [1, 2, 4]
    """
    common = 0
    for which in range(len(log)):
        after = log.demonstration(which)[opening * len(log.arms) :]
        common = math.gcd(common, *(np.flatnonzero(np.diff(after)) + 1).tolist())
    if common == 0:
        raise NotIdentifiable(
            "batch: the log never changes its arm after the opening, so that any batch is possible.",
            parameter="batch",
            remedy="Give batch a value.",
        )
    return [each for each in range(1, common + 1) if common % each == 0]


def _written(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
