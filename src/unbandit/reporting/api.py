"""One way in: `report(log, rule)`."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.errors import AssumptionWarning
from unbandit.estimators import estimate
from unbandit.estimators.request import as_log
from unbandit.files import written_whole
from unbandit.formatting import counted, share, shown
from unbandit.log import ActionLog
from unbandit.reporting.assumptions import assumptions, parameters, unknown
from unbandit.reporting.figures import Matter, draw
from unbandit.reporting.page import Contents, main_part, said, standalone
from unbandit.reporting.provenance import Source, python_line, read_log, shell_line
from unbandit.reporting.sentence import sentence
from unbandit.reporting.table import MOST_TABLES, quantity, ranked_table
from unbandit.reporting.truth import checked, compared, in_terms_of
from unbandit.result import VERDICTS, Estimate


@dataclass(frozen=True)
class Report:
    """Hold an answer made ready to be read by people.

    Attributes
    ----------
    title
        Of the page.
    answer
        The estimate that it is about.
    sentence
        The answer in one plain sentence.
    main
        The page's main part as HTML: everything inside `<main>`, escaped, without scripts and style attributes.
    """

    title: str
    answer: Estimate
    sentence: str
    main: str

    def __repr__(self) -> str:
        return f"<Report: {self.sentence}>"

    @property
    def html(self) -> str:
        """Return the whole page, which needs no other file."""
        return standalone(self.title, self.main)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page; whole, or not at all."""
        with written_whole(path) as temporary:
            temporary.write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        """Show the answer's table in notebooks."""
        return self.answer._repr_html_()


def report(
    log: ActionLog | str | os.PathLike[str] | Any,
    rule: Demonstrator | str,
    *,
    source: Source | None = None,
    name: str | None = None,
    command: str | None = None,
    truth: Mapping[str, float] | None = None,
    progress: Callable[[str, float], None] | None = None,
    **options: Any,
) -> Report:
    """Estimate what every arm was worth, and write it down for people.

    Parameters
    ----------
    log, rule
        As for `estimate`.
    source
        Where the log came from; by default the file, where `log` is the path of one.
    name
        What the log is called in the heading; by default its file's name.
    command
        What makes this report again, for the shell; by default one is put together.
    truth
        The true mean of arms, where it is known. It is shown beside the answer, and not used for it.
    progress
        Called with what is being done, in words, and the share that is done.
    **options
        Of `estimate`.

    Returns
    -------
    Report
        Whatever `estimate` would warn of is in it, in words.

    Examples
    --------
    >>> import unbandit
    >>> log = unbandit.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> made = unbandit.report(log, "ucb:alpha=0.25", best_mean=1.0, sigma=0.5)
    >>> made.sentence
    'Of the 2 arms "A" is the better one, worth 1; "B" is worth 0.576 (95% interval 0.173 to 0.824).'
    >>> made.html.startswith("<!doctype html>")
    True
    """
    tell = progress or (lambda stage, share: None)
    tell("Reading the log", 0.0)
    if isinstance(log, str | os.PathLike):
        log, found = read_log(log)
        source = source or found
    record = as_log(log, "report")
    assumed = parse_rule(rule) if isinstance(rule, str) else rule
    means = None if truth is None else checked(truth, record.arms)
    tell("Estimating", 0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)  # they are in the report, explained
        answer = estimate(record, assumed, **options)
        named = name or (None if source is None else Path(source.name).name)
        return _written(record, assumed, answer, source, named, command, means, tell, options)


def _written(
    log: ActionLog, rule: Demonstrator, answer: Estimate, source: Source | None, name: str | None, command: str | None,
    means: Mapping[str, float] | None, tell: Callable[[str, float], None], options: Mapping[str, Any],
) -> Report:  # fmt: skip
    """Put everything that is worth saying together."""
    several, first = len(answer.demonstrations) > 1, answer.demonstrations[:MOST_TABLES]
    ranked = [answer.ranked(name) for name in first]
    shown_first, rows = quantity(answer), ranked[0]
    terms = {} if means is None else in_terms_of(means, shown_first, answer)
    says = sentence(answer, rows)
    matter = Matter(log, rule.for_arms(len(log.arms)), options, answer, shown_first, rows, means or {})
    pictures = draw(matter, lambda stage, part: tell(stage, 0.5 + 0.4 * part))
    tell("Writing the report", 0.9)
    best = answer.best_by_demonstration[0]
    against = "" if means is None else compared(rows, shown_first, terms, means, best, options)
    counts = Counter(answer.columns.verdict.reshape(-1).tolist())
    contents = Contents(
        title=_title(name),
        sentence=says,
        overview=_overview(log, answer),
        against_truth=against,
        verdicts={name: counts[at] for at, name in enumerate(VERDICTS)},
        quantity=shown_first,
        level=share(answer.level),
        tables=[
            ranked_table(lines, shown_first, terms, name if several else None)
            for name, lines in zip(first, ranked, strict=True)
        ],
        tables_left_out=len(answer.demonstrations) - len(first),
        pictures=pictures,
        pictures_of=log.demonstrations[0] if len(log) > 1 else None,
        pooled=bool(options.get("pool")),
        warnings=said(answer.warnings, answer.arms),
        notes=said(answer.notes, answer.arms),
        assumptions=assumptions(answer, rule, log, options),
        parameters=parameters(rule),
        unknown=unknown(answer, rule, log, rows, options),
        rule=str(rule),
        command=command or _command(source, rule, options),
        in_python=command is None and source is None,
        source=source,
        seed=answer.seed,
    )
    made = Report(contents.title, answer, says, main_part(contents))
    tell("Done", 1.0)
    return made


def _title(name: str | None) -> str:
    """Name the report after its log."""
    title = "What every arm was worth"
    return title if name is None else f"{title}: {shown(name)}"


def _overview(log: ActionLog, answer: Estimate) -> str:
    """Say what the answer was read off."""
    rounds, many = int(log.lengths.sum()), len(log)
    what = counted(rounds, "choice") if log.ordered else f"the counts of {counted(rounds, 'choice')}"
    several = f" in {many:,} demonstrations" if many > 1 else ""
    known = 0 if log.rewards is None else int(np.count_nonzero(~np.isnan(log.rewards)))
    seen = f"with {counted(known, 'known reward')}" if known else "without a single reward"
    if known and answer.method != "posterior":
        seen = f"without the {counted(known, 'reward')} that {'is' if known == 1 else 'are'} known"
    arms, rule = counted(len(log.arms), "arm"), answer.rule.split(":")[0]
    return f"Read off {what} among {arms}{several}, made by {rule}, {seen}."


def _command(source: Source | None, rule: Demonstrator, options: Mapping[str, Any]) -> str:
    return python_line(rule, options) if source is None else shell_line(source.name, rule, options)
