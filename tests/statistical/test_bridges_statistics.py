"""Demonstrations over bridges have the distribution of those that draw every reward.

Two samples of independent runs each. A Kolmogorov-Smirnov test refuses equal distributions once in 10^4; ties in the
counts make it rarer. Means must agree within 4 standard errors, and variances within 5 (counts have heavier tails).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from unbandit.demonstrators import UCB
from unbandit.instance import Instance

CASES = {
    "two arms": (UCB(), [1.0, 0.5], 1.0, 2_000, 4_000),
    "two arms, long": (UCB(), [1.0, 0.5], 1.0, 300_000, 300),
    "logarithm": (UCB(alpha=0), [1.0, 0.5], 1.0, 20_000, 2_000),
    "equal arms": (UCB(alpha=0.5), [0.0, 0.0, 0.0], 1.0, 3_000, 3_000),
    "four arms": (UCB(), [1.0, 2 / 3, 1 / 3, 0.0], 0.5, 5_000, 2_000),
    "a narrow width": (UCB(alpha=0, scale=0.3), [0.2, 0.0], 1.0, 2_000, 4_000),
}


@pytest.mark.parametrize(("rule", "means", "sigma", "horizon", "runs"), CASES.values(), ids=CASES)
def test_counts_have_the_same_distribution(rule, means, sigma, horizon, runs):
    instance = Instance(means, sigma)
    every = rule.evidence(instance, horizon, runs=runs, seed=11)
    needed = rule.evidence(instance, horizon, runs=runs, seed=11, draw="needed")
    for column in ("pulls", "own", "of_best"):
        for arm in range(len(means)):
            one, other = getattr(every, column)[:, arm], getattr(needed, column)[:, arm]
            if one.any() or other.any():
                assert ks_2samp(one, other).pvalue > 1e-4, (column, arm)
            for power, errors in ((1, 4), (2, 5)):
                first, second = (
                    np.abs(values - one.mean()) ** power if power > 1 else values for values in (one, other)
                )
                error = np.sqrt((first.var() + second.var()) / runs)
                assert abs(first.mean() - second.mean()) <= errors * error, (column, arm, power)


def test_they_are_other_demonstrations():
    instance = Instance([1.0, 0.5])
    every, needed = (UCB().evidence(instance, 2_000, runs=500, seed=3, draw=draw) for draw in ("every", "needed"))
    apart = np.corrcoef(every.pulls[:, 1], needed.pulls[:, 1])[0, 1]
    assert abs(apart) < 4 / np.sqrt(500)
