"""What is to be reached, and whether a figure reaches it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from unbandit.study.monte_carlo import Measured

__all__ = ["MISSED", "NEARLY", "REACHED", "UNKNOWN", "Figure", "Goal", "Verdict", "judge"]

Verdict = Literal["reached", "within error", "not reached", "not measured"]
REACHED: Verdict = "reached"
NEARLY: Verdict = "within error"
MISSED: Verdict = "not reached"
UNKNOWN: Verdict = "not measured"

ERRORS = 2.0
"""So many Monte-Carlo errors may a figure be beyond its limit by luck."""


def judge(measured: Measured, low: float = -math.inf, high: float = math.inf) -> Verdict:
    """Tell whether a figure lies between its limits: itself, or within two Monte-Carlo errors, or not.

    Examples
    --------
    >>> [judge(Measured(value, 0.01, 20), 0.93, 0.97) for value in (0.95, 0.92, 0.90, math.nan)]
    ['reached', 'within error', 'not reached', 'not measured']
    """
    if not math.isfinite(measured.value):
        return UNKNOWN
    if low <= measured.value <= high:
        return REACHED
    reach = ERRORS * measured.error if math.isfinite(measured.error) else 0.0
    return NEARLY if low - reach <= measured.value <= high + reach else MISSED


@dataclass(frozen=True)
class Figure:
    """Hold one figure with its verdict.

    Attributes
    ----------
    row, column
        Where it stands in the table of its goal: whose figure it is, and in which cell.
    measured
        The figure with its Monte-Carlo error.
    text
        How it is written.
    verdict
        Whether it reaches the goal; None where the goal does not speak of it.
    """

    row: str
    column: str
    measured: Measured
    text: str
    verdict: Verdict | None


@dataclass(frozen=True)
class Goal:
    """Hold one line of what is to be reached, and every figure that it speaks of.

    Attributes
    ----------
    key
        The goal in a word.
    measure, reach
        What is measured, and what is to be reached.
    rows
        What the rows of its table are, in a word.
    figures
        All figures.
    note
        What a reader of the table has to know.
    """

    key: str
    measure: str
    reach: str
    rows: str
    figures: Sequence[Figure]
    note: str = ""

    @property
    def judged(self) -> list[Figure]:
        """Return the figures that the goal speaks of, and that could be measured."""
        return [figure for figure in self.figures if figure.verdict not in (None, UNKNOWN)]

    @property
    def span(self) -> str:
        """Return the smallest and the largest figure that the goal speaks of, as they are written."""
        shown = sorted(self.judged or self.figures, key=lambda figure: figure.measured.value)
        shown = [figure for figure in shown if math.isfinite(figure.measured.value)]
        if not shown:
            return "-"
        ends = dict.fromkeys((shown[0].text, shown[-1].text))
        return " to ".join(ends)

    @property
    def counted(self) -> str:
        """Return how many figures have which verdict.

        Examples
        --------
        >>> one = Measured(1.0, 0.1, 20)
        >>> figures = [Figure("ucb", "K = 2", one, "1.0", verdict) for verdict in (REACHED, MISSED, REACHED, None)]
        >>> Goal("coverage", "coverage", "95%", "rule", figures).counted
        '2 reached, 1 not reached'
        """
        counts = Counter(figure.verdict for figure in self.figures)
        order = (REACHED, NEARLY, MISSED, UNKNOWN)
        return ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in order if counts[verdict]) or "no goal"
