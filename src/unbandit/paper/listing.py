"""The claims as plain text, for documents: the same tables as on the page, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from unbandit._version import __version__
from unbandit.paper.claim import Claim, counted, interval, number, written

if TYPE_CHECKING:
    from unbandit.paper.reproduce import Reproduction

__all__ = ["listing"]


def listing(reproduction: Reproduction) -> str:
    """Return every claim with what was measured and its verdict, picture by picture, and what selecting runs does."""
    return "\n".join(_lines(reproduction)) + "\n"


def _lines(reproduction: Reproduction) -> Iterator[str]:
    verdicts = ", ".join(counted(verdict, count) for verdict, count in reproduction.verdicts.items())
    yield "# What the paper says, and what was measured"
    yield ""
    yield f"Written by `{reproduction.asked}` of unbandit {__version__}, seed {reproduction.size.seed}: {verdicts}."
    yield "Values are given with one standard error, and decided by their 95% interval."
    for made in reproduction.made:
        if not made.claims:
            continue
        runs = f", {' and '.join(f'{count:,}' for count in made.runs)} runs" if made.runs else ""
        yield ""
        yield f"## {made.picture.title} (`{made.picture.name}`{runs})"
        yield ""
        yield from _table(("the paper says", "statistic", "measured", "95% interval", "verdict"))
        for claim in made.claims:
            yield _row((claim.says, claim.statistic, *_measured(claim), f"{claim.verdict}: {claim.because}"))
    selected = [row for made in reproduction.made for row in made.selection]
    if selected:
        yield ""
        yield "## What the authors' selection of runs does"
        yield ""
        yield "Runs whose most-pulled arm is not the best one, which the authors' released code drops, and the mean"
        yield "squared error with and without them."
        yield ""
        yield from _table(("where", "runs", "dropped", "mean squared error of all", "of those kept"))
        for row in selected:
            yield _row((row.where, f"{row.runs:,}", f"{row.dropped:,}", number(row.mse), number(row.mse_kept)))


def _measured(claim: Claim) -> tuple[str, str]:
    """Write a value with its error, and its interval; nothing where there is none."""
    if claim.measured is None:
        return "", ""
    return written(claim.measured), interval(claim.measured) if claim.measured.error > 0 else ""


def _table(headings: Sequence[str]) -> list[str]:
    return [_row(headings), _row(["---"] * len(headings))]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
