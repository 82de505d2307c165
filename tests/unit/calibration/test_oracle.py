"""What seeing the rewards would have told: draws against the conjugate posteriors."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit import Bernoulli, Gaussian
from unbandit.calibration.trials import draw_knowing_rewards
from unbandit.inference import BetaPrior, NormalPrior

DRAWS = 100_000


@pytest.mark.parametrize(
    ("prior", "noise", "mean", "deviation"),
    [
        (NormalPrior(0.5, 2.0), Gaussian(0.7), lambda n, s: (0.5 / 4 + s / 0.49) / (1 / 4 + n / 0.49),
         lambda n, s: 1 / np.sqrt(1 / 4 + n / 0.49)),
        (BetaPrior(1.0, 2.0), Bernoulli(), lambda n, s: (1 + s) / (3 + n),
         lambda n, s: np.sqrt((1 + s) * (2 + n - s) / (4 + n)) / (3 + n)),
    ],
    ids=["normal", "beta"],
)  # fmt: skip
def test_who_knows_the_rewards(prior, noise, mean, deviation):
    pulls, sums = np.array([1_950, 34, 2, 0]), np.array([1_900.0, 20.0, 1.0, 0.0])
    drawn = draw_knowing_rewards(prior, noise, pulls, sums, DRAWS, np.random.default_rng(1))
    assert drawn.shape == (DRAWS, 4)
    # five standard errors of the simulated expectation, and of its deviation
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - mean(pulls, sums)), 5 * drawn.std(axis=0) / np.sqrt(DRAWS))
    assert drawn.std(axis=0) == pytest.approx(deviation(pulls, sums), rel=5 / np.sqrt(DRAWS))
