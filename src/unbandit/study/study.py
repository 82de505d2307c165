"""Do what is not yet done of a study, and read what is. Any `Work` counts as a study here.

The seam is small: `executor.submit(perform, study, number, folder)` must give a future with `result`, `cancel` and
`add_done_callback`. Threads do for one machine, for the kernels let go of the interpreter; a process pool does as well,
or a cluster (`clusters`), if its workers see the folder. Who does a task writes its part: nothing large comes back.
"""

from __future__ import annotations

from functools import cached_property

import polars as pl

from unbandit.study.curves import Folds, summary
from unbandit.study.grid import Study
from unbandit.study.results import Result
from unbandit.study.rows import NEEDED, SUMMED


class StudyResult(Result[Study]):
    """Hold a finished study of instances, rules and horizons, and sum it up."""

    def folds(self) -> Folds:
        """Return the rows summed up, in groups of runs from which every statistic has its Monte-Carlo error."""
        return self._folds

    @cached_property
    def _folds(self) -> Folds:
        columns = SUMMED if self.study.keep == "sums" else NEEDED
        return Folds(self.study, self.parts(list(columns)))

    def summary(self) -> pl.DataFrame:
        """Return a row for each cell, estimator and arm: errors, coverage, regret."""
        return summary(self.folds())
