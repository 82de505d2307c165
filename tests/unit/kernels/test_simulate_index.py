"""The merge of tapes at its edges: windows, a guide that is wrong, entries that outgrow their room, and its sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import reference_ucb, simulated

from unbandit.demonstrators import UCB
from unbandit.demonstrators.base import laid_out
from unbandit.demonstrators.index import FEW_ARMS
from unbandit.instance import Bernoulli, Instance
from unbandit.kernels import simulate_index
from unbandit.kernels.compile import compiled
from unbandit.kernels.simulate_index import (
    WINDOW,
    Entries,
    IndexOptions,
    forget_states,
    merge_few_tapes,
    merge_tapes,
    new_states,
    pull_largest_index,
    room_to_play,
    sort_entries,
)


def by_argmax(rule: UCB, instance: Instance, horizon: int, seed: int) -> np.ndarray:
    """Simulate by comparing all arms in every round."""
    actions = np.empty((1, horizon), np.uint8)
    options, delays = IndexOptions(False, False, 1, 1), rule.delay_distribution
    room = room_to_play(len(instance.means), horizon, delays)
    pull_largest_index(laid_out(instance, horizon, seed), rule.parameters(horizon), 0, options, *room, actions)
    return actions


INSTANCES = {
    "two arms": Instance([1.0, 0.5]),
    "three arms": Instance([0.5, 1.0, 0.7]),
    "equal arms": Instance([0.0] * 20),
    "Bernoulli": Instance([0.5, 0.5, 0.4], Bernoulli()),
    "certain": Instance([1.0, 1.0, 0.0], Bernoulli()),
    "far away": Instance([-1e6, -1e6 + 1, -1e6 + 0.5]),
}


def merged(rule: UCB, instance: Instance, horizon: int, seed: int, merge=merge_tapes) -> np.ndarray:
    actions = np.empty((1, horizon), np.uint8)
    merge(laid_out(instance, horizon, seed), rule.parameters(horizon), 0, actions)
    return actions


@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("horizon", [WINDOW - 1, WINDOW, WINDOW * 2 + 3, WINDOW * 5])
def test_windows_join_without_a_seam(name, horizon):
    rule, instance = UCB(), INSTANCES[name]
    expected = by_argmax(rule, instance, horizon, seed=3)
    assert np.array_equal(merged(rule, instance, horizon, 3), expected)
    assert np.array_equal(merged(rule, instance, horizon, 3, merge_few_tapes), expected)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("noise", [1e-6, 1.0, 1e6])
def test_a_guide_that_is_wrong_costs_time_only(scale, noise):
    rule, instance, horizon = UCB(scale=scale), Instance([0.0, 1.0, 0.3, -1.0], noise), 70_000
    assert np.array_equal(merged(rule, instance, horizon, 8), by_argmax(rule, instance, horizon, seed=8))


@given(
    st.integers(2, FEW_ARMS + 2),
    st.sampled_from([1, 2, 3, 15, 16, 17, 33, 100, 700]),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([Bernoulli(), 1e-6, 0.3, 1e6]),
    st.sampled_from([1e-6, 2**0.5, 100.0]),
    st.integers(0, 2**64 - 1),
)
def test_few_arms_have_their_turns(arms, horizon, spread, noise, scale, seed):
    rule, instance = UCB(scale=scale), Instance(np.linspace(spread, 0, arms)[np.arange(arms) * 3 % arms], noise)
    assert np.array_equal(
        merged(rule, instance, horizon, seed, merge_few_tapes), by_argmax(rule, instance, horizon, seed)
    )


@pytest.mark.parametrize("horizon", [1, 3, 16, 70])
@pytest.mark.parametrize("noise", [0.5, Bernoulli()], ids=["Gaussian", "Bernoulli"])
def test_no_place_of_few_arms_is_out_of_bounds(horizon, noise):
    """In plain Python, where that is an error."""
    rule, instance = UCB(), Instance([0.4, 0.9, 0.9], noise)
    with np.errstate(over="ignore"):  # the generator's products wrap around, as they should
        actions = merged(rule, instance, horizon, 5, merge_few_tapes.py_func)
    assert actions[0].tolist() == reference_ucb(rule, instance, horizon, 0, 5)


def test_entries_may_outgrow_their_room(monkeypatch):
    rule, instance, horizon = UCB(), Instance(np.arange(130) % 2), 4000
    expected = by_argmax(rule, instance, horizon, seed=1)
    # a sample that knows only the bad arms misleads the guide: it aims far too low
    bandit = laid_out(instance, horizon, 1)._replace(sample=np.zeros(2))
    actions = np.empty((1, horizon), np.uint8)
    simulate_index.merge_tapes(bandit, rule.parameters(horizon), 0, actions)
    assert np.array_equal(actions, expected)
    # once more in plain Python, where a place out of bounds is an error, and where one can see that it did grow
    uncover, stopped_at = simulate_index._uncover, []

    def spied(*given):
        answer = uncover(*given)
        stopped_at.append(int(answer[0]))
        return answer

    monkeypatch.setattr(simulate_index, "_uncover", spied)
    with np.errstate(over="ignore"):  # the generator's products wrap around, as they should
        simulate_index.merge_tapes.py_func(bandit, rule.parameters(horizon), 0, actions)
    assert min(stopped_at) < 130
    assert np.array_equal(actions, expected)


@given(st.integers(0, 2**64 - 1), st.integers(8, 60), st.sampled_from([-1.0, 0.3, 0.6, 1.0]))
def test_full_entries_are_resumed_where_they_stopped(seed, room, level):
    """In plain Python, where an access out of bounds is an error: little room gives the entries of much room."""
    arms, horizon = 5, 40
    rule, bandit = UCB(scale=0.5), laid_out(Instance(np.zeros(arms), 0.3), horizon, seed)

    def uncovered(room: int) -> tuple[dict[int, list[int]], list[int]]:
        states = new_states(arms)
        forget_states(states)
        heights, tags, arm, entries = np.empty(room), np.empty(room, np.uint64), 0, np.uint64(0)
        while arm < arms:
            arm, entries = simulate_index._uncover(
                bandit, rule.parameters(horizon), level, horizon, arm, 0, states, Entries(heights, tags), entries
            )
            if arm < arms:
                heights, tags = np.append(heights, heights), np.append(tags, tags)
        ends = {}
        for height, tag in zip(heights[: int(entries)].tolist(), tags[: int(entries)].tolist(), strict=True):
            ends[tag >> 32, height] = min(tag & 0xFFFFFFFF, horizon)  # one level may be closed more than once
        return ends, np.minimum(states.pulls, horizon).tolist()

    assert uncovered(room) == uncovered(10_000)


@pytest.mark.parametrize(("arms", "horizon"), [(224, 3000), (600, 1800), (300, 200), (257, 257)])
@pytest.mark.parametrize("noise", [0.3, Bernoulli()], ids=["Gaussian", "Bernoulli"])
@pytest.mark.parametrize("ties", ["lowest", "random"])
def test_many_arms(arms, horizon, noise, ties):
    instance = Instance(np.random.default_rng(arms).permutation(np.linspace(0, 1, arms)), noise)
    rule = UCB(alpha=0.1, scale=0.5, ties=ties)
    assert simulated(rule, instance, horizon, seed=9)[0].tolist() == reference_ucb(rule, instance, horizon, 0, 9)


PINNED = "0123030211003012003023133300030003100211"


def test_a_seeded_demonstration_never_changes():
    """Pins the bits: a change here changes every published study's demonstrations."""
    ucb = simulated(UCB(), Instance([1.0, 0.5, 0.2, 0.9], 0.5), 40, seed=2024)[0].tolist()
    assert "".join(map(str, ucb)) == PINNED


