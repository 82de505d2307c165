"""The public way in: `report(log, rule)`."""

import os
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unbandit import checks
from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.demonstrators.base import rule_or_family
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import AssumptionWarning, Audience, python_option
from unbandit.estimators import estimate
from unbandit.estimators.arguments import as_log, shows_part
from unbandit.estimators.stretches import check_stretches, stretches
from unbandit.formatting import counted, share, shown
from unbandit.log import ActionLog
from unbandit.log.availability import availability_of
from unbandit.log.tallies import is_record
from unbandit.reporting.assumptions import assumptions, open_questions, parameters
from unbandit.reporting.figures import FigureData, draw_figures
from unbandit.reporting.page import Page, group_notices, main_part, misfit, ranked_table
from unbandit.reporting.provenance import LogSource, python_line, read_log, shell_line
from unbandit.reporting.sentence import reported_quantity, sentence
from unbandit.reporting.truth import check_truth, compare
from unbandit.result import VERDICTS, Estimate

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
    log: ActionLog | str | os.PathLike[str] | Any,
    rule: Demonstrator | RuleFamily | str,
    *,
    source: LogSource | None = None,
    name: str | None = None,
    command: str | None = None,
    truth: Mapping[str, float] | None = None,
    windows: int | None = None,
    progress: Callable[[str, float], None] | None = None,
    audience: Audience = python_option,
    **options: Any,
) -> Report:
    """Estimate the value of every arm, and write a report about it.

    Parameters
    ----------
    log, rule
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
    checks.function("progress", progress)
    checks.text("name", name)
    checks.text("command", command)
    checks.by_arm("truth", truth)
    report_progress = progress or (lambda step, part: None)
    report_progress("Reading the log", 0.0)
    if isinstance(log, str | os.PathLike):
        log, file_source = read_log(log)
        source = source or file_source
    record = log.rows if is_record(log) and shows_part(log) else as_log(log, "report")
    if not isinstance(record, ActionLog):
        record = as_log(record, "report")
    given = log if is_record(log) and shows_part(log) else record
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
            warned, noted = (*found.notices, *answer.warnings), (*answer.notes, *found.notes)
            answer = replace(answer, warnings=warned, notes=noted)
        quantity, first = reported_quantity(answer), answer.demonstrations[:MOST_TABLES]
        ranked = [answer.ranked(name) for name in first]
        told = None if options.get("availability") is None else availability_of(options["availability"], record.arms)
        data = FigureData(
            record, used.for_arms(len(record.arms)), options, answer, quantity, ranked[0], means, found, told
        )
        figures = draw_figures(data, lambda step, part: report_progress(step, 0.5 + 0.4 * part))
    report_progress("Writing the report", 0.9)
    counts = Counter(answer.columns.verdict.reshape(-1).tolist())
    asked = options | {"windows": windows}
    composed = python_line(assumed, asked) if source is None else shell_line(source.name, assumed, asked)
    called = name or (Path(source.name).name if source else None)
    title = "What every arm was worth" + ("" if called is None else f": {shown(called)}")
    answer_sentence = sentence(answer, ranked[0])
    there = np.ones(len(record.arms), np.bool_) if told is None else told.at(int(record.lengths[0]))
    stayed = [arm for arm, is_there in zip(record.arms, there, strict=True) if is_there]
    main = main_part(
        "report.html",
        title=title,
        misfit=misfit(answer),
        sentence=answer_sentence,
        overview=_overview(record, answer),
        against_truth=compare(ranked[0], quantity, means, answer, options, data.truth, stayed) if means else "",
        verdicts={name: counts[at] for at, name in enumerate(VERDICTS)},
        quantity=quantity,
        level=share(answer.level),
        tables=[
            ranked_table(
                rows, quantity, data.truth, name if len(answer.demonstrations) > 1 else None, apart=answer.apart(name)
            )
            for name, rows in zip(first, ranked, strict=True)
        ],
        alternatives=[
            ranked_table(other.ranked(first[0]), quantity, data.truth, None, label)
            for label, other in answer.alternatives.items()
        ],
        tables_left_out=len(answer.demonstrations) - len(first),
        pictures=figures,
        pictures_of=record.demonstrations[0] if len(record) > 1 else None,
        pooled=bool(options.get("pool")),
        warnings=group_notices(answer.warnings, answer.arms, audience),
        notes=group_notices(answer.notes, answer.arms, audience),
        assumptions=assumptions(answer, used, record, options),
        parameters=parameters(used),
        unknown=open_questions(answer, used, record, ranked[0], options),
        rule=str(used),
        command=command or composed,
        in_python=command is None and source is None,
        source=source,
        seed=answer.seed,
    )
    report_progress("Done", 1.0)
    return Report(title, answer_sentence, main, answer)


def _overview(log: ActionLog, answer: Estimate) -> str:
    """Say what the answer was estimated from."""
    rounds, many = int(log.lengths.sum()), len(log)
    what = counted(rounds, "choice") if log.ordered else f"the counts of {counted(rounds, 'choice')}"
    several = f" in {many:,} demonstrations" if many > 1 else ""
    known = 0 if log.rewards is None else int(np.count_nonzero(~np.isnan(log.rewards)))
    seen = f"with {counted(known, 'known reward')}" if known else "without a single reward"
    if known and answer.method != "posterior":
        seen = f"without the {counted(known, 'reward')} that {'is' if known == 1 else 'are'} known"
    arms, rule = counted(len(log.arms), "arm"), answer.rule.split(":")[0]
    made = f"as if {rule} had made them" if answer.check.verdict == "does not fit" else f"made by {rule}"
    return f"Read off {what} among {arms}{several}, {made}, {seen}."
