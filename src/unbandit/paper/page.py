"""The page of a reproduction, in one file that needs no other, and the same claims as plain text in Markdown."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined

from unbandit._version import __version__
from unbandit.formatting import duration, markdown_table
from unbandit.paper.claims import FAILS, HOLDS, UNTESTED, Claim, counted, interval, number, written

if TYPE_CHECKING:
    from unbandit.paper.reproduce import Reproduction

MARKS = {HOLDS: "✓", FAILS: "✗", UNTESTED: "?"}
DOTS = 150
"""Dots per inch of the figures."""

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
        took=duration(reproduction.seconds),
        own=", ".join(counted(verdict, count) for verdict, count in reproduction.own_verdicts.items() if count),
    )


def embedded(path: Path) -> str:
    """Return a PNG as an address that holds the figure itself."""
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def inches(path: Path) -> tuple[float, float]:
    """Return how wide and how high a PNG of ours is on paper, from its header."""
    wide, high = struct.unpack(">II", path.read_bytes()[16:24])
    return round(wide / DOTS, 2), round(high / DOTS, 2)


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
        rows = [[f"{'ours: ' * claim.ours}{claim.says}", claim.statistic, *_result(claim)] for claim in made.claims]
        yield from markdown_table(("the paper says", "statistic", "measured", "95% interval", "verdict"), rows)
    selected = [(made.figure.name, row) for made in reproduction.made for row in made.selection]
    if selected:
        yield ""
        yield "## What the authors' selection of runs does"
        yield ""
        yield "Runs whose most-pulled arm is not the best one, which the authors' released code drops, and the mean"
        yield "squared error of the estimates there are, with and without them."
        yield ""
        headings = ("where", "runs", "dropped", "with an estimate", "their mean squared error", "that of those kept")
        rows = []
        for name, row in selected:
            counts = [f"{count:,}" for count in (row.runs, row.dropped, row.estimated)]
            rows.append([f"`{name}`: {row.where}", *counts, number(row.mse), number(row.mse_kept)])
        yield from markdown_table(headings, rows)


def _result(claim: Claim) -> tuple[str, str, str]:
    """Write a value with its error, its interval if there is one, and the verdict with its reason."""
    verdict, value = f"{claim.verdict}: {claim.because}", claim.measured
    if value is None:
        return "", "", verdict
    return written(value), interval(value) if value.low < value.high else "", verdict