@compiled
def compiled_sort(levels, tags, other_levels, other_tags, entries):
    return sort_entries(levels, tags, other_levels, other_tags, entries)


def sort(levels: np.ndarray, tags: np.ndarray) -> list[int]:
    entries = len(levels)
    spare = np.empty(entries + 3), np.empty(entries + 3, np.uint64)  # room to spare, as in a merge
    given = np.append(levels, [9e9] * 3), np.append(tags, np.zeros(3, np.uint64))
    return compiled_sort(*given, *spare, np.uint64(entries))[:entries].tolist()


def expected(levels: np.ndarray, tags: np.ndarray) -> list[int]:
    return [tag for _, tag in sorted((-level, tag) for level, tag in zip(levels.tolist(), tags.tolist(), strict=True))]


# adding 0 makes -0.0 into 0.0: no index is ever -0.0
numbers = st.one_of(st.floats(-1e300, 1e300), st.sampled_from([0.0, 1.0, 0.5, -0.5])).map(lambda level: level + 0.0)


@given(st.lists(numbers, min_size=1, max_size=200))
def test_highest_level_first_then_lowest_tag(levels):
    levels, tags = np.array(levels), np.arange(len(levels), dtype=np.uint64)[::-1].copy()
    assert sort(levels, tags) == expected(levels, tags)


@pytest.mark.parametrize("entries", [399, 400, 4999, 5000, 20_000, 300_001])
@pytest.mark.parametrize("spread", ["around zero", "far from zero", "few values"])
def test_every_number_of_digits(entries, spread):
    random = np.random.default_rng(entries)
    levels = random.normal(size=entries)
    if spread == "far from zero":
        levels += 1000
    if spread == "few values":
        levels = levels.round(1) + 0.0
    tags = random.permutation(entries).astype(np.uint64)
    if spread == "few values":
        tags.sort()  # equal levels arrive in the order of their arms, as in a merge
    assert sort(levels, tags) == expected(levels, tags)
