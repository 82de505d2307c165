"""Claims that are settled at full size, at a size where they are settled already.

Beside each: how many of its standard errors the statistic lies from its limit at this size (seed 1), at least. Where it
is too near to count on, the smaller size must not contradict the larger one.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from unbandit.paper.claims import FAILS, HOLDS, UNTESTED
from unbandit.paper.figure import Results, Size, figures
from unbandit.study.curves import StudyCurves
from unbandit.study.rows import rows


class Finished:
    """Stand for a finished study, without a folder."""

    def __init__(self, study):
        self.study = study

    def curves(self) -> StudyCurves:
        with ThreadPoolExecutor(2) as pool:
            return StudyCurves(self.study, pool.map(lambda task: rows(self.study, task), self.study.tasks))


def verdicts(name: str, runs: int) -> dict[str, str]:
    figure, size = figures()[name], Size(runs=runs)
    results = Results(size, {study: Finished(made) for study, made in figure.studies(size).items()})
    claims = figure.claims(results)
    return {f"{claim.says}; {claim.statistic}": claim.verdict for claim in claims}


# figure and runs; then what fails, and what is thin or open, by a part of its text: all else holds
SETTLED = [
    # 3.3 standard errors from its limit, the nearest of those not thin
    ("ucb", 4_000, ["Theorem 2 asks for (α = 0.25)", "very close to −1", "nearly linearly"], ["falls faster"]),
    # 9
    (
        "sae",
        2_000,
        ["Theorem 2 asks for (α = 0.25)", "very close to −1 (α = 0.15)", "nearly linearly with the gap (T to 50,000)"],
        [
            "falls faster",
            "very close to −1",
            "(c) against regret",
            "gap 2/3 is harder to estimate than gap 1/3;",
            "the gap;",
        ],
    ),
    ("gap-decay", 200, ["larger for the larger β"], []),  # 4.1
    ("naive", 200, ["worse than Procedure 2 at the paper's horizons (C₀ = 1.5)"], []),  # 4.4
    ("battery", 40, [], []),  # 8.5
    ("battery-regimes", 40, [], []),  # 14
    ("gene", 20, ["arms (K = 400 against 100)"], ["(K = 200 against 100)", "longest horizon alone"]),  # 5.2
]


@pytest.mark.parametrize(("name", "runs", "failing", "thin"), SETTLED, ids=[row[0] for row in SETTLED])
def test_settled_claims(name, runs, failing, thin):
    found = verdicts(name, runs)
    for said, verdict in found.items():
        expected = FAILS if any(part in said for part in failing) else HOLDS
        allowed = {expected, UNTESTED} if any(part in said for part in thin) else {expected}
        assert verdict in allowed, said
    for part in (*failing, *thin):  # the texts are still those of the claims
        assert any(part in said for said in found), part


def test_protocols_are_known_better_the_longer_the_record():
    """13 standard errors from 25,000 to 70,000 rounds, with either width."""
    found = verdicts("battery-landscape", 20)
    assert [verdict for said, verdict in found.items() if "known better the longer" in said] == [HOLDS] * 2


def test_what_is_computed_needs_no_runs():
    found = verdicts("battery-regimes", 2)
    assert [verdict for said, verdict in found.items() if "differ widely" in said or "smaller gap" in said] == [
        HOLDS
    ] * 2
