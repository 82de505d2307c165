"""The words and columns of an answer."""

from __future__ import annotations

__all__ = ["BEST", "BOUNDED", "ESTIMATED", "NUMBERS", "SCHEMA", "UNSEEN", "VERDICTS"]

SCHEMA = "unbandit.estimate/1"

VERDICTS = ("best", "estimated", "bounded", "unseen")
BEST, ESTIMATED, BOUNDED, UNSEEN = range(4)

NUMBERS = ("gap", "gap_low", "gap_high", "mean", "mean_low", "mean_high", "ratio")
