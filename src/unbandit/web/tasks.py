"""The pieces of work that a process of its own does for the page: look, estimate, identify, simulate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from unbandit.demonstrators import UCB, parse_rule
from unbandit.identification import Identification, identify
from unbandit.instance import Instance
from unbandit.log import ActionLog
from unbandit.reporting import Report, Source, report
from unbandit.web.examples import example_truth
from unbandit.web.exports import tables
from unbandit.web.identified import identified_page
from unbandit.web.looking import Brought, look, read
from unbandit.web.model import Download, Limits, Look, Outcome
from unbandit.web.simulations import Simulation

__all__ = ["TASKS", "warm_up"]

Say = Callable[[str, float | None], None]
Columns = Mapping[str, str] | None
Arms = Sequence[str] | None

QUICK = 150
"""Particles of a cloud where a rule is looked for: a first answer within a minute."""


def warm_up() -> None:
    """Do a small piece of work, so that the first visitor does not wait for what every visitor needs."""
    log = UCB(alpha=0.25).demonstrate(Instance([1.0, 0.5, 0.2]), 200, seed=1, threads=1)
    report(log, "ucb:alpha=0.25", best_mean=1.0, sigma=1.0, source=Source.of_bytes("log.csv", b""))


def _look(brought: Brought, columns: Columns, arms: Arms, limits: Limits, say: Say) -> Look:
    say("Reading the file", None)
    return look(brought, columns, arms, limits)


def _estimate(
    brought: Brought, columns: Columns, arms: Arms, rule: str, options: Mapping[str, Any], limits: Limits, say: Say
) -> Outcome:
    say("Reading the file", 0.0)
    log, data = read(brought, columns, arms, limits)
    source = None if data is None else Source.of_bytes(brought.name, data)
    truth = example_truth(brought.example) if brought.example else None
    made = report(log, rule, source=source, truth=truth, progress=say, **options)
    extra = tables(log.to_frame(), "log", "The example's log") if brought.example else ()
    return Outcome(made.title, made.main, (*_files(made), *extra[:1]))


def _identify(
    brought: Brought, columns: Columns, arms: Arms, options: Mapping[str, Any], limits: Limits, say: Say
) -> Outcome:
    say("Reading the file", None)
    log, data = read(brought, columns, arms, limits)
    asked = {key: options[key] for key in ("sigma", "bernoulli", "horizon", "prior") if key in options}
    found = identify(
        log, particles=QUICK, seed=options.get("seed") or 0, progress=lambda stage: say(stage, None), **asked
    )  # fmt: skip
    downloads = tables(found.frame, "candidates", "Candidates")
    json = Download("identify.json", "Everything (JSON)", "application/json", found.to_json().encode())
    made = _taken_as(found, log, options, None if data is None else Source.of_bytes(brought.name, data), say)
    with_report = (_page(made),) if made is not None else ()
    main = identified_page(found, brought.name, None if made is None else made.answer.rule)
    return Outcome("Which rule made this log?", main, (*with_report, *downloads, json))


def _taken_as(
    found: Identification, log: ActionLog, options: Mapping[str, Any], source: Source | None, say: Say
) -> Report | None:
    """Return the report under the most probable rule, where one was found that gives values away."""
    rule = found.leading.guesses[0].rule
    if found.verdict != "identified" or rule.reveals != "values":
        return None
    say("Estimating with the rule that was found", None)
    return report(log, rule, source=source, progress=say, **options)


def _simulate(simulation: Simulation, limits: Limits, say: Say) -> Outcome:
    say("Playing the rule", 0.0)
    instance, rule = simulation.instance(), parse_rule(simulation.rule)
    log = rule.demonstrate(instance, simulation.horizon, seed=simulation.seed)
    truth = dict(zip(instance.arms, instance.means.tolist(), strict=True))
    known: dict[str, Any] = {"bernoulli": True} if instance.sigma is None else {"sigma": instance.sigma}
    made = report(log, rule, truth=truth, progress=say, best_mean=instance.best_mean, **known)
    frame = pl.DataFrame({"arm": list(truth), "mean": list(truth.values())})
    extra = (*tables(log.to_frame(), "log", "The log"), *tables(frame, "truth", "The truth")[:1])
    return Outcome(made.title, made.main, (*_files(made), *extra))


def _page(made: Report) -> Download:
    return Download("report.html", "Report", "text/html; charset=utf-8", made.html.encode())


def _files(made: Report) -> tuple[Download, ...]:
    json = Download("estimate.json", "Everything (JSON)", "application/json", made.answer.to_json().encode())
    return (_page(made), *tables(made.answer.frame, "estimate", "Table"), json)


TASKS: Mapping[str, Callable[..., Any]] = {
    "look": _look,
    "estimate": _estimate,
    "identify": _identify,
    "simulate": _simulate,
}
