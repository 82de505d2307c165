"""Keep, while demonstrations are read block by block, which of them show what; then say it."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from unbandit.estimators.asking import Answer, Asked
from unbandit.estimators.compare import Reading
from unbandit.estimators.comparison import Comparison
from unbandit.estimators.telling import Check, checks_of, told
from unbandit.result import Notice

__all__ = ["Said", "Signs"]

CELLS = 1 << 15
"""Demonstrations times arms of a block: so few that what is computed on the way stays in a core's own memory."""

Said = list[tuple[int, Notice]]
"""Notices, each with the place of the demonstration that it is about."""


class Signs:
    """Read the demonstrations from `start` up to `stop`, by default all of them, and look for what is worth saying."""

    def __init__(self, asked: Asked, start: int = 0, stop: int | None = None) -> None:
        self.asked, self.start, self.stop = asked, start, len(asked.log) if stop is None else stop
        self.checks = checks_of(asked.rule, asked.method, asked.log.ordered)
        self.marks = {check.code: np.zeros(self.stop - start, np.bool_) for check in self.checks}
        self._kept: dict[int, Reading] = {}

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """Return where blocks begin and end."""
        rows = max(1, CELLS // len(self.asked.log.arms))
        return [(at, min(at + rows, self.stop)) for at in range(self.start, self.stop, rows)]

    def look(self, start: int, stop: int) -> Comparison:
        """Read a block, and mark what shows."""
        seen = self.asked.read(start, stop)
        for check in self.checks:
            self.marks[check.code][start - self.start : stop - self.start] = check.found(seen)
        if stop - start == 1:
            self._kept[start] = seen.row(0)
        return seen.comparison

    def count(self, code: str) -> int:
        """Return in how many demonstrations something shows."""
        return int(np.count_nonzero(self.marks[code])) if code in self.marks else 0

    def tell(self, answer: Answer, notes: Said | None = None) -> None:
        """Say what shows, one demonstration after the other; of each in the order of the checks, then `notes`."""
        found: dict[str, Said] = {"warning": [], "note": []}
        for check in self.checks:
            found[check.kind] += self._said(check)
        for kind, said, kept in (("warning", [], answer.warnings), ("note", notes or [], answer.notes)):
            kept += [notice for _, notice in sorted(found[kind] + said, key=lambda each: each[0])]

    def _said(self, check: Check) -> Said:
        """Put one check into words."""
        places, arms = self.start + np.flatnonzero(self.marks[check.code]), self.asked.log.arms
        return told(places, self.asked.log.demonstrations, lambda at: check.tell(self._one(at), arms))

    def _one(self, which: int) -> Reading:
        """Read one demonstration again, to put it into words."""
        if which not in self._kept:
            self._kept[which] = self.asked.read(which, which + 1).row(0)
        return self._kept[which]


def read_one(asked: Asked, which: int, answer: Answer) -> Comparison:
    """Compare the arms of one demonstration, and keep what is worth saying about it."""
    signs = Signs(asked, which, which + 1)
    comparison = signs.look(which, which + 1)
    signs.tell(answer)
    return comparison.row(0)
