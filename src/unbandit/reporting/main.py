"""One way in: `report(log, rule)`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unbandit.demonstrators import Demonstrator
from unbandit.estimators import estimate
from unbandit.estimators.arguments import as_log
from unbandit.files import written_whole
from unbandit.log import ActionLog
from unbandit.reporting.page import main_part, standalone
from unbandit.reporting.source import Source
from unbandit.result import Estimate

__all__ = ["Report", "report"]


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
    command
        What makes this report again, for the shell; by default one is put together.
    truth
        Every arm's true mean, where it is known.
    progress
        Called with what is being done, in words, and the share that is done.
    **options
        Of `estimate`.
    """
    if source is None and isinstance(log, str | os.PathLike) and os.fspath(log) != "-":
        source = Source.of_file(Path(log))
    tell = progress or (lambda stage, share: None)
    tell("Reading the log", 0.0)
    record = as_log(log)
    tell("Estimating", 0.1)
    answer = estimate(record, rule, **options)
    tell("Drawing", 0.6)
    sentence = f"{answer.best[0]} is the best." if answer.best else "The record leaves it open."
    title = "What the log tells"
    main = main_part(title, sentence)
    tell("Done", 1.0)
    return Report(title, answer, sentence, main)
