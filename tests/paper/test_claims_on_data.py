"""Claims about batteries and genes that are settled at the paper's size, at a size where they are settled already.

Written beside each: how many of its standard errors the statistic lies from its limit at this size (seed 1), at least.
"""

from __future__ import annotations

import pytest

from unbandit.paper.picture import Results, Size
from unbandit.paper.registry import pictures
from unbandit.study.folds import Folds
from unbandit.study.rows import rows


class Finished:
    """Stand for a finished study, without a folder."""

    def __init__(self, study):
        self.study = study

    def folds(self) -> Folds:
        return Folds(self.study, (rows(self.study, task) for task in self.study.tasks))


def verdicts(name: str, runs: int) -> list[tuple[str, str]]:
    picture, size = pictures()[name], Size(runs=runs)
    results = Results(size, {study: Finished(made) for study, made in picture.studies(size).items()})
    return [(claim.says, claim.verdict) for claim in picture.claims(results)]


@pytest.mark.parametrize(
    ("name", "runs", "part", "verdict", "count"),
    [
        ("battery", 40, "the longer the record", "holds", 3),  # 8.5 standard errors
        ("battery-regimes", 40, "easier to estimate in the low regime", "holds", 1),  # 14
        ("battery-landscape", 20, "known better the longer the record", "holds", 2),  # 13 from 25,000 to 70,000
        ("gene", 20, "falls with T", "holds", 3),  # 11
        ("gene", 20, "(K = 400 against 100)", "does not hold", 1),  # 5.2
    ],
)
def test_a_settled_claim(name, runs, part, verdict, count):
    found = [said for said in verdicts(name, runs) if part in said[0]]
    assert [each for _, each in found] == [verdict] * count


def test_what_is_computed_needs_no_runs():
    found = verdicts("battery-regimes", 2)
    assert [verdict for says, verdict in found if "differ widely" in says or "smaller gap" in says] == ["holds"] * 2
