"""Counts over bridges, against drawing every sum and playing the rule as it is written down."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import reference_switching, switching_read
from reference_bridges import full_walk, reference_over_bridges, tape_of_indices

from unbandit.demonstrators import KLUCB, MOSS, SAE, UCB, UCB1, LilUCB, Thompson
from unbandit.demonstrators.base import laid_out
from unbandit.errors import ParameterError
from unbandit.instance import Bernoulli, Instance
from unbandit.kernels import bridges
from unbandit.kernels.counts import count_by_bridges
from unbandit.tape import Stream, Tape

LAYOUTS = {
    "equal": np.zeros,
    "spread": lambda arms: np.linspace(0, 1, arms),
    "falling": lambda arms: np.linspace(1, 0, arms),
    "alternating": lambda arms: np.arange(arms) % 2.0,
    "far apart": lambda arms: np.arange(arms) * 1e3,
}
TWO = Instance([1.0, 0.5])


def counts_read(rule, instance, horizon, run, seed, length=None):
    """Play in plain Python, and read the counts from the actions."""
    actions = np.array(reference_over_bridges(rule, instance, horizon, run, seed, length), np.uint8)
    pulls, _, own, of_best = switching_read(actions, len(instance))
    return [pulls.tolist(), own.tolist(), of_best.tolist()]


def counts_found(rule, instance, horizon, run, seed, length=None):
    found = rule.evidence(instance, horizon, seed=seed, first_run=run, length=length, draw="needed")
    return [found.pulls[0].tolist(), found.own[0].tolist(), found.of_best[0].tolist()]


@settings(max_examples=250)
@given(
    st.sampled_from([2, 3, 5, 12]),
    st.sampled_from([1, 2, 3, 8, 9, 13, 31, 64, 100, 500, 1000, 3000]),
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from([1e-12, 1e-6, 0.1, 1.0, 1e6]),
    st.sampled_from([0.0, 0.25, 0.5, 0.9]),
    st.sampled_from([1e-9, 0.01, 2**0.5, 100.0]),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32 - 1),
)
def test_counts_are_those_of_the_rule_on_the_same_sums(arms, horizon, layout, sigma, alpha, scale, seed, run):
    rule, instance = UCB(alpha=alpha, scale=scale), Instance(LAYOUTS[layout](arms), sigma)
    assert counts_found(rule, instance, horizon, run, seed) == counts_read(rule, instance, horizon, run, seed)


@pytest.mark.parametrize("alpha", [0, 0.25, 0.9])
@pytest.mark.parametrize("means", [[0.0, 0.0], [1.0, 0.5], [0.0, 0.3, 0.3]], ids=str)
def test_many_pulls(alpha, means):
    rule, instance, horizon = UCB(alpha=alpha), Instance(means), 70_000
    assert counts_found(rule, instance, horizon, 2, 9) == counts_read(rule, instance, horizon, 2, 9)


@pytest.mark.parametrize("scale", [1e-18, 1e-15, 1e-14])
@pytest.mark.parametrize("sigma", [1e-17, 1e-16, 1e-15])
def test_indices_that_differ_by_rounding_alone(sigma, scale):
    """Means of 1 leave so little room below them that most indices are equal."""
    rule, instance = UCB(alpha=0, scale=scale), Instance([1.0, 1.0, 1.0], sigma)
    for run in range(10):
        assert counts_found(rule, instance, 500, run, 1) == counts_read(rule, instance, 500, run, 1)


def test_counts_agree_with_the_definition():
    rule, instance, horizon = UCB(scale=0.5), Instance([0.2, 0.0, 0.1], 0.3), 400
    for run in range(20):
        actions = reference_over_bridges(rule, instance, horizon, run, 5)
        assert counts_found(rule, instance, horizon, run, 5)[1:] == list(reference_switching(actions, 3)[1:])


@pytest.mark.parametrize("length", [1, 2, 50, 4095, 4096, 4097, 20_000])
def test_the_first_rounds_of_the_longest_horizon(length):
    """The same sums are drawn whatever is asked of them: so the first rounds can be drawn in full."""
    horizon = 2**32 - 1
    assert counts_found(UCB(), TWO, horizon, 0, 3, length) == counts_read(UCB(), TWO, horizon, 0, 3, length)


def test_rounds_are_played_one_after_the_other():
    horizon, lengths = 10**9, [10, 1000, 10**5, 10**6, 10**6 + 1, 10**8, 10**9]
    pulls = np.concatenate([UCB().evidence(TWO, horizon, seed=4, length=t, draw="needed").pulls for t in lengths])
    assert pulls.sum(axis=1).tolist() == lengths
    assert (np.diff(pulls, axis=0) >= 0).all()
    assert np.diff(pulls[3:5], axis=0).sum() == 1


def test_the_longest_horizon():
    found = UCB().evidence(TWO, 2**32 - 1, runs=3, seed=1, draw="needed")
    assert (found.pulls.sum(axis=1) == 2**32 - 1).all()
    assert (found.pulls.argmax(axis=1) == 0).all()
    assert (found.own[:, 1] <= found.pulls[:, 1]).all()
    assert (found.own[:, 1] > 0).all()
    assert (found.of_best[:, 1] <= found.pulls[:, 0]).all()
    assert (found.of_best[:, 1] > 10**6).all()


def test_runs_threads_and_orders():
    instance, orders = Instance([1.0, 0.5, 0.0], 0.5), Tape(8).orders(np.arange(9), 3)
    asked = {"seed": 8, "draw": "needed"}
    whole = UCB().evidence(instance, 10**6, runs=9, threads=2, **asked)
    parts = [UCB().evidence(instance, 10**6, runs=3, first_run=first, threads=1, **asked) for first in (0, 3, 6)]
    assert np.array_equal(whole.pulls, np.concatenate([part.pulls for part in parts]))
    assert np.array_equal(whole.of_best, np.concatenate([part.of_best for part in parts]))
    placed = UCB().evidence(instance, 10**6, runs=9, orders=orders, **asked)
    for run, order in enumerate(orders):
        alone = UCB().evidence(instance.reordered(order), 10**6, first_run=run, **asked)
        assert np.array_equal(placed.pulls[run], alone.pulls[0])
        assert np.array_equal(placed.own[run], alone.own[0])


def test_both_ways_over_one_arm():
    """First at or below a level, and the lowest so far, against the whole tape of indices."""
    rule, instance, length = UCB(alpha=0), Instance([0.3, 0.1], 2.0), 3000
    bandit, parameters = laid_out(instance, length, 6), rule.power_width(length)
    room = (np.empty(bridges.ROOTS + 1, np.int64), np.empty(bridges.ROOTS + 1), np.empty(bridges.ROOTS + 1))
    with np.errstate(over="ignore"):
        path = bridges.path_of(bandit, 1, 7, np.empty((2, bridges.ROOTS)))
        bridges.fill_roots(path, bandit.horizon)
        tape = tape_of_indices(rule, instance, length, 7, 6, 1, length)
        for n in (0, 1, 2, 3, 64, 100, 2047, 2048, 3000):
            assert bridges.lowest_up_to(path, parameters, n, room) == min(tape[:n], default=math.inf)
        for level, start in ((0.5, 1), (0.2, 100), (tape[2500], 1), (tape.min(), 1), (tape.min() - 1e-9, 1)):
            for equal in (True, False):
                below = np.flatnonzero((tape <= level if equal else tape < level)[start - 1 :])
                expected = start + below[0] if below.size else length + 1
                assert bridges.first_below(path, parameters, level, equal, start, length, room)[0] == expected


def test_no_place_is_out_of_bounds():
    """In plain Python, where that is an error."""
    rule, instance, horizon = UCB(alpha=0), Instance([0.0, 0.1]), 5000
    found = np.empty((3, 1, 2), np.int64)
    with np.errstate(over="ignore"):  # the generator's products wrap around, as they should
        count_by_bridges.py_func(laid_out(instance, horizon, 2), rule.power_width(horizon), 0, *found)
    assert found[:, 0].tolist() == counts_read(rule, instance, horizon, 0, 2)


def test_what_is_left_out_is_less_likely_than_promised():
    assert math.exp(-2 * bridges.SURE) < 1e-18
    above = math.sqrt(bridges.SURE * 1024) * 1.0001
    assert bridges._stays_above(above, above, 1024)
    assert not bridges._stays_above(above, 0.99 * above, 1024)
    assert not bridges._stays_above(-above, -above, 1024)


@pytest.mark.parametrize("level", [-1.0, 0.2, 3.0])
def test_the_boundary_lies_below_its_chord(level):
    """Which is what makes one chance of crossing good for a whole stretch."""
    n = np.arange(64.0, 129.0)
    boundary = n * (level - UCB().width(n, 10**8))
    chord = boundary[0] + (boundary[-1] - boundary[0]) * (n - 64) / 64
    assert (boundary <= chord + 1e-9).all()


def test_a_walk_has_independent_steps():
    steps = np.diff([full_walk(Tape(run), run, 1, 2047) for run in range(8)], axis=1)
    assert abs(steps.mean()) < 4 / math.sqrt(steps.size)
    assert abs(steps.var() - 1) < 4 * math.sqrt(2 / steps.size)
    for lag in (1, 2, 3, 64, 1024):
        assert abs((steps[:, lag:] * steps[:, :-lag]).mean()) < 4 / math.sqrt(steps.size / 2)


def test_the_tape_and_the_kernel_mean_the_same_stream():
    assert int(bridges.BRIDGES) == Stream.BRIDGES


class NarrowUCB(UCB):
    """Give UCB another width, and leave the rest as it is."""

    def width(self, pulls, horizon):
        return super().width(pulls, horizon) / np.log(pulls + 2)


REFUSED = {
    "a width of its own": (NarrowUCB(), TWO, "ucb with an index"),
    "ties": (UCB(ties="random"), TWO, "ties broken at random"),
    "initial": (UCB(initial=2), TWO, "initial=2"),
    "batch": (UCB(batch=3), TWO, "batch=3"),
    "Bernoulli": (UCB(), Instance([1.0, 0.5], Bernoulli()), "rewards of 0 and 1"),
    "round": (UCB1(), TWO, "ucb1 with an index"),
    "another width": (LilUCB(), TWO, "lilucb with an index"),
    "a kink": (MOSS(), TWO, "moss with an index"),
    "another index": (KLUCB(), Instance([1.0, 0.5], Bernoulli()), "rewards of 0 and 1"),
    "elimination": (SAE(), TWO, "got sae"),
    "chance": (Thompson(), TWO, "got thompson"),
}


@pytest.mark.parametrize(("rule", "instance", "named"), REFUSED.values(), ids=REFUSED)
def test_what_it_is_not_for(rule, instance, named):
    with pytest.raises(ParameterError, match='draw: "needed" expects') as refused:
        rule.evidence(instance, 100, draw="needed")
    assert named in str(refused.value)


def test_words_and_widths_that_are_refused():
    with pytest.raises(ParameterError, match='expected one of every, needed; got "some"'):
        UCB().evidence(TWO, 100, draw="some")
    with pytest.raises(ParameterError, match="finite width"):
        UCB(scale=1e308).evidence(TWO, 10**8, draw="needed")
    with pytest.raises(ParameterError, match='expects device="cpu"'):
        UCB().evidence(TWO, 100, draw="needed", device="cuda")
