"""The table that `unbandit simulate --counts` writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

__all__ = ["counted"]


def counted(evidence: Any, arms: Sequence[str]) -> pl.DataFrame:
    """Return one row for each run and arm: its pulls and, of an index rule, the counts at its switching round.

    `switching_pulls` are the arm's own there, `switching_pulls_of_best` those of the run's most-pulled arm; empty where
    an arm has no switching round. A single run needs no column `demonstration`.
    """
    import numpy as np
    import polars as pl

    runs = len(evidence.pulls)
    columns: dict[str, Any] = {
        "demonstration": pl.Series(np.repeat(np.arange(1, runs + 1), len(arms))).cast(pl.String),
        "arm": pl.Series(arms, dtype=pl.String).gather(np.tile(np.arange(len(arms)), runs)),
        "pulls": evidence.pulls.reshape(-1),
    }
    if hasattr(evidence, "own"):
        columns["switching_pulls"] = evidence.own.reshape(-1)
        columns["switching_pulls_of_best"] = evidence.of_best.reshape(-1)
    table = pl.DataFrame(columns if runs > 1 else {name: columns[name] for name in columns if name != "demonstration"})
    return table.with_columns(pl.col("^switching_.*$").replace(0, None))
