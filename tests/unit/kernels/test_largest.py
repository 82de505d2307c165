"""The probability that one draw is the largest: held against panels of many nodes in plain NumPy."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy import special

from unbandit.kernels.largest import largest_of_normals

NODES, WEIGHTS = np.polynomial.legendre.leggauss(30)
FINE = np.concatenate([[-60, -40, -30, -20, -16], np.arange(-12, 12.1, 0.75), [16, 20, 30, 40]])


def over_panels(centres, deviations):
    """Return places and weights of a quadrature whose panels are fine wherever one of the arms changes."""
    edges = np.unique((centres[:, None] + deviations[:, None] * FINE).ravel())
    half = np.diff(edges)[:, None] / 2
    return edges[:-1, None] + half * (1 + NODES), half * WEIGHTS


def exact_normals(centres, roots, arm):
    x, weights = over_panels(centres, 1 / roots)
    logs = -0.5 * ((x - centres[arm]) * roots[arm]) ** 2 + np.log(roots[arm] / np.sqrt(2 * np.pi))
    for other in set(range(centres.size)) - {arm}:
        logs = logs + special.log_ndtr((x - centres[other]) * roots[other])
    return float((weights * np.exp(logs)).sum())


@numba.njit
def every_normal(centres, roots, arm, out):
    for at in range(arm.size):
        out[at] = largest_of_normals(centres[at].copy(), roots[at].copy(), arm[at])


def check(found, expected):
    """Hold relative errors: 1e-3 down to probabilities of 1e-8, 1e-2 below, as far as double precision goes."""
    error = np.abs(found / np.maximum(expected, 1e-300) - 1)
    assert error[expected > 1e-8].max() < 1e-3
    assert error[(expected <= 1e-8) & (expected > 1e-14)].max(initial=0) < 1e-2


def random_counts(rng, states, arms):
    return np.exp(rng.uniform(0, np.log(5001), (states, arms))).astype(int) - 1


@pytest.mark.parametrize(("arms", "states"), [(2, 300), (3, 500), (4, 1000), (10, 200), (40, 40)])
def test_the_largest_of_normals(arms, states):
    rng = np.random.default_rng(arms)
    roots = np.sqrt(1.0 + random_counts(rng, states, arms))
    scale = np.where(rng.random((states, arms)) < 0.5, 1 / roots, 1 / roots[:, :1])
    centres = rng.uniform(-6, 6, (states, arms)) * scale * rng.choice([0, 0.2, 1], (states, 1))
    arm, found = rng.integers(0, arms, states), np.empty(states)
    every_normal(centres, roots, arm, found)
    expected = np.array([exact_normals(*state) for state in zip(centres, roots, arm, strict=True)])
    check(found, expected)


def test_counts_that_differ_widely():
    """Plain Gauss-Hermite is off by half a nat here."""
    rng, pulls = np.random.default_rng(0), np.array([1950, 34, 9, 4])
    roots = np.sqrt(1.0 + pulls)
    for _ in range(100):
        centres = rng.normal(0, 1, 4) / roots + [0, -0.3, -0.5, -0.6]
        for arm in range(4):
            found = largest_of_normals(centres.copy(), roots.copy(), arm)
            assert found == pytest.approx(exact_normals(centres, roots, arm), rel=1e-3)


def test_all_arms_together_are_certain():
    rng = np.random.default_rng(1)
    for _ in range(50):
        pulls = random_counts(rng, 1, 5)[0]
        centres, roots = rng.normal(0, 0.3, 5), np.sqrt(1.0 + pulls)
        assert sum(largest_of_normals(centres.copy(), roots.copy(), arm) for arm in range(5)) == pytest.approx(
            1, abs=1e-3
        )
