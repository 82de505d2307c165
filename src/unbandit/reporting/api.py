"""The public way in: `report(log, rule)`."""

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unbandit import checks
from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.demonstrators.base import rule_or_family
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import AssumptionWarning, Audience, ParameterError, option, python_option
from unbandit.estimators import estimate
from unbandit.estimators.arguments import as_log, one_demonstration, shows_part, told_availability
from unbandit.estimators.stretches import check_stretches, stretches, with_stretches
from unbandit.estimators.variants import compared_quantity, sensitivity_rows
from unbandit.estimators.variants import sensitivity as nearby
from unbandit.formatting import column_share, counted, interval, plural, share, shown
from unbandit.log import ActionLog
from unbandit.log.tallies import is_record
from unbandit.reporting.assumptions import assumptions, open_questions, parameters
from unbandit.reporting.figures import FigureData, draw_figures
from unbandit.reporting.page import (
    ONE_PAGE,
    WHOLE,
    Page,
    axis_of,
    fit_section,
    glossary_with,
    group_notices,
    main_part,
    misfit,
    ranked_table,
    rewards_in,
    said_of_rewards,
)
from unbandit.reporting.provenance import LogSource, heading_of, opened, python_line, shell_line
from unbandit.reporting.sentence import reported_estimate, reported_quantity, sentence, settled
from unbandit.reporting.truth import check_truth, compare
from unbandit.result import BEST, VERDICTS, ArmEstimate, Estimate, Quantity
from unbandit.tables import same_decimals

MOST_TOGETHER = 40  # arms in the table of all demonstrations together, if the report is not a short one
MANY = 10  # of as many demonstrations the quartiles say more than the ends
QUARTILES, LOWEST_TO_HIGHEST = ("quartiles", (0.25, 0.75)), ("lowest to highest", (0.0, 1.0))
LEFT_OUT = {"short-horizon"}  # notes that only JSON has: what Theorem 2 of the paper promises
MOST_TABLES = 5  # of more demonstrations than this, the first ones are shown


@dataclass(frozen=True, repr=False)
class Report(Page):
    """An answer ready to be read by people.

    Attributes
    ----------
    title
        Title of the page.
    answer
        The estimate that it is about.
    sentence
        The answer in one plain sentence.
    main
        The page's main part as HTML: everything inside `<main>`, escaped, without scripts and style attributes.
    """

    answer: Estimate

    def _repr_html_(self) -> str:
        """Show the answer's table in notebooks."""
        return self.answer._repr_html_()


