"""What an answer rests on, and what cannot be known from the log however it is read."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from unbandit.demonstrators import Demonstrator, EliminationRule
from unbandit.estimators.coverage import FITTED, LEVEL, none_like, quote_coverage
from unbandit.estimators.procedures import IN_ORDER
from unbandit.formatting import Unit, counted, listed, number, quoted, share
from unbandit.log import ActionLog
from unbandit.reporting.page import TEXTS, rewards_in
from unbandit.reporting.sentence import reported_quantity
from unbandit.result import ArmEstimate, Estimate

METHODS: dict[str, str] = TEXTS["methods"]
SINGLE_CHOICES = {
    "no": ["What any single choice gave: the log holds choices, and this report gives averages."],
    "some": ["What the choices gave whose rewards are not in the log."],
    "all": [],
}
"""What is open about single choices, by how many rewards are in the log."""


def assumptions(
    answer: Estimate, rule: Demonstrator, log: ActionLog, options: Mapping[str, Any], unit: Unit | None = None
) -> dict[str, str]:
    """Return what the answer rests on, by what it is about, the most important first.

    The answer is in the units of the rewards; what was given stands there in these and in `unit`.
    """
    write = number if unit is None else unit.given
    kinds = (TEXTS["kinds"].get(each.__name__) for each in type(rule).__mro__)
    kind = next(filter(None, kinds), "")
    eliminated = isinstance(rule, EliminationRule) and answer.method in IN_ORDER
    known = rewards_in(log.rewards) if answer.method == "posterior" else "no"
    method = f"elimination-{answer.method}" if eliminated else answer.method + ("" if known == "no" else f"-{known}")
    texts = {
        "The rule": f"{rule.name} made the log. Its principle: \u201c{rule.summary().rstrip('.')}\u201d. {kind} "
        "Another rule, or other parameters, would give other numbers.",
        "Whether it fits": _fits(answer),
        "The log": _record(log, answer),
        "The arms": "What an arm gives on average stayed the same all along, and each reward came by itself: no arm "
        "got better or worse with time, or because another was pulled.",
        "The noise": _noise(answer, options, write),
        "The horizon": _horizon(answer, options),
        "What was known": _known(options, write),
        "The method": METHODS[method],
    }
    if not np.isnan([answer.columns.gap_low, answer.columns.mean_low]).all():
        texts["The level"] = (
            f"Intervals are made to hold the truth in {share(answer.level)} of cases, one arm at a time. Of many arms, "
            "a few intervals miss."
        )
        if answer.check.verdict != "does not fit":  # simulations of another rule say nothing
            texts["The level"] += f" {_in_simulations(answer, rule, log, options)}"
    if options.get("pool"):
        texts["The demonstrations"] = "All were made on the same arms by the same rule."
    if answer.posteriors:
        prior = answer.posteriors[0].prior
        texts["The prior"] = f"The prior on every mean is {prior}: what was believed before the log was seen."
    return texts


def _in_simulations(answer: Estimate, rule: Demonstrator, log: ActionLog, options: Mapping[str, Any]) -> str:
    """Quote how often intervals held in simulations like this log, or say that there are none."""
    posterior, quantity = answer.method == "posterior", reported_quantity(answer)
    if difference := _unlike_simulations(answer, rule, log, options):
        return none_like(difference)
    size = len(answer.arms), int(np.median(log.lengths))
    if fitted := [each.parameter for each in answer.fitted]:
        return quote_coverage(FITTED, "gap", rule, answer.sigma, *size, fitted=fitted)
    return quote_coverage(answer.method, quantity if posterior else "gap", rule, answer.sigma, *size)


def _unlike_simulations(answer: Estimate, rule: Demonstrator, log: ActionLog, options: Mapping[str, Any]) -> str:
    """Say in a few words what was given or asked otherwise than in every simulation, if anything was."""
    anchor, posterior = options.get("anchor") or {}, answer.method == "posterior"
    named = tuple(map(str, anchor))
    of_best = options.get("best_mean") is not None or (
        bool(anchor) and all(tuple(best) == named for best in answer.best_by_demonstration)
    )
    needs_mean = not posterior and (answer.sigma is None or not getattr(rule, "shifts", True))
    texts = {
        f"none with intervals of {share(answer.level)}": answer.level != LEVEL,
        "none of ratios": reported_quantity(answer) == "ratio",
        "none of logs with arms that arrive late or are withdrawn": options.get("availability") is not None,
        "none of pooled demonstrations": options.get("pool"),
        "none of bootstrap intervals": any(notice.code == "bootstrap" for notice in answer.notes),
        "none with sigma assumed": any(notice.code == "sigma-assumed" for notice in answer.warnings),
        "none with a horizon other than the log's length": not np.array_equal(answer.horizons, log.lengths),
        "none of posteriors that know a mean or rewards": posterior and (of_best or anchor or log.rewards is not None),
        "none of posteriors with such a prior or number of particles": posterior
        and (options.get("prior") is not None or options.get("particles") is not None),
        "none with the mean of another arm than the best": anchor and not of_best,
        "none without the best arm's mean": needs_mean and not of_best,
    }
    return next((text for text, applies in texts.items() if applies), "")


def _fits(answer: Estimate) -> str:
    """Say whether the rule was checked, and how that went."""
    check = answer.check
    reason = f" {check.reason}" if check.reason else ""
    if check.verdict == "not checked":
        return f"Not checked.{reason} If another rule made the log, the numbers are wrong."
    if check.verdict == "does not fit":
        return f"It does not ({check.chance}): see the beginning of this report."
    return (
        f"Nothing speaks against it ({check.chance}, {check.simulations:,} simulations of the rule).{reason} That does "
        "not prove the rule: another one may fit as well."
    )


def parameters(rule: Demonstrator) -> list[tuple[str, str, str]]:
    """List a rule's parameters that are set, its own first: name, value, meaning."""
    fields, last = type(rule).model_fields, {"ties", "clock", *rule.unwritten}
    return [
        (name, f"{value:.10g}" if isinstance(value, float) else str(value), fields[name].description or "")
        for name, value in sorted(rule.model_dump().items(), key=lambda item: item[0] in last)
        if value is not None
    ]


