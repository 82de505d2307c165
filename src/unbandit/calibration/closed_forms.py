"""Studies of the closed forms: arms at even distances, every rule that can be inverted, quiet and noisy rewards."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from unbandit.calibration.settings import BERNOULLI, CELLS
from unbandit.demonstrators import parse_rule
from unbandit.estimators.procedures import can_compare
from unbandit.instance import Bernoulli, Gaussian, Instance, Noise
from unbandit.study import Study

__all__ = ["TIMES", "closed_form_studies", "has_closed_form"]

SIGMAS = (0.5, 1.0)
"""Of Gaussian rewards, whose best arm is 1 better than the worst."""

TIMES = 10
"""How many times the runs of the posterior's cells: closed forms take no time, and their errors are told better."""


def has_closed_form(text: str) -> bool:
    """Return whether a closed form reads a rule's records.

    Examples
    --------
    >>> has_closed_form("ucb"), has_closed_form("thompson")
    (True, False)
    """
    return can_compare(parse_rule(text), "switching")


def closed_form_studies(text: str, runs: int | None = None, seed: int = 1) -> dict[str, Study]:
    """Return the studies of one rule by name, one for each number of runs; in every run the arms are shuffled.

    With `runs`, so many instead of each cell's own.

    Examples
    --------
    >>> {name: study.runs for name, study in closed_form_studies("ucb").items()}
    {'2-and-10-arms': 2000, '4-arms': 5000}
    """
    studies = {}
    for usual, group in groupby(sorted(CELLS, key=lambda cell: cell[2]), key=lambda cell: cell[2]):
        cells = [(arms, horizon) for arms, horizon, _ in group]
        numbers, horizons = dict.fromkeys(arms for arms, _ in cells), dict.fromkeys(horizon for _, horizon in cells)
        coins = [_even(arms, 0.9, 0.1, Bernoulli()) for arms in numbers]
        normal = [_even(arms, 1.0, 0.0, Gaussian(sigma)) for arms in numbers for sigma in SIGMAS]
        instances = coins if text in BERNOULLI else normal
        count = TIMES * usual if runs is None else runs
        name = f"{'-and-'.join(str(arms) for arms in numbers)}-arms"
        studies[name] = Study(instances, parse_rule(text), tuple(horizons), count, seed)
    return studies


def _even(arms: int, best: float, worst: float, noise: Noise) -> Instance:
    """Return arms at even distances."""
    said = f"sigma {noise.sigma:g}" if isinstance(noise, Gaussian) else "Bernoulli"
    return Instance(np.linspace(best, worst, arms), noise, name=f"{arms} arms, {said}")
