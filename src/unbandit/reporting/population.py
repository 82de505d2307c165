"""The report of a population: its parameters, a forest plot, and every participant, pooled and alone."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from unbandit import checks
from unbandit.demonstrators import Demonstrator
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import AssumptionWarning, Audience, Notice, python_option
from unbandit.estimators.arguments import as_log
from unbandit.formatting import (
    Unit,
    column_share,
    counted,
    fixed,
    interval,
    joined,
    number,
    share,
    short_numbers,
    shown,
)  # fmt: skip
from unbandit.hierarchy import Population, population
from unbandit.hierarchy.likelihood import rule_of_people
from unbandit.instance import Bernoulli
from unbandit.log import ActionLog
from unbandit.reporting.api import renamed_arms
from unbandit.reporting.figures import ReportFigure, as_figure, draw_shares
from unbandit.reporting.page import (
    Page,
    basics,
    fit_section,
    group_notices,
    main_part,
    misfit,
    rewards_in,
    said_of_rewards,
)  # fmt: skip
from unbandit.reporting.provenance import LogSource, call_line, command_line, heading_of, opened
from unbandit.tables import decimals, same_decimals

MOST_PARTICIPANTS = 200  # of more, the first ones are listed
MOST_ARMS = 50  # likewise
MOST_APART = 100  # how many times larger one number of a column may be for all to have as many decimals
ON_AVERAGE = "participants on average"  # whose statistics the check compares

WORDS = {
    "population": "All who might have taken part. The participants are some of them, and show how common each value of "
    "a parameter is.",
    "typical value": "The population's median: half of the participants have less, half more.",
    "two thirds of them": "Where about two thirds of the participants lie, in the unit of the parameter: within one "
    "spread of the typical value. Where the participants may hardly differ, it is the widest such range.",
    "spread": "A standard deviation over participants, on the scale of the log odds for a number between 0 and 1, of "
    "the logarithm for other numbers. A spread of 0.5 of the logarithm puts two thirds of the participants within a "
    "factor of 1.65 of the typical one.",
    "pooled": "A participant's value, given that participant's choices and the population that all participants show.",
    "best for a participant": "How probable it is that the arm is a participant's best one, averaged over them. "
    "Every participant has values of their own, so the arm may be best for some and not for others.",
    "best arm": "How probable it is that the arm is the best one. All participants share the arms' values.",
    "alone": "What the choices of that participant say without the others.",
    "shrinkage": "By how much, on average, pooled values are nearer to the centre than those alone. Near 100% what is "
    "shown for a participant is the population, near 0% it is the participant's own.",
    "prior": "What is taken to be known about the arms' means before any choice is seen.",
}


@dataclass(frozen=True, repr=False)
class PopulationReport(Page):
    """A population's answer ready to be read by people; `answer` is the `Population` that it is about."""

    answer: Population