def report(
    log: ActionLog | str | os.PathLike[str] | Any, rule: Demonstrator | RuleFamily | str, *,
    source: LogSource | None = None, name: str | None = None, command: str | None = None,
    truth: Mapping[str, float] | None = None, windows: int | None = None, sensitivity: bool = False,
    names: Mapping[str, str] | None = None, unit: str | tuple[str, float] | None = None, title: str | None = None,
    author: str | None = None, date: str | None = None, short: bool = False, table_file: str | None = None,
    progress: Callable[[str, float], None] | None = None, audience: Audience = python_option,
    demonstration: object = None, **options: Any,
) -> Report:  # fmt: skip
    """Estimate the value of every arm, and write a report about it.

    Parameters
    ----------
    log, rule, demonstration
        As for `estimate`.
    source
        Where the log came from; default the file, where `log` is the path of one.
    name
        What the log is called in the heading; default its file's name.
    command
        Shell command that reproduces this report; default one is composed.
    truth
        The true mean of arms, where it is known. It is shown beside the answer, and not used for it.
    windows
        From how many stretches of the log to estimate besides, to look for drift (`unbandit.stretches`).
    sensitivity
        Whether to estimate also with the rule's numbers changed (`unbandit.sensitivity`), and show it in one table.
    names
        What arms are called in the report, by their labels in the log.
    unit
        In which unit values are shown, and by what they are multiplied: `"cycles=1208"`, or a name and a number. What
        is given (`truth`, `best_mean`, `anchor`, `sigma`) stays in the units of the rewards.
    title
        What stands above the report; by default made from the name of the log.
    author, date
        Shown below the title; by default left out.
    short
        Whether to leave out everything that does not fit one page of A4 or Letter paper: most figures, arms beyond
        ten, single demonstrations of several, explanations and the glossary.
    table_file
        The name of the file beside the report that has the whole table, where there is one.
    progress
        Called with the name of the current step and the share that is done.
    audience
        How notices write the options they mention: for Python by default.
    **options
        Options of `estimate`.

    Returns
    -------
    Report
        It explains whatever `estimate` would warn of.

    Examples
    --------
    >>> import unbandit
    >>> log = unbandit.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> made = unbandit.report(log, "ucb:alpha=0.25", best_mean=1.0, sigma=0.5)
    >>> made.sentence
    'Of the 2 arms "A" is the better one, worth 1; "B" is worth 0.442 (95% interval 0.0982 to 0.553).'
    >>> made.html.startswith("<!doctype html>")
    True
    """
    checks.by_arm("truth", truth)
    for parameter, flag in (("sensitivity", sensitivity), ("short", short)):
        checks.flag(parameter, flag)
    shown_in = checks.unit(unit)
    if shown_in is not None and options.get("scale") == "unknown":
        text = f"expected without {option('scale', 'unknown')}: ratios have no unit."
        raise ParameterError(text, parameter="unit", value=unit, remedy="Leave one of them out.")
    texts = {"title": title, "author": author, "date": date}
    log, source, report_progress = opened(
        log, source, progress, name=name, command=command, table_file=table_file, **texts
    )
    log = one_demonstration(log, demonstration, "report")
    record = log.rows if is_record(log) and shows_part(log) else as_log(log, "report")
    if not isinstance(record, ActionLog):
        record = as_log(record, "report")
    given = log if is_record(log) and shows_part(log) else record
    by_old_names = options
    if names:
        names = {str(arm): str(name).strip() for arm, name in names.items()}
        record = renamed_arms(record, names, options=options)
        given = record if isinstance(given, ActionLog) else given.with_rows(record)
        options = options | {"anchor": _by_new_names(options.get("anchor"), names)}
        truth = _by_new_names(truth, names)
    assumed = rule_or_family(rule)
    means = {} if truth is None else check_truth(truth, record.arms)
    if windows is not None:
        check_stretches(given, assumed, windows, options)
    report_progress("Estimating", 0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)  # the report explains them
        answer, found = estimate(given, assumed, **options), None
        same = isinstance(assumed, Demonstrator) and answer.rule == str(assumed)
        used = parse_rule(assumed if same else answer.rule)  # fitted, or by another convention
        if windows is not None:
            found = stretches(given, used if isinstance(assumed, RuleFamily) else assumed, windows=windows, **options)
            answer = with_stretches(answer, found)
        estimated = answer
        if shown_in is not None:
            answer = answer.in_unit(shown_in)
            means = {arm: shown_in.factor * value for arm, value in means.items()}
            if found is not None:
                scaled = found.columns.times(shown_in.factor)
                found = replace(found, columns=scaled, answer=found.answer.in_unit(shown_in))
        quantity, first = reported_quantity(answer), answer.demonstrations[:MOST_TABLES]
        ranked = [answer.ranked(name) for name in first]
        told = None if options.get("availability") is None else told_availability(record, options["availability"])
        data = FigureData(
            record, used.for_arms(len(record.arms)), options, answer, quantity, ranked[0], means, found, told, estimated
        )
        most = None if not short else 0 if sensitivity or misfit(answer) else ONE_PAGE.most
        figures = draw_figures(data, lambda step, part: report_progress(step, 0.5 + 0.4 * part), most=most)
        others = nearby(given, assumed, answer=estimated, **options) if sensitivity else {}
        if shown_in is not None:
            others = {label: other.in_unit(shown_in) for label, other in others.items()}
    report_progress("Writing the report", 0.9)
    counts = Counter(answer.columns.verdict.reshape(-1).tolist())
    asked = by_old_names | {"names": names or None, "windows": windows, "sensitivity": sensitivity, "short": short}
    asked |= {"demonstration": demonstration, "unit": shown_in, "title": title, "author": author, "date": date}
    in_python = command is None and (source is None or bool(names))  # the shell takes names from a file
    composed = python_line(assumed, asked) if in_python or source is None else shell_line(source.name, assumed, asked)
    heading = heading_of("What each arm was worth", source, name, **texts)
    several = len(answer.demonstrations) > 1
    is_settled = settled(answer)
    if several:
        counts[BEST] = int(is_settled.sum())
    answer_sentence = sentence(answer, ranked[0])
    there = np.ones(len(record.arms), np.bool_) if told is None else told.at(int(record.lengths[0]))
    stayed = [arm for arm, is_there in zip(record.arms, there, strict=True) if is_there]
    main = main_part(
        "report.html",
        **heading,
        short=short,
        misfit=misfit(answer),
        fit=fit_section(answer, noun=record.noun),
        sensitivity=_variants(answer, others, short=short) if others else None,
        fitted=[(each.parameter, each.shown, each.said_interval) for each in answer.fitted],
        open_places=int((~is_settled).sum()) if several else 0,
        together=together(answer, quantity, ONE_PAGE.most if short else MOST_TOGETHER) if several else None,
        table_file=table_file,
        sentence=answer_sentence,
        overview=_overview(record, answer),
        against_truth=compare(ranked[0], quantity, means, answer, options, data.truth, stayed) if means else "",
        verdicts={name: counts[at] for at, name in enumerate(VERDICTS)},
        quantity=quantity,
        compared=compared_quantity(answer),
        unit=shown_in.name if shown_in is not None else None,
        level=share(answer.level),
        tables=[
            ranked_table(
                rows,
                quantity,
                data.truth,
                name if several else None,
                apart=answer.apart(name),
                is_open=several and not sure,
                limits=ONE_PAGE if short else WHOLE,
                axis=shared_axis(ranked, quantity),
            )
            for name, rows, sure in zip(first, ranked, is_settled, strict=False)
            if not (short and several)
        ],
        alternatives=[
            ranked_table(other.ranked(first[0]), quantity, data.truth, None, label)
            for label, other in answer.alternatives.items()
            if not short
        ],
        tables_left_out=len(answer.demonstrations) - len(first),
        noun=record.noun,
        pictures=figures,
        pictures_of=record.demonstrations[0] if len(record) > 1 and not short else None,
        pooled=bool(options.get("pool")),
        warnings=group_notices(answer.warnings, answer.arms, audience, record.noun),
        notes=group_notices(
            [note for note in answer.notes if note.code not in LEFT_OUT], answer.arms, audience, record.noun
        ),
        assumptions=assumptions(estimated, used, record, options, shown_in),
        parameters=parameters(used),
        glossary=glossary_with(rewards_in(record.rewards), record.noun),
        unknown=open_questions(answer, used, record, ranked[0], options),
        rule=str(used),
        command=command or composed,
        in_python=in_python,
        source=source,
        seed=answer.seed,
    )
    report_progress("Done", 1.0)
    return Report(heading["title"], answer_sentence, main, answer)


