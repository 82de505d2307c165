"""Conventions in which implementations of one rule differ: who wins a tie, and what `t` counts.

With rewards of 0 and 1, indices are equal all the time, and a record of an otherwise right rule is impossible as soon
as one tie went the other way. So before a record is called impossible, the rule is tried as other implementations play
it (`Demonstrator.conventions`), and the evidence decides between those that explain the record.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from unbandit.demonstrators import Demonstrator, RandomisedRule
from unbandit.errors import InferenceError, Notice
from unbandit.inference.draws import infer
from unbandit.inference.filter import CloudCollapsed
from unbandit.inference.hidden import infer_arrivals
from unbandit.inference.prior import Prior
from unbandit.inference.result import Posterior
from unbandit.instance import Noise
from unbandit.log import ActionLog

CLEARLY = math.log(20.0)
"""By how much, as a logarithm, a record must be more probable for each convention that is changed."""


class Convention(NamedTuple):
    """A rule as it was given, and as it is used: the same by another convention, or as given.

    Examples
    --------
    >>> from unbandit import UCB1
    >>> Convention(UCB1(), UCB1(ties="random")).changed
    {'ties': 'random'}
    """

    given: Demonstrator
    used: Demonstrator

    @property
    def changed(self) -> dict[str, Any]:
        """Return the parameters in which the rule that is used differs, with its values."""
        given = self.given.model_dump()
        return {name: value for name, value in self.used.model_dump().items() if value != given[name]}

    @property
    def handicap(self) -> float:
        """Return by how much, as a logarithm, a record must be more probable than under the rule as given."""
        return CLEARLY * len(self.changed)

    def notices(self, round: int | None, outcome: str = "The answer is for") -> list[Notice]:
        """Say which conventions were changed, and why; `outcome` leads to the rule that is used.

        Examples
        --------
        >>> from unbandit import UCB1
        >>> Convention(UCB1(), UCB1(ties="random")).notices(7)[0].message  # doctest: +ELLIPSIS
        'Ties between arms are assumed to be broken at random: no hidden rewards were found under which ucb1:...'
        """
        where = "" if round is None else f" in round {round}"
        because = f"no hidden rewards were found under which {self.given} decides as this log does{where}"
        parameters, notices = self.changed, list[Notice]()
        if "ties" in parameters:
            text = f"Ties between arms are assumed to be broken at random: {because}. {outcome} {self.used}. Values "
            text += "are the same either way, where both explain a log."
            notices.append(Notice("ties-at-random", text, round=round))
        if "clock" in parameters:
            counted = "pulls made before the round" if parameters["clock"] == "pulls" else "round itself"
            text = f"In the rule's index, ln t is taken as that of the {counted}: {because}. {outcome} {self.used}."
            notices.append(Notice("other-clock", text, round=round))
        return notices


def infer_by_conventions(
    log: ActionLog, rule: Demonstrator, prior: Prior, noise: Noise, horizons: Sequence[int], **options: Any
) -> tuple[Posterior, Convention]:
    """Infer as `infer` does, by other conventions where no hidden rewards explain the record under the rule's own.

    Returns the posterior, with a notice if the rule was changed, and the convention that it is for.

    Raises
    ------
    InferenceError
        Where no convention explains the record: what is raised for the rule as given.
    """
    own, refusal, given = None, None, Convention(rule, rule)
    if rule.random_delay is not None and isinstance(rule, RandomisedRule):
        return infer_arrivals(log, rule, prior, noise, horizons, **options), given
    try:
        own = infer(log, rule, prior, noise, horizons, **options)
    except CloudCollapsed as collapsed:
        refusal = collapsed
    strained = next((each.round for each in own.warnings if each.code == "strained"), None) if own is not None else None
    if own is not None and strained is None:
        return own, given
    explained = [] if own is None else [(own, given)]
    for other in rule.conventions(noise):
        with suppress(InferenceError):
            explained.append((infer(log, other, prior, noise, horizons, **options), Convention(rule, other)))
    if not explained:
        assert refusal is not None
        raise refusal
    best, convention = max(explained, key=lambda pair: pair[0].log_evidence - pair[1].handicap)
    where = strained if refusal is None else refusal.round
    return replace(best, warnings=(*convention.notices(where), *best.warnings)), convention
