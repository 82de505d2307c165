"""A finished reproduction, its page in one file that needs no other, and its claims as plain text in Markdown."""

import base64
import struct
from collections import Counter
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

import polars as pl
from jinja2 import Environment, StrictUndefined

from unbandit._version import __version__
from unbandit.formatting import duration, markdown_table
from unbandit.paper.claims import FAILS, HOLDS, UNTESTED, VERDICTS, Claim, counted, interval, number, written
from unbandit.paper.figure import PaperFigure, Selection, Size

MARKS = {HOLDS: "✓", FAILS: "✗", UNTESTED: "?"}
DOTS = 150  # dots per inch of the figures

LOOKS = {HOLDS: "holds", FAILS: "fails", UNTESTED: "untested"}


@dataclass(frozen=True)
class FinishedFigure:
    """A finished figure with the runs of its studies, its claims, and its files (PNG, SVG, Parquet)."""

    figure: PaperFigure
    runs: tuple[int, ...]
    claims: list[Claim]
    selection: list[Selection]
    files: tuple[Path, Path, Path]


@dataclass
class Reproduction:
    """A finished reproduction."""

    folder: Path
    size: Size
    asked: str  # the shell command for it: what decides the numbers
    where: str  # and what does not
    parts: int = 0  # of all studies
    parts_before: int = 0  # that were there already
    rounds: int = 0  # that the studies simulate
    seconds: float = 0.0
    made: list[FinishedFigure] = field(default_factory=list)  # in the order of the page

    @property
    def command(self) -> str:
        """Return the exact command."""
        return self.asked + self.where

    @property
    def page(self) -> Path:
        """Return the path of the page."""
        return self.folder / "index.html"

    @property
    def listing(self) -> Path:
        """Return the path of the claims as plain text."""
        return self.folder / "claims.md"

    @property
    def verdicts(self) -> dict[str, int]:
        """Return how many of the paper's claims have each verdict."""
        return self._counted(ours=False)

    @property
    def own_verdicts(self) -> dict[str, int]:
        """Return how many of our additional questions have each verdict."""
        return self._counted(ours=True)

    def _counted(self, *, ours: bool) -> dict[str, int]:
        counted = Counter(claim.verdict for made in self.made for claim in made.claims if claim.ours == ours)
        return {verdict: counted[verdict] for verdict in VERDICTS}

    @property
    def claims(self) -> pl.DataFrame:
        """Return every claim as a row."""
        numbers = ("value", "error", "low", "high")
        schema = {
            **dict.fromkeys(("picture", "says", "statistic"), pl.String),
            **dict.fromkeys(numbers, pl.Float64),
            **dict.fromkeys(("verdict", "because"), pl.String),
            "ours": pl.Boolean,
        }
        rows = []
        for name, claim in ((made.figure.name, claim) for made in self.made for claim in made.claims):
            measured = [getattr(claim.measured, number, None) for number in numbers]
            rows.append((name, claim.says, claim.statistic, *measured, claim.verdict, claim.because, claim.ours))
        return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(*numbers).fill_nan(None))


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
    whose = (("the paper's claims", reproduction.verdicts), ("our additional questions", reproduction.own_verdicts))
    verdicts = "; of ".join(
        f"{name}, {', '.join(counted(verdict, count) for verdict, count in counts.items())}"
        for name, counts in whose if any(counts.values())
    )  # fmt: skip
    parts = [
        "# What the paper says, and what was measured",
        f"Written by `{reproduction.asked}` of unbandit {__version__}, seed {reproduction.size.seed}.\n"
        f"{f'Of {verdicts}. ' if verdicts else ''}Values are given with one standard\n"
        "error, and decided by their 95% interval unless the statistic says otherwise.",
    ]
    for made in reproduction.made:
        if made.claims:
            runs = f", {' and '.join(f'{count:,}' for count in made.runs)} runs" if made.runs else ""
            rows = [[f"{'ours: ' * claim.ours}{claim.says}", claim.statistic, *_result(claim)] for claim in made.claims]
            table = markdown_table(("claim", "statistic", "measured", "95% interval", "verdict"), rows)
            parts += [f"## {made.figure.title} (`{made.figure.name}`{runs})", "\n".join(table)]
    rows = [
        [f"`{made.figure.name}`: {row.where}", *(f"{count:,}" for count in (row.runs, row.dropped, row.estimated)),
         number(row.mse), number(row.mse_kept)]
        for made in reproduction.made
        for row in made.selection
    ]  # fmt: skip
    if rows:
        headings = ("where", "runs", "dropped", "with an estimate", "their mean squared error", "that of those kept")
        parts += [
            "## What the authors' selection of runs does",
            "Runs whose most-pulled arm is not the best one, which the authors' released code drops, and the mean\n"
            "squared error of the estimates there are, with and without them.",
            "\n".join(markdown_table(headings, rows)),
        ]
    return "\n\n".join(parts) + "\n"


def _result(claim: Claim) -> tuple[str, str, str]:
    """Write a value with its error, its interval if there is one, and the verdict with its reason."""
    verdict, value = f"{claim.verdict}: {claim.because}", claim.measured
    if value is None:
        return "", "", verdict
    return written(value), interval(value) if value.low < value.high else "", verdict
