"""Reading switching rounds backwards finds what reading them by their definition does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbandit.kernels.compile import compiled
from unbandit.kernels.tally import find_switches


@compiled
def compiled_switches(actions, pulls, best, own, of_best, rounds):
    find_switches(actions, pulls, best, own, of_best, rounds)


def by_definition(actions, best, arms):
    """Find each arm's last pull that a pull of the best arm follows, and count both arms up to it."""
    own, of_best, rounds = [0] * arms, [0] * arms, [0] * arms
    last = max(t for t, arm in enumerate(actions) if arm == best)
    rounds[best] = last + 1
    for arm in range(arms):
        before = [t for t, pulled in enumerate(actions[:last]) if pulled == arm]
        if arm != best and before:
            rounds[arm], of_best[arm] = before[-1] + 1, actions[: before[-1]].count(best)
            own[arm] = len(before) if of_best[arm] > 0 else 0
    return own, of_best, rounds


@pytest.mark.parametrize("find", [find_switches, compiled_switches], ids=["plain", "compiled"])
@pytest.mark.parametrize("arms", [2, 5, 70])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_as_defined(find, arms, data):
    actions = data.draw(st.lists(st.integers(0, arms - 1), min_size=1, max_size=60))
    pulls = np.bincount(actions, minlength=arms)
    own, of_best, rounds = (np.empty(arms, np.int64) for _ in range(3))
    best = int(pulls.argmax())
    find(np.array(actions, np.uint8), pulls, best, own, of_best, rounds)
    assert (own.tolist(), of_best.tolist(), rounds.tolist()) == by_definition(actions, best, arms)
