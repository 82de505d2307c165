"""The page: figures, captions and claims in one file that needs no other."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined

from unbandit._version import __version__
from unbandit.paper.claims import FAILS, HOLDS, UNTESTED, Claim, counted, interval, number, written

if TYPE_CHECKING:
    from unbandit.paper.reproduce import Reproduction

MARKS = {HOLDS: "✓", FAILS: "✗", UNTESTED: "?"}
DOTS = 150
"""Dots an inch of the figures."""
LOOKS = {HOLDS: "holds", FAILS: "fails", UNTESTED: "untested"}


def page(reproduction: Reproduction) -> str:
    """Return the page as HTML; all text is escaped, and nothing is fetched from elsewhere."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"written": written, "interval": interval, "number": number}
    environment.filters |= {"embedded": embedded, "inches": inches}
    template = resources.files("unbandit.paper").joinpath("page.html").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        it=reproduction,
        version=__version__,
        marks=MARKS,
        looks=LOOKS,
        fails=FAILS,
        counted=counted,
        took=took(reproduction.seconds),
        own=", ".join(counted(verdict, count) for verdict, count in reproduction.own_verdicts.items() if count),
    )


def embedded(path: Path) -> str:
    """Return a PNG as an address that holds the figure itself."""
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def inches(path: Path) -> tuple[float, float]:
    """Return how wide and how high a PNG of ours is on paper, from its header."""
    wide, high = struct.unpack(">II", path.read_bytes()[16:24])
    return round(wide / DOTS, 2), round(high / DOTS, 2)


def took(seconds: float) -> str:
    """Write a time for people.

    Examples
    --------
    >>> took(3.21), took(75), took(7300)
    ('3.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def listing(reproduction: Reproduction) -> str:
    """Return every claim with what was measured and its verdict, figure by figure, and what selecting runs does."""
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
        yield f"## {made.figure.title} (`{made.figure.name}`{runs})"
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
    selected = [(made.figure.name, row) for made in reproduction.made for row in made.selection]
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
