"""Studies: a grid of instances, rules and horizons, simulated and estimated many times without keeping a log.

`study` is the public class, `grid` its arguments and cells, `description` reads them from a file; `taskgrid` says what
the engine needs of a study, `dispatch` runs it, `rows` does one task, `results` and `storage` keep the parts, `curves`
and `monte_carlo` turn them into statistics with their Monte-Carlo errors.
"""

from unbandit.study.grid import Cell, Estimator, Family, ShrinkingGap, spaced
from unbandit.study.monte_carlo import measured, slope
from unbandit.study.study import Study, StudyResult
from unbandit.study.taskgrid import Task

__all__ = [
    "Cell", "Estimator", "Family", "ShrinkingGap", "Study", "StudyResult", "Task", "measured", "slope", "spaced",
]  # fmt: skip