def _record(log: ActionLog, answer: Estimate) -> str:
    if not log.ordered:
        return "The counts are complete: every pull from the first round to the last is in them."
    codes = {notice.code for notice in answer.notes}
    if "mid-run" in codes:
        return "The log begins in mid-run, after the pulls that were given, and no round is missing since."
    if "begins-late" in codes:
        return "The log begins in mid-run, after rounds of any arms, and no round is missing since."
    if codes & {"thinned", "missing-rounds"}:
        at_random = "thinned" in codes or answer.posteriors
        lost = "whatever arm was pulled in it, with the same probability" if at_random else "for any reason"
        return f"The log misses rounds; it is in order otherwise. A round got lost {lost}."
    known = "" if rewards_in(log.rewards) == "no" else "The rewards in it are those that the rule saw."
    several = "each demonstration" if len(answer.horizons) > 1 else "it"
    whole = f"The log is whole and in order: {several} begins with the first round, and no round is missing."
    there = " ".join(notice.message for notice in answer.notes if notice.code == "availability")
    return " ".join(filter(None, (whole, there and f"{there} That is as was given.", known)))


def _noise(answer: Estimate, options: Mapping[str, Any], write: Callable[[float], str]) -> str:
    if options.get("scale") == "unknown":
        return "How much rewards vary was not needed: only proportions are given."
    if answer.sigma is None:
        return "Rewards are 0 or 1, so an arm's mean determines how much they vary."
    scatter = f"Rewards vary around their arm's mean with a standard deviation of {write(answer.sigma)}"
    if options.get("sigma") is not None:
        return f"{scatter}, as was given."
    if any(notice.code == "sigma-assumed" for notice in answer.warnings):
        return f"{scatter}. This was assumed, because no value was given. The length of the intervals depends on it."
    return f"{scatter}, as the rule's own sigma says."


