"""The report of a log with features: coefficients, their figure, the best arm, and whether the rule fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unbandit.contexts.clouds import particles_for
from unbandit.contexts.rule import LinearRule, linear_rule_or_family
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import Audience, Notice, python_option
from unbandit.estimators.coverage import CONTEXTS, LEVEL, none_like, quote_coverage
from unbandit.formatting import counted, interval, number, plural, probability, share, short_numbers, shown
from unbandit.log.columns import noun_of
from unbandit.plots.estimate import coefficients
from unbandit.reporting.figures import ReportFigure, as_figure
from unbandit.reporting.page import (
    Explanation,
    NoticeGroup,
    Page,
    basics,
    group_notices,
    main_part,
    rewards_in,
    said_of_rewards,
)  # fmt: skip
from unbandit.reporting.provenance import LogSource
from unbandit.tables import same_decimals

if TYPE_CHECKING:
    from unbandit.contexts.log import ContextLog
    from unbandit.contexts.posterior import ContextPosterior
    from unbandit.contexts.result import ContextEstimate

MOST_LEARNERS, MOST_ARMS = 20, 10  # of more, the first ones are shown

WORDS = {
    "round": "One moment at which an offer was chosen. In a table with a row for each offer, the rows of one round "
    "belong together; in one without a mark of the chosen offer, a row is a round.",
    "coefficient": "By how much a reward grows, on average, if a feature grows by 1 and the others stay.",
    "estimated": "The log shows the coefficient.",
    "bounded": "The log narrows it, but half or more of the prior's deviation is left.",
    "unseen": "The log says hardly anything about it: what is shown is the prior.",
    "best offer": "In how many of the rounds in which an arm was offered no other offer was worth more. Features and "
    "offers change from round to round, and with them the best arm.",
    "direction": "Choices compare offers. That shows which features matter more than others, long before it shows by "
    "how much: the direction is known better than the length.",
}


FITS = Explanation(
    "The rule fits the log",
    "No other rule that was tried is clearly better. That does not prove the rule: similar ones may fit as well.",
)
DOES_NOT_FIT = Explanation(
    "The rule does not fit the log",
    "Other rules or other numbers make these choices far more probable. Every number of this report was computed as if "
    "the rule had made the log, so none of them can be relied on.",
    "Check the rule and its numbers, the noise of the rewards, the prior, and that every feature which the learner "
    "used is named. What explains the choices best is named in the warning.",
)


@dataclass(frozen=True, repr=False)
class ContextReport(Page):
    """A log with features ready to be read by people; `answer` is the `ContextEstimate` that it is about."""

    answer: ContextEstimate


def context_report(
    log: ContextLog, answer: ContextEstimate, *, command: str, source: LogSource | None = None, seed: int = 0,
    audience: Audience = python_option,
) -> ContextReport:  # fmt: skip
    """Write a report about what `estimate_contexts` found in a log; `command` is what reproduces it."""
    from unbandit.contexts.result import warnings_and_notes

    found, learners = answer.posterior, list(answer.posteriors.items())[:MOST_LEARNERS]
    title = "What a learner found out" + ("" if source is None else f": {shown(Path(source.name).name)}")
    said, rule = context_sentence(answer), short_numbers(found.rule)
    warnings, notes = warnings_and_notes(log, answer.notices)
    rounds = counted(sum(each.rounds for each in answer.posteriors.values()), "choice")
    based = f"Based on {rounds} among {counted(len(log.arms), 'arm')} made by {rule}."
    main = main_part(
        "contexts.html", title=title, sentence=said, level=share(found.level),
        overview=f"{based} {said_of_rewards(log.rewards)}",
        warnings=_grouped(warnings, log, audience), notes=_grouped(_said_once(notes, answer), log, audience),
        learners=[_learner(answer, name, each) for name, each in learners],
        left_out=len(answer.posteriors) - len(learners),
        by_arm=found.names[0][1] is not None,
        pictures=[_figure(each, name if answer.several else None, answer.noun) for name, each in learners[:1]],
        check=_check(answer), words=basics(rewards_in(log.rewards), answer.noun) | WORDS, noun=answer.noun,
        assumptions=_assumptions(answer, log),
        command=command, in_python=False, source=source, seed=seed,
    )  # fmt: skip
    return ContextReport(title, said, main, answer)


def context_sentence(answer: ContextEstimate) -> str:
    """Say in one sentence which coefficients are known, or why none should be relied on."""
    from unbandit.contexts.result import degrees

    found = answer.posterior
    if answer.check.verdict == "does not fit":
        return "The rule does not fit the choices, so the coefficients cannot be relied on."
    if any(each.code == "few-particles" for each in answer.notices):
        return "Too few particles explain the choices, so the coefficients cannot be relied on."
    known = found.verdicts.count("estimated")
    total = counted(len(found.names), "coefficient")
    many = len(answer.posteriors)
    opening, ending = (
        (f"In the first of {counted(many, answer.noun)}, the", " Each is read by itself.") if many > 1 else ("The", "")
    )
    return (
        f"{opening} choices show {known:,} of {total}; their direction is known to {degrees(found.angle)} "
        f"and their length is {interval(*found.length())}.{ending}"
    )


def _said_once(notes: Sequence[Notice], answer: ContextEstimate) -> list[Notice]:
    """Leave out of notes that a rule fits what it was compared with: the section about the check says it."""
    reasons = {found.check.reason for found in answer.posteriors.values()} - {None, ""}

    def brief(text: str) -> str:
        for reason in reasons:
            text = text.replace(f": {reason}", ".").replace(f" {reason}", "")
        return text

    return [replace(each, text=brief(each.text)) if each.code == "fits" else each for each in notes]


def _grouped(notices: Sequence[Notice], log: ContextLog, audience: Audience) -> list[NoticeGroup]:
    """Group notices by kind; what the check of a log with features means is said in its own words."""
    own = {"fits": FITS, "does-not-fit": DOES_NOT_FIT}
    groups = group_notices(notices, log.arms, audience, noun_of(log.demonstrations))
    return [each._replace(words=own.get(each.code, each.words)) for each in groups]


def _learner(answer: ContextEstimate, name: str, found: ContextPosterior) -> dict[str, Any]:
    """Return the tables of one demonstration."""
    lows, highs = found.interval()
    values = [float(value) for column in (found.mean, lows, highs) for value in column]
    alike = min(map(abs, found.mean)) > max(map(abs, values)) / 100  # features may have units of their own
    write = same_decimals(values) if alike else number
    rows, best = zip(found.names, found.mean, lows, highs, found.verdicts, strict=True), answer.best[name]
    return {
        "name": shown(name) if answer.several else "",
        "rows": [
            {"feature": shown(feature), "arm": None if arm is None else shown(arm), "value": write(value),
             "interval": interval(low, high, write), "verdict": verdict}
            for (feature, arm), value, low, high, verdict in rows
        ],
        "best": [
            (shown(each.arm), f"{each.offered:,}", f"{each.chosen / each.offered:.0%}", f"{each.best:.0%}",
             f"{each.low:.0%} to {each.high:.0%}", *([probability(best[each.arm])] if best else []))
            for each in answer.offers[name][:MOST_ARMS]
        ],
        "more": max(len(answer.offers[name]) - MOST_ARMS, 0),
    }  # fmt: skip


def _figure(found: ContextPosterior, demonstration: str | None, noun: str) -> ReportFigure:
    """Draw the coefficients, and describe the figure for readers who cannot see it."""
    low, high = found.interval()
    away = int(((low > 0) | (high < 0)).sum())
    of = "" if demonstration is None else f" of {noun} {shown(demonstration)}"
    alt = f"Chart of {counted(len(found.names), 'coefficient')}{of}; intervals of {away:,} do not contain 0."
    caption = f"Each row is a coefficient{of}: its expectation, hollow if it is not estimated, and its interval."
    return as_figure(lambda: coefficients(found), "coefficients", "Coefficients with their intervals", caption, alt)


def _check(answer: ContextEstimate) -> str:
    """Say whether the rule fits."""
    check = answer.check
    if check.verdict == "not checked":
        return "Whether the rule fits was not checked."
    if check.verdict == "fits" and check.failed:
        return f"Taken together, the {plural(answer.noun)} fit ({check.chance}). {check.reason}"
    if check.verdict == "fits":
        return f"Other rules and other numbers do not explain the choices far better ({check.chance}). {check.reason}"
    which = f" {len(check.failed):,} of {counted(check.checked, answer.noun)}" if answer.several else ""
    return f"The rule does not fit{which} ({check.chance}). The warnings below say what explains the choices better."


def _assumptions(answer: ContextEstimate, log: ContextLog) -> dict[str, str]:
    """Return what was taken for granted."""
    found = answer.posterior
    features = ", ".join(map(shown, log.feature_names))
    return {
        "rule": f"The learner chose by {short_numbers(found.rule)}, with these features alone: {features}.",
        "rewards": f"Rewards are linear in them, with normal noise of deviation {number(found.sigma, 3)}.",
        "prior": f"Beforehand every coefficient is normal around 0 with deviation {number(found.prior, 3)}.",
        "level": _in_simulations(answer, log),
    }


def _in_simulations(answer: ContextEstimate, log: ContextLog) -> str:
    """Quote how often intervals held in simulations like this log, or say that there are none."""
    found = answer.posterior
    rule = _example(found.rule)
    texts = {
        f"none with intervals of {share(found.level)}": found.level != LEVEL,
        "none with known rewards": log.rewards is not None,
        "none with such a prior or number of particles": found.prior != 1.0
        or found.particles != particles_for(rule.kind, found.rounds),
    }
    if other := next((text for text, applies in texts.items() if applies), ""):
        return none_like(other)
    return quote_coverage(
        CONTEXTS, "coefficient", rule, found.sigma, len(log.arms), found.rounds,
        features=len(log.feature_names), read=_example, fitted=[each.parameter for each in found.fitted],
    )  # fmt: skip


def _example(text: str) -> LinearRule:
    """Read a rule for logs with features; of one with a number to be fitted, an example."""
    found = linear_rule_or_family(text)
    example: LinearRule = found.example if isinstance(found, RuleFamily) else found
    return example