def population_report(
    log: ActionLog | str | os.PathLike[str] | Any, rule: Demonstrator | RuleFamily | str, *,
    source: LogSource | None = None, name: str | None = None, command: str | None = None,
    progress: Callable[[str, float], None] | None = None, audience: Audience = python_option,
    title: str | None = None, author: str | None = None, date: str | None = None,
    names: Mapping[str, str] | None = None, unit: str | tuple[str, float] | None = None, short: bool = False,
    **options: Any,
) -> PopulationReport:  # fmt: skip
    """Estimate a rule's parameters in a population, and write a report about it.

    Parameters
    ----------
    log, rule
        As for `population`.
    source, name, command, progress, audience, title, author, date, names, short
        As for `report`.
    unit
        In which unit values of arms are shown, as for `report`; parameters of participants stay as the rule has them.
    **options
        Options of `population`.
    """
    texts = {"title": title, "author": author, "date": date}
    log, source, say = opened(log, source, progress, name=name, command=command, **texts)
    checks.flag("short", short)
    shown_in = checks.unit(unit)
    record, assumed = as_log(log, "population"), rule_of_people(rule)
    if names:
        names = {str(arm): str(called).strip() for arm, called in names.items()}
        record = renamed_arms(record, names, options=options)
    say("Estimating", 0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)  # the report explains them
        found = population(record, assumed, **options)
    say("Writing the report", 0.9)
    asked = options | texts | {"names": names or None, "unit": shown_in, "short": short}
    in_python = command is None and (source is None or bool(names))  # the shell takes names from a file
    composed = call_line("reporting.population_report", f'log, "{found.rule}"', asked)
    if source is not None and not in_python:
        composed = command_line(source.name, ["--rule", found.rule], asked | {"population": True})
    heading = heading_of("Many people, one population", source, name, **texts)
    said = population_sentence(found)
    in_unit: tuple[Notice, ...] = ()
    if shown_in is not None:
        text = f"Values of arms are in {shown_in.name}: those of the rule's rewards times {number(shown_in.factor, 6)}."
        in_unit = (Notice("values-in-unit", text),)
    main = main_part(
        "population.html", **heading, short=short, sentence=said, overview=_overview(found, record),
        level=share(found.level),
        warnings=group_notices(found.warnings, found.arms, audience),
        notes=group_notices((*in_unit, *record.reading, *found.notes), found.arms, audience),
        population=_population_rows(found), arms=_arm_rows(found, 1.0 if shown_in is None else shown_in.factor),
        unit=None if shown_in is None else shown_in.name, misfit=misfit(found, ON_AVERAGE),
        fit=fit_section(found, ON_AVERAGE),
        pictures=[_forest(found), *_shares(record, short=short)], names=[each.name for each in found.parameters],
        participants=_participant_rows(found), left_out=max(len(found.participants) - MOST_PARTICIPANTS, 0),
        words=basics(rewards_in(record.rewards)) | _words(found), shared=found.shared,
        assumptions=_assumptions(found, shown_in),
        command=command or composed, in_python=in_python, source=source, seed=found.seed,
    )  # fmt: skip
    say("Done", 1.0)
    return PopulationReport(heading["title"], said, main, found)


def population_sentence(found: Population) -> str:
    """Say in one sentence what a typical participant is like."""
    parts = []
    for each in found.population:
        write = same_decimals((each.value, each.low, each.high))
        ends = interval(each.low, each.high, write)
        parts.append(f"typical {each.parameter} is {write(each.value)} ({share(found.level)} interval {ends})")
    said = f"Among {counted(len(found.participants), 'participant')}, the {joined(parts, 'and the')}."
    first = found.arm_summary.row(0, named=True)
    if first["probability_best"] is None:
        return said
    chance = share(first["probability_best"], 2)
    averaged = "Arm" if found.shared else "Averaged over participants, arm"
    return f'{said} {averaged} "{shown(first["arm"])}" is the best with a probability of {chance}.'


def _words(found: Population) -> dict[str, str]:
    """Return the words that are explained."""
    left_out = "best for a participant" if found.shared else "best arm"
    return {word: text for word, text in WORDS.items() if word != left_out}


def _arm_rows(found: Population, factor: float) -> list[dict[str, str]]:
    """Return a row for each arm, with values times a factor."""
    lowest, highest = ("mean_low", "mean_high") if found.shared else ("mean_lowest", "mean_highest")
    values = pl.col("mean", lowest, highest)
    rows, arms = [], found.arm_summary.head(MOST_ARMS).with_columns(values * factor).to_dicts()
    write = same_decimals(row[name] for row in arms for name in ("mean", lowest, highest))
    for row in arms:
        mean, best = row["mean"], row["probability_best"]
        ends = "–" if mean is None else interval(row[lowest], row[highest], write) or "–"
        rows.append(
            {
                "arm": shown(row["arm"]), "pulls": f"{row['pulls']:,}",
                "best": "–" if best is None else column_share(best),
                "mean": "–" if mean is None else write(mean), "ends": ends,
            }
        )  # fmt: skip
    return rows


