"""The latest test up to an epoch: the same as looking at every epoch before, also where there are very many."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit import parse_rule
from unbandit.estimators.procedures import latest_test


@pytest.mark.parametrize("rule", ["sae", "sae:batch=7", "sae:batch=100", "phased"])
def test_every_epoch_has_thelatest_test_before_it(rule):
    tests = parse_rule(rule).for_arms(3).tests
    epochs = np.random.default_rng(1).integers(0, 200_000, (20, 3))
    epochs[0], made = [0, 1, 2], np.flatnonzero(tests(np.arange(200_000)))
    expected = [[max(made[(made > 0) & (made <= epoch)], default=0) for epoch in row] for row in epochs]
    assert latest_test(tests, epochs).tolist() == expected


def test_a_billion_epochs_are_not_looked_at_one_by_one():
    assert latest_test(parse_rule("sae:batch=7").tests, np.array([10**9])).tolist() == [10**9 - 10**9 % 7]
