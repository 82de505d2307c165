"""The report of a log whose rule nobody knows: which rules are possible, and the values averaged over them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from unbandit import checks
from unbandit.errors import AssumptionWarning, Audience, InferenceError, NotIdentifiable, phrase, python_option
from unbandit.estimators.arguments import as_log, one_demonstration, shows_part, told_availability
from unbandit.estimators.availability import said_of_table
from unbandit.estimators.posterior import posterior_row
from unbandit.formatting import (
    Unit,
    by_reason,
    capitalise,
    column_share,
    counted,
    joined,
    number,
    probability,
    quoted,
    share,
    short_numbers,
    shown,
    times,
)
from unbandit.identification import Identification, identify
from unbandit.identification.evidence import Contender
from unbandit.identification.values import said_of_parameters
from unbandit.inference import Posterior
from unbandit.instance import Bernoulli
from unbandit.log import ActionLog
from unbandit.log.availability import Availability
from unbandit.log.columns import only
from unbandit.log.tallies import is_record
from unbandit.reporting.api import MOST_TABLES, MOST_TOGETHER, renamed_arms, shared_axis, together
from unbandit.reporting.figures import FigureData, ReportFigure, as_figure, draw_believed, draw_choices
from unbandit.reporting.page import (
    GLOSSARY,
    ONE_PAGE,
    WHOLE,
    Page,
    basics,
    group_notices,
    main_part,
    ranked_table,
    rewards_in,
    said_of_rewards,
)
from unbandit.reporting.provenance import LogSource, call_line, command_line, heading_of, opened
from unbandit.reporting.sentence import reported_quantity, sentence
from unbandit.result import NUMBERS, Columns, Estimate, Quantity, marked

MOST_VALUED = 40  # demonstrations whose arms are valued, of which the first have tables
SIGN = "shows-"  # how the codes begin of what a log that no rule explains shows by itself
IMPROBABLE = 0.001  # a candidate with a smaller probability is ruled out

WORDS = {
    "candidate": "A rule that may have made the log. Its unknown numbers are averaged over, not chosen.",
    "probability": "How probable a candidate is after this log, if all were equally likely before it and one of them "
    "made it. A rule that is not among the candidates has none.",
    "times less probable": "How many times smaller the probability of this log is under a candidate than under the "
    "first one.",
    "ruled out": "A candidate that cannot have made the log, hardly ever makes one like it, or has a probability below "
    "0.001.",
    **{word: GLOSSARY[word] for word in ("gap", "p", "sigma", "prior")},
    "is the best": "The probability that the arm is the best of all, averaged over the rules that are still probable.",
}


@dataclass(frozen=True, repr=False)
class IdentificationReport(Page):
    """An identification ready to be read by people; `answer` is None where no candidate can have made the log."""

    answer: Identification | None


def identification_report(
    log: ActionLog | str | os.PathLike[str] | Any, candidates: Any = None, *, source: LogSource | None = None,
    name: str | None = None, command: str | None = None, progress: Callable[[str, float], None] | None = None,
    audience: Audience = python_option, title: str | None = None, author: str | None = None, date: str | None = None,
    names: Mapping[str, str] | None = None, unit: str | tuple[str, float] | None = None, short: bool = False,
    level: float = 0.95, demonstration: object = None, **options: Any,
) -> IdentificationReport:  # fmt: skip
    """Find the rules that may have made a log, and write a report about them and the arms' values.

    Where nothing can be said about the rule or the values, the report says so, and shows what the choices are.

    Parameters
    ----------
    log, candidates, demonstration
        As for `identify`.
    source, name, command, progress, audience, title, author, date, names, unit, short
        As for `report`.
    level
        Of the intervals.
    **options
        Options of `identify`.
    """
    texts = {"title": title, "author": author, "date": date}
    log, source, say = opened(log, source, progress, name=name, command=command, **texts)
    checks.flag("short", short)
    level, shown_in = checks.level(level), checks.unit(unit)
    log = one_demonstration(log, demonstration, "report")
    is_part = is_record(log) and shows_part(log)
    record = as_log(log.rows if is_part else log, "report")
    if names:
        record = renamed_arms(record, {str(arm): str(called).strip() for arm, called in names.items()}, options=options)
    say("Identifying the rule", 0.05)
    found, refusal, refuted = None, "", False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)  # the report explains them
        try:
            found = identify(log if is_part else record, candidates, **options)  # which says why it reads no part
        except (NotIdentifiable, InferenceError) as error:
            refusal, refuted = error.said(audience), bool(error.count)
        say("Estimating", 0.7)
        answer = None if found is None else _as_estimate(found, level)
        if answer is not None and shown_in is not None:
            answer = answer.in_unit(shown_in)
        say("Drawing the figures", 0.8)
        told = None if options.get("availability") is None else told_availability(record, options["availability"])
        told = None if told is None else told.within(int(record.lengths.max()))
        pictures = _pictures(found, answer, record, told, short=short)
    say("Writing the report", 0.9)
    asked = options | {"candidates": candidates, "names": names, "level": level, "short": short} | texts
    asked |= {"demonstration": demonstration, "unit": shown_in}
    in_python = command is None and (source is None or bool(names))
    composed = call_line("reporting.identification_report", "log", asked)
    if source is not None and not in_python:
        composed = command_line(source.name, [], asked)
    heading = heading_of("Which rule made this log, and what the arms were worth", source, name, **texts)
    said = identification_sentence(found, answer, record, refuted=refuted)
    several = len(record) > 1
    left_out = 0 if answer is None else len(record) - len(answer.demonstrations)
    noted = (
        () if found is None else [each for each in found.notes if left_out or each.code != "values-by-demonstration"]
    )
    in_unit = () if answer is None else answer.notes  # that values are in the unit
    notices = (() if found is None else found.warnings, (*in_unit, *record.reading, *noted))
    main = main_part(
        "identification.html", **heading, short=short, sentence=said, overview=_overview(record, found),
        refusal=refusal, least_bad=_least_bad(found, audience),
        signs=[phrase(each.text, audience) for each in (found.notes if found else ()) if each.code.startswith(SIGN)],
        candidates=[] if found is None else _candidate_rows(found),
        ruled_out={} if found is None else _ruled_out(found, audience),
        averaged=[] if found is None else found.averaged,
        quantity="gap" if answer is None else reported_quantity(answer),
        unit=None if shown_in is None else shown_in.name, level=share(level),
        tables=[] if answer is None or (short and several) else _tables(answer, several=several, short=short),
        valued_left_out=left_out,
        tables_left_out=0 if answer is None else len(record) - min(len(answer.demonstrations), MOST_TABLES),
        together=None if answer is None or len(answer.demonstrations) == 1
        else together(answer, reported_quantity(answer), ONE_PAGE.most if short else MOST_TOGETHER),
        choices=_choices(record, ONE_PAGE.most if short else WHOLE.most),
        pictures=pictures, pictures_of=record.demonstrations[0] if several and not short else None,
        warnings=group_notices(notices[0], record.arms, audience, record.noun),
        notes=group_notices(notices[1], record.arms, audience, record.noun),
        words=basics(rewards_in(record.rewards), record.noun) | WORDS, noun=record.noun,
        assumptions={} if found is None else _assumptions(found, shown_in),
        command=command or composed, in_python=in_python, source=source, seed=options.get("seed", 0),
    )  # fmt: skip
    say("Done", 1.0)
    return IdentificationReport(heading["title"], said, main, found)


def identification_sentence(
    found: Identification | None, answer: Estimate | None, record: ActionLog, *, refuted: bool
) -> str:
    """Say which rule it was, or which it may have been, and which arm is the best; else what is certain.

    Where nothing is found, `refuted` is whether that is because no candidate can have made the log.
    """
    pulls = record.pulls.sum(axis=0)
    most = int(pulls.argmax())
    certain = (
        f"What is certain are the choices: {quoted(record.arms[most])} was chosen most often, in "
        f"{share(pulls[most] / pulls.sum(), 3)} of {counted(int(pulls.sum()), 'round')}."
    )
    if found is None:
        why = (
            "No rule that was tried can have made this log" if refuted else "This log does not show which rule made it"
        )
        return f"{why}. {certain}"
    verdict = f"{capitalise(found.answer())}."
    if answer is None:
        why = "" if found.verdict == "none fits" else " It shows nothing of what the arms were worth."
        return f"{verdict}{why} {certain}"
    first = f"the first {len(answer.demonstrations)} of {counted(len(record), record.noun)}: "
    first = first if len(answer.demonstrations) < len(record) else ""
    said = sentence(answer, answer.ranked(answer.demonstrations[0]))
    return f"{verdict} {capitalise(first)}{said}"


def _as_estimate(found: Identification, level: float) -> Estimate | None:
    """Return the values averaged over what is possible, of the first demonstrations; None where nothing is known."""
    if found.verdict == "none fits":
        return None
    request = found.question
    posteriors: dict[int, Posterior] = {}
    for which in range(min(len(request.log), MOST_VALUED)):
        values = found.demonstration_values(which)
        if values is not None:
            posteriors[which] = values
    if not posteriors:
        return None
    rows = [posterior_row(each, level) for each in posteriors.values()]
    shows_means = isinstance(request.noise, Bernoulli) or request.log.rewards is not None
    nothing = np.full((len(rows), len(request.log.arms)), np.nan)
    numbers = {
        name: np.array([row[0][name] for row in rows]) if name in rows[0][0] and (shows_means or "mean" not in name)
        else nothing for name in NUMBERS
    }  # fmt: skip
    columns = Columns(request.log.pulls[list(posteriors)], **numbers, verdict=np.array([row[1] for row in rows]))
    return Estimate(
        rule=" or ".join(found.averaged), method="posterior", arms=request.log.arms,
        demonstrations=only(request.log.demonstrations, *posteriors), columns=columns,
        horizons=tuple(request.horizons[which] for which in posteriors), level=level, sigma=request.sigma,
        best_by_demonstration=marked(np.array([row[2] for row in rows]), request.log.arms),
        posteriors=tuple(posteriors.values()), check=found.check,
    )  # fmt: skip


def _overview(record: ActionLog, found: Identification | None) -> str:
    """Say what the answer was read off."""
    several = f" in {counted(len(record), record.noun)}" if len(record) > 1 else ""
    rules = 0 if found is None else len(found.candidates)
    tried = f" {rules:,} rules were compared." if rules > 1 else ""  # of one, the sentence says that no other was
    choices, arms = counted(int(record.lengths.sum()), "choice"), counted(len(record.arms), "arm")
    return f"Based on {choices} among {arms}{several}. {said_of_rewards(record.rewards)} The rule was not given.{tried}"


def _least_bad(found: Identification | None, audience: Audience) -> str:
    """Say which rule is the most probable of those that do not fit, and why it does not; nothing where one fits."""
    if found is None or found.verdict != "none fits":
        return ""
    leading, reason = found.leading, phrase(found.check.reason or "", audience)
    return f"{short_numbers(leading.name)} is the most probable of them ({found.check.chance}). {reason}".strip()


def _candidate_rows(found: Identification) -> list[dict[str, str]]:
    """Return the candidates that are possible, the most probable first."""
    best = found.leading.evidence.value
    rows = []
    for each in found.candidates:
        if _is_out(found, each):
            continue
        behind = best - each.evidence.value
        rows.append(
            {
                "name": short_numbers(each.name),
                "probability": "–" if found.question.alone else probability(each.probability),
                "behind": "" if each is found.leading or behind <= 0 else times(behind),
                "fits": f"yes, {each.check.chance}" if each.check.verdict == "fits" else "not checked",
                "parameters": said_of_parameters(each),
            }
        )
    return rows


def _is_out(found: Identification, candidate: Contender) -> bool:
    """Return whether a candidate cannot have made the log, does not fit it, or is far too improbable."""
    improbable = candidate.probability < IMPROBABLE and candidate.name not in found.left
    return not candidate.possible or candidate.check.verdict == "does not fit" or improbable


def _ruled_out(found: Identification, audience: Audience) -> dict[str, str]:
    """Return why candidates are not possible, by the names that share a reason."""
    leading, reasons = found.leading, []
    for each in found.candidates:
        if _is_out(found, each):
            behind = leading.evidence.value - each.evidence.value
            reason = (
                each.reason or f"the log is {times(behind)} times less probable under it than under {leading.name}."
            )
            reasons.append((short_numbers(each.name), capitalise(phrase(reason, audience))))
    return by_reason(reasons)


def _tables(answer: Estimate, *, several: bool, short: bool) -> list[dict[str, Any]]:
    """Return a table of arms for each demonstration."""
    quantity: Quantity = reported_quantity(answer)
    tables, axis = [], shared_axis(map(answer.ranked, answer.demonstrations), quantity)
    for name, posterior in list(zip(answer.demonstrations, answer.posteriors, strict=True))[:MOST_TABLES]:
        chances = {
            arm: probability(chance) for arm, chance in zip(answer.arms, posterior.probability_best, strict=True)
        }
        tables.append(
            ranked_table(
                answer.ranked(name), quantity, {}, name if several else None, chances=chances,
                limits=ONE_PAGE if short else WHOLE, axis=axis,
            )
        )  # fmt: skip
    return tables


def _choices(record: ActionLog, most: int) -> tuple[list[str], list[list[str]], int]:
    """Return what is certain: how often each arm was chosen and, where the order is known, how often lately."""
    pulls = record.pulls.sum(axis=0)
    order = np.argsort(-pulls, kind="stable")
    total = max(int(pulls.sum()), 1)
    columns = [[shown(record.arms[at]), f"{pulls[at]:,}", column_share(pulls[at] / total)] for at in order[:most]]
    headings = ["arm", "chosen", "share"]
    if record.ordered:
        headings.append("last tenth")
        last = np.zeros(len(record.arms), np.int64)
        for which in range(len(record)):
            codes = record.demonstration(which)
            last += np.bincount(codes[-max(codes.size // 10, 1) :], minlength=len(record.arms))
        for at, row in zip(order, columns, strict=False):
            row.append(column_share(last[at] / max(int(last.sum()), 1)))
    return headings, columns, max(len(order) - most, 0)


def _pictures(
    found: Identification | None, answer: Estimate | None, record: ActionLog, there: Availability | None, *, short: bool
) -> list[ReportFigure]:
    """Draw the candidates, the values and the choices; for one page the values alone, or the choices."""
    if found is None or answer is None:
        return draw_choices(record, there)
    quantity = reported_quantity(answer)
    rows = answer.ranked(answer.demonstrations[0])
    data = FigureData(record, found.leading.guesses[0].rule, {}, answer, quantity, rows, {}, availability=there)
    figures = draw_believed(data)
    return figures[:1] if short else [*figures, _evidence(found)]


def _evidence(found: Identification) -> ReportFigure:
    """Draw the candidates, and describe the figure for readers who cannot see it."""
    from unbandit.plots.posterior import draw_evidence

    possible = [each.name for each in found.candidates if each.possible]
    alt = f"Chart of how probable {counted(len(found.candidates), 'candidate')} make this log. "
    out = len(found.candidates) - len(possible)
    alt += f"{possible[0]} makes it most probable; {counted(out, 'is', 'are')} ruled out."
    return as_figure(
        lambda: draw_evidence(found),
        "candidates-drawn",
        "How probable each rule makes this log",
        "Each row is a rule. The further to the right, the less probable the log is under it. To the right of the "
        "dashed line it is more than 20 times less probable than under the first rule.",
        alt,
    )


def _assumptions(found: Identification, unit: Unit | None) -> dict[str, str]:
    """Return what was taken for granted; sigma stands there in the units of the rewards and in `unit`."""
    asked = found.question
    write = partial(number, digits=3) if unit is None else unit.given
    noise = "Rewards are 0 or 1." if isinstance(asked.noise, Bernoulli) else (
        f"Rewards vary around their arm's mean with a standard deviation of {write(asked.noise.sigma)}."
    )  # fmt: skip
    every = [each.name for each in found.candidates]
    limits = "" if asked.there is None else f" {said_of_table(asked.there).text}"
    return {
        "rule": f"One of these made the whole log: {joined(every, 'or')}. All were equally likely before.",
        "numbers": "Numbers of a rule that nobody knows are averaged over, by how probable each value is.",
        "rewards": noise,
        "prior": f"Beforehand every arm's mean is taken from {asked.prior}.",
        "arms": f"What an arm is worth does not change during the log.{limits}",
    }