def _overview(found: Population, record: ActionLog) -> str:
    """Say what the answer was estimated from."""
    choices, arms = counted(int(found.rounds.sum()), "choice"), counted(len(found.arms), "arm")
    rule, wrong = found.rule.split(":")[0], found.check.verdict == "does not fit"
    made = f", as if {rule} had made them" if wrong else f" made by {rule}"
    return f"Based on {choices} among {arms}{made}. {said_of_rewards(record.rewards)}"


def _population_rows(found: Population) -> list[dict[str, str]]:
    rows, numbers = [], [end for each in found.population for end in (each.value, each.low, each.high)]
    alike = min(map(abs, numbers), default=0.0) > max(map(abs, numbers), default=0.0) / MOST_APART
    for each in found.population:
        spread, ends = each.said_of_spread
        write = same_decimals(numbers if alike else (each.value, each.low, each.high))
        rows.append(
            {
                "parameter": each.parameter, "value": write(each.value),
                "interval": interval(each.low, each.high, write),
                "spread": "–" if each.spread is None else spread, "spread_interval": ends, "scale": each.scale,
                "two_thirds": each.said_of_two_thirds, "shrinkage": share(each.shrinkage, 2),
            }
        )  # fmt: skip
    return rows


def _participant_rows(found: Population) -> list[dict[str, Any]]:
    """Return a row for each participant: pooled, its interval and alone, of every parameter."""
    places = range(len(found.parameters))
    pooled = [found.intervals(at) for at in places]
    alone = [found.intervals(at, alone=True)[1] for at in places]
    digits, rows = [decimals(float(values[1].max())) for values in pooled], []
    for person, name in enumerate(found.participants[:MOST_PARTICIPANTS]):
        cells = []
        for at in places:
            low, value, high = pooled[at][:, person]
            write = partial(fixed, digits=digits[at])
            cells.append((write(value), interval(low, high, write), write(alone[at][person])))
        rows.append({"name": shown(name), "cells": cells, "rounds": f"{found.rounds[person]:,}"})
    return rows


def _forest(found: Population) -> ReportFigure:
    """Draw all participants, and describe the figure for readers who cannot see it."""
    alt = f"Forest plot of {counted(len(found.participants), 'participant')}. "
    alt += " ".join(
        f"Pooled values of {each.name} run from {values.min():.3g} to {values.max():.3g}."
        for at, each in enumerate(found.parameters)
        for values in [found.intervals(at)[1]]
    )
    return as_figure(
        found.plot,
        "forest",
        "Forest plot",
        "Each row is a participant, in order of the first parameter. A dot with a line is the pooled value with its "
        "interval, an open circle what the participant's choices say alone, and the line between the two is the "
        "shrinkage. The diamond is a typical participant, the band holds 95% of the population.",
        alt,
    )


def _shares(record: ActionLog, *, short: bool) -> list[ReportFigure]:
    """Draw every participant's choices, except on one page."""
    drawn = None if short else draw_shares(record, "participant")
    return [] if drawn is None else [drawn]


def _assumptions(found: Population, unit: Unit | None) -> dict[str, str]:
    """Return what was taken for granted; sigma stands there in the units of the rewards and in `unit`."""
    write = partial(number, digits=3) if unit is None else unit.given
    noise = "rewards of 0 and 1" if isinstance(found.noise, Bernoulli) else f"sigma {write(found.noise.sigma)}"
    free = joined([each.name for each in found.parameters])
    return {
        "rule": f"Every participant chose by {short_numbers(found.rule)}; only {free} differ.",
        "population": "Parameters are draws from a normal population on their scales, independent of each other.",
        "bandits": "All participants have the same bandit, whose values do not change."
        if found.shared
        else "Every participant has a bandit with values of their own, which do not change.",
        "rewards": f"Noise of a reward: {noise}; prior on every arm's mean: {found.prior}.",
    }