def shared_axis(ranked: Iterable[Sequence[ArmEstimate]], quantity: Quantity) -> tuple[float, float] | None:
    """Return where the bars of all demonstrations begin and end."""
    return axis_of(value for rows in ranked for row in rows for value in (row.value(quantity), *row.interval(quantity)))


def renamed_arms(log: ActionLog, names: Mapping[str, str], *, options: Mapping[str, Any]) -> ActionLog:
    """Return the log with other names of its arms; refuse arms that it does not have, and tables by the old names."""
    for arm in names:
        checks.position("names", arm, log.arms)
    arms = tuple(names.get(arm, arm) for arm in log.arms)
    if len(set(arms)) < len(arms) or not all(arms):
        raise ParameterError("expected a different name for each arm.", parameter="names", value=names)
    by_arm = [name for name in ("availability", "starting_pulls", "reference") if options.get(name) is not None]
    if by_arm:
        text = f"expected without {option(by_arm[0])}, which has the arms' names of the log."
        raise ParameterError(text, parameter="names", remedy="Leave one of them out.")
    return replace(log, arms=arms)


def _by_new_names(values: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(values, Mapping):
        return values
    return {names.get(str(arm), str(arm)): value for arm, value in values.items()}


def together(answer: Estimate, quantity: Quantity, most: int) -> dict[str, Any]:
    """Return what the template shows of every arm over all demonstrations, the most often best first.

    An arm is best in demonstrations whose first place is settled, as the sentence counts them; the others are open.
    `reach` is the heading of the column with ranges.
    """
    total, is_settled = len(answer.demonstrations), settled(answer)
    times = answer.marks[is_settled].sum(axis=0)
    reported = reported_estimate(answer)
    medians = dict(reported.summary().select("arm", f"median_{quantity}").iter_rows())
    values = getattr(reported.columns, quantity)
    ends_name, ends = QUARTILES if total >= MANY else LOWEST_TO_HIGHEST
    middle = np.array([np.nan if (median := medians[arm]) is None else median for arm in answer.arms])
    known = np.isfinite(values).any(axis=0)
    reach = np.full((2, len(answer.arms)), np.nan)
    reach[:, known] = np.nanquantile(values[:, known], ends, axis=0)
    order = np.lexsort((-middle if quantity == "mean" else middle, -times))[:most]
    write = same_decimals([*middle[order].tolist(), *reach[:, order].reshape(-1).tolist()])
    counts = {name: (answer.columns.verdict == VERDICTS.index(name)).sum(axis=0) for name in VERDICTS[1:]}
    counts = {name: count for name, count in counts.items() if count.any()}
    in_unit = "" if answer.unit is None else f" ({answer.unit.name})"
    of_values = [f"median {quantity}{in_unit}", ends_name] if known.any() else []
    headings = ["arm", "best in", "share", *of_values, *counts]
    rows = []
    for at in order:
        low, high = reach[:, at].tolist()
        said = "the same" if low == high else interval(low, high, write) if known[at] else "–"
        numbers = [write(middle[at]) or "–", said] if of_values else []
        verdicts = [f"{count[at]:,}" for count in counts.values()]
        rows.append([shown(answer.arms[at]), f"{times[at]:,}", column_share(times[at] / total), *numbers, *verdicts])
    if left := int((~is_settled).sum()):
        rows.append(["(open)", f"{left:,}", column_share(left / total)] + [""] * (len(headings) - 3))
    fewer = f"; {most:,} of {len(answer.arms):,} arms" if len(answer.arms) > most else ""
    caption = f"How often each arm is the best, and its {quantity} in the {plural(answer.noun)} that give one{fewer}"
    return {"caption": caption, "headings": headings, "rows": rows, "reach": ends_name, "demonstrations": total}


def _variants(answer: Estimate, others: Mapping[str, Estimate], *, short: bool) -> tuple[list[str], list[list[str]]]:
    """Return the table of other assumptions; in a short report its first rows, without intervals."""
    headings, rows = sensitivity_rows(answer, others, MOST_TABLES, intervals=not short)
    return headings, rows[: ONE_PAGE.most // 2] if short else rows


def _overview(log: ActionLog, answer: Estimate) -> str:
    """Say what the answer was estimated from."""
    rounds, many = int(log.lengths.sum()), len(log)
    what = counted(rounds, "choice") if log.ordered else f"the counts of {counted(rounds, 'choice')}"
    several = f" in {counted(many, log.noun)}" if many > 1 else ""
    seen = said_of_rewards(log.rewards, used=answer.method == "posterior")
    arms, rule = counted(len(log.arms), "arm"), answer.rule.split(":")[0]
    made = f", as if {rule} had made them" if answer.check.verdict == "does not fit" else f" made by {rule}"
    return f"Based on {what} among {arms}{several}{made}. {seen}"
