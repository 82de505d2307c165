"""The paper's width, and its two constructors."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from unbandit.demonstrators import SAE, UCB


@pytest.mark.parametrize("alpha", [0.0, 1e-300, 1e-12, 0.001, 0.15, 0.25, 0.5, 0.99])
@pytest.mark.parametrize("horizon", [2, 500, 10**6, 2**32 - 1])
def test_the_width_is_the_papers(alpha, horizon):
    rule = UCB(alpha=alpha, scale=1.7)
    with mpmath.workdps(400):
        exact_alpha = mpmath.mpf(alpha)
        growth = (mpmath.mpf(horizon) ** exact_alpha - 1) / exact_alpha if alpha else mpmath.log(horizon)
        exact = [float(mpmath.mpf(1.7) * mpmath.sqrt(growth / n)) for n in (1, 2, 1000)]
    assert rule.width(np.array([1.0, 2.0, 1000.0]), horizon) == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize("rule", [UCB, SAE])
def test_the_two_constructors(rule):
    assert rule.unit_variance(0.1).factor == math.sqrt(2)
    assert rule.variance_adjusted(0.1, sigma=0.14).factor == 5 * 0.14
    assert rule().alpha == 0.25
    assert rule.unit_variance() == rule() == rule(scale=math.sqrt(2))
    assert rule(sigma=0.14) == rule.variance_adjusted(sigma=0.14)


def test_the_index_is_mean_plus_width():
    rule = UCB(alpha=0.5, scale=2)
    assert rule.index(0.3, 0, 1, 100) == math.inf
    assert rule.index(0.3, 9, 50, 100) == 0.3 + 2 * math.sqrt(18 / 9)