def _horizon(answer: Estimate, options: Mapping[str, Any]) -> str:
    shortest, longest = min(answer.horizons), max(answer.horizons)
    if options.get("horizon") is not None:
        return f"The run was meant to have {counted(longest, 'round')}, as was given."
    long = counted(longest, "round") if shortest == longest else f"{shortest:,} to {longest:,} rounds, each its own"
    return f"The run ended with the log, after {long}, and the rule knew that from the start if it uses it at all."


def _known(options: Mapping[str, Any], write: Callable[[float], str]) -> str:
    anchor = options.get("anchor") or {}
    if len(anchor) + (options.get("best_mean") is not None) > 1:
        means = [f"{quoted(str(arm))} ({write(value)})" for arm, value in anchor.items()]
        if options.get("best_mean") is not None:
            means.insert(0, f"the best arm ({write(options['best_mean'])})")
        more = f" and {len(means) - 6:,} more" if len(means) > 6 else ""
        return f"The means of {', '.join(means[:6])}{more}, as was given. All others follow from where these agree."
    if options.get("best_mean") is not None:
        return f"The best arm's mean is {write(options['best_mean'])}, as was given. All other means follow from it."
    if options.get("anchor"):
        ((arm, value),) = options["anchor"].items()
        return f"The mean of {quoted(str(arm))} is {write(value)}, as was given. All other means follow from it."
    return "No arm's mean was given."


def open_questions(
    answer: Estimate, rule: Demonstrator, log: ActionLog, rows: Sequence[ArmEstimate], options: Mapping[str, Any]
) -> list[str]:
    """List what this log leaves open; `rows` are the first demonstration's, best first."""
    best, posterior = answer.best_by_demonstration[0], answer.method == "posterior"
    known = rewards_in(log.rewards)
    texts = [*SINGLE_CHOICES[known], *_level(rule, options, len(log.arms), known=known != "no" and posterior)]
    if len(best) != 1:
        among = f"{listed(best, 6)}" if best else "the arms"
        texts.append(f"Which of {among} is the best. Each of them may be, and the log ends before it is settled.")
    named_best = set(best)
    for verdict, text in (
        ("bounded", "Where exactly {} {}. The log gives a bound, and anything beyond it is possible."),
        ("unseen", "Anything at all about {}: never pulled."),
    ):
        names = [row.arm for row in rows if row.verdict == verdict and row.arm not in named_best]
        if names:
            texts.append(text.format(listed(names, 4), "lies" if len(names) == 1 else "lie"))
    quantity = reported_quantity(answer)
    intervals = (row.interval(quantity) for row in rows)
    ends = [(low, high) for low, high in intervals if low is not None and high is not None]
    overlapping = sum(max(one[0], other[0]) <= min(one[1], other[1]) for one, other in pairwise(ends))
    if overlapping:
        texts.append(
            f"Which comes first where intervals overlap, as they do for {counted(overlapping, 'pair')} of neighbours "
            "in the ranking. Their order is a best guess."
        )
    if not log.ordered:
        texts.append("When each arm was pulled, and so whether the choices fit the rule round by round.")
    texts.append(
        f"Whether {rule.name} really made the log. Where a log visibly does not fit, a warning says so; a short "
        "one may not show it. Other rules, or the same with other parameters, may explain it as well."
    )
    texts.append("Whether the arms changed while the log was made, and what they are worth now.")
    return texts


def _level(rule: Demonstrator, options: Mapping[str, Any], arms: int, *, known: bool) -> list[str]:
    """Say whether the common level of all means is open; it is not where rewards are known."""
    if options.get("scale") == "unknown":
        if arms == 2:
            return ["How large the gap is. One factor of it is unknown, and there is no other gap to hold it against."]
        return ["How large any gap is. All gaps share one unknown factor; only their proportions are known."]
    if options.get("best_mean") is not None or options.get("anchor") or known or not getattr(rule, "shifts", True):
        return []
    return [
        "How much the arms are worth in all: if every reward were higher by the same amount, the choices would have "
        "been the same. Only differences are known. One known mean would determine the rest."
    ]
