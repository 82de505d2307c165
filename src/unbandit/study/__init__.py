"""Studies: a grid of instances, rules and horizons, simulated and estimated many times without keeping a log.

`grid` says what a study is, `description` reads one from a file, `tasks` cuts it up, `rows` does a task, `running` has
the tasks done, `folder` keeps what they yield, `folds` makes statistics of it with their Monte-Carlo errors.
"""

from unbandit.study.grid import Cell, Estimator, Family, ShrinkingGap, Study, spaced
from unbandit.study.taskgrid import Task

__all__ = ["Cell", "Estimator", "Family", "ShrinkingGap", "Study", "Task", "spaced"]
