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
    own = ", ".join(counted(verdict, count) for verdict, count in reproduction.own_verdicts.items())
    yield "# What the paper says, and what was measured"
    yield ""
    yield f"Written by `{reproduction.asked}` of unbandit {__version__}, seed {reproduction.size.seed}."
    yield f"Of the paper's claims, {verdicts}; of the questions of ours, {own}. Values are given with one standard"
    yield "error, and decided by their 95% interval unless the statistic says otherwise."
    for made in reproduction.made:
        if not made.claims:
            continue
        runs = f", {' and '.join(f'{count:,}' for count in made.runs)} runs" if made.runs else ""
        yield ""
        yield f"## {made.picture.title} (`{made.picture.name}`{runs})"
        yield ""
        yield from _table(("the paper says", "statistic", "measured", "95% interval", "verdict"))
        for claim in made.claims:
            yield _row(
                (
                    f"{'ours: ' * claim.ours}{claim.says}",
                    claim.statistic,
                    *_measured(claim),
                    f"{claim.verdict}: {claim.because}",
                )
            )
    selected = [(made.picture.name, row) for made in reproduction.made for row in made.selection]
    if selected:
        yield ""
        yield "## What the authors' selection of runs does"
        yield ""
        yield "Runs whose most-pulled arm is not the best one, which the authors' released code drops, and the mean"
        yield "squared error of the estimates there are, with and without them."
        yield ""
        yield from _table(
            ("where", "runs", "dropped", "with an estimate", "their mean squared error", "that of those kept")
        )
        for name, row in selected:
            counts = (f"{count:,}" for count in (row.runs, row.dropped, row.estimated))
            yield _row((f"`{name}`: {row.where}", *counts, number(row.mse), number(row.mse_kept)))


def _measured(claim: Claim) -> tuple[str, str]:
    """Write a value with its error, and its interval; nothing where there is none."""
    if claim.measured is None:
        return "", ""
    return written(claim.measured), interval(claim.measured) if claim.measured.low < claim.measured.high else ""


def _table(headings: Sequence[str]) -> list[str]:
    return [_row(headings), _row(["---"] * len(headings))]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
