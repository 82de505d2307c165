"""What an instance takes for its noise and its names."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit import Bernoulli, Gaussian, Instance, ParameterError


@pytest.mark.parametrize("noise", [2, 2.0, np.int64(2), np.float32(2), Gaussian(2.0)])
def test_any_number_is_a_sigma(noise):
    assert Instance([1, 0], noise).noise == Gaussian(2.0)


@pytest.mark.parametrize("noise", ["x", None, True, [1], Bernoulli])
def test_anything_else_is_refused(noise):
    with pytest.raises(ParameterError, match="noise: expected"):
        Instance([1, 0], noise)


@pytest.mark.parametrize("sigma", [0, -1, np.nan, np.inf])
def test_sigma_is_positive(sigma):
    with pytest.raises(ParameterError, match="sigma: expected a positive number"):
        Instance([1, 0], sigma)


def test_bernoulli_means_are_probabilities():
    with pytest.raises(ParameterError, match=r"got 1.2 at position 2"):
        Instance([1, 1.2], Bernoulli())


@pytest.mark.parametrize("means", [[1], [], [[1, 2]], [1, np.nan], [1, np.inf]])
def test_two_finite_means_or_more(means):
    with pytest.raises(ParameterError, match="means: expected"):
        Instance(means)


def test_names_are_told_apart():
    assert Instance([1, 0], arms=["A ", 7]).arms == ("A", "7")
    with pytest.raises(ParameterError, match='got "A" twice'):
        Instance([1, 0], arms=["A", "A "])
    with pytest.raises(ParameterError, match="expected 2 names"):
        Instance([1, 0], arms="ABC")


def test_the_best_arm_and_the_gaps():
    instance = Instance([0.2, 0.9, 0.5], arms="abc")
    assert (instance.best, instance.best_mean, instance.gaps.round(9).tolist()) == ("b", 0.9, [0.7, 0.0, 0.4])
    turned = instance.reordered([2, 0, 1])
    assert (turned.arms, turned.best) == (("c", "a", "b"), "b")
    with pytest.raises(ParameterError, match="order: expected each of 0 to 2 once"):
        instance.reordered([0, 0, 1])
