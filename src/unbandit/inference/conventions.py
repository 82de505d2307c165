"""Conventions in which implementations of one rule differ: who wins a tie, and what `t` counts.

With rewards of 0 and 1, indices are equal all the time, and a record of an otherwise right rule is impossible as soon
as one tie went the other way. So before a record is called impossible, the rule is tried as other implementations play
it (`Demonstrator.conventions`), and the evidence decides between those that explain the record.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from unbandit.demonstrators import Demonstrator
from unbandit.errors import InferenceError, Notice
from unbandit.inference.draws import infer
from unbandit.inference.filter import CloudCollapsed
from unbandit.inference.prior import Prior
from unbandit.inference.result import Posterior
from unbandit.instance import Noise
from unbandit.log import ActionLog

CLEARLY = math.log(20.0)
"""By how much, as a logarithm, a record must be more probable for each convention that is changed."""


def infer_by_conventions(
    log: ActionLog, rule: Demonstrator, prior: Prior, noise: Noise, horizons: Sequence[int], **options: Any
) -> tuple[Posterior, Demonstrator]:
    """Infer as `infer` does, by other conventions where no hidden rewards explain the record under the rule's own.

    Returns the posterior, with a notice if the rule was changed, and the rule that it is for.

    Raises
    ------
    InferenceError
        Where no convention explains the record: what is raised for the rule as given.
    """
    own, refusal = None, None
    try:
        own = infer(log, rule, prior, noise, horizons, **options)
    except CloudCollapsed as collapsed:
        refusal = collapsed
    strained = next((each.round for each in own.warnings if each.code == "strained"), None) if own is not None else None
    if own is not None and strained is None:
        return own, rule
    explained = [] if own is None else [(own, rule)]
    for other in rule.conventions(noise):
        try:
            explained.append((infer(log, other, prior, noise, horizons, **options), other))
        except InferenceError:
            continue
    if not explained:
        assert refusal is not None
        raise refusal
    best, used = max(explained, key=lambda pair: pair[0].log_evidence - CLEARLY * len(changed(rule, pair[1])))
    where = strained if refusal is None else refusal.round
    return replace(best, warnings=(*convention_notices(rule, used, where), *best.warnings)), used


def changed(rule: Demonstrator, used: Demonstrator) -> dict[str, Any]:
    """Return the parameters in which the rule that was used differs, with its values."""
    given = rule.model_dump()
    return {name: value for name, value in used.model_dump().items() if value != given[name]}


def convention_notices(
    rule: Demonstrator, used: Demonstrator, round: int | None, outcome: str = "The answer is for"
) -> list[Notice]:
    """Say which conventions were changed, and why; `outcome` leads to the rule that was used.

    Examples
    --------
    >>> from unbandit import UCB1
    >>> convention_notices(UCB1(), UCB1(ties="random"), 7)[0].message  # doctest: +ELLIPSIS
    'Ties between arms are taken as broken at random: no hidden rewards were found under which ucb1:exploration=2.0...'
    """
    where = "" if round is None else f" in round {round}"
    because = f"no hidden rewards were found under which {rule} decides as this record does{where}"
    parameters, notices = changed(rule, used), list[Notice]()
    if "ties" in parameters:
        text = f"Ties between arms are taken as broken at random: {because}. {outcome} {used}."
        notices.append(Notice("ties-at-random", text, round=round))
    if "clock" in parameters:
        counted = "pulls made before the round" if parameters["clock"] == "pulls" else "round itself"
        text = f"In the rule's index, ln t is taken as that of the {counted}: {because}. {outcome} {used}."
        notices.append(Notice("other-clock", text, round=round))
    return notices
