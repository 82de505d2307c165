"""Simulate an index rule whose index ignores the round, without ever comparing arms.

Such a rule takes the arm with the largest index, and an arm's index changes only by its own pulls. So each arm has a
tape of its own, and the rule merges the tapes: arm `i` is pulled for the `n+1`-st time at the *level*
`m_i(n) = min(U_i(1), ..., U_i(n))`, its running minimum, and all pulls come in descending order of their levels (equal
levels: lowest arm first). An index that rises above the level at which it was uncovered is taken at once, so a stretch
of pulls at one level is one entry of the merge.

The loop lowers a level `v` step by step. Each arm is advanced on its own until its running minimum has reached `v`;
what was uncovered is sorted and written out. The cost of a round does not depend on the number of arms.

Sort the entries of a merge: highest level first, equal levels by arm.

Simulate any index rule, round by round: pull the arm with the largest index.

For indices that change with the round, ties broken at random, longer openings, and rules that decide only now and then.
A round costs as much as there are arms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from unbandit.kernels.bandit import REWARDS, Bandit, arrange, inverse_of, reward, reward_from_word
from unbandit.kernels.compile import compiled, inlined
from unbandit.kernels.formula import index_value
from unbandit.kernels.rng import philox, uniform_from_word

ZERO, ONE, LOW_32, SHIFT_32 = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFF), np.uint64(32)
SIGN, SHIFT_63, ALL_BITS = np.uint64(1 << 63), np.uint64(63), np.uint64(0xFFFFFFFFFFFFFFFF)
TIES = np.uint64(2)  # the tape's stream 2
WINDOW = 32768  # rounds uncovered at a time, at least: few enough for the cache, many enough for each arm


@register_jitable
def level_guide(parameters: Any, sample: NDArray[np.float64], arms: int, horizon: int) -> NDArray[np.float64]:
    """Foretell the level at which the rule has made N pulls, were every sample mean equal to its mean.

    Returns two rows: pulls in all, rising, and the level. It steers the search for the level only; the actions do not
    depend on it.
    """
    points, best = 48, sample.max()
    guide = np.empty((2, points))
    for point in range(points):
        count = np.uint64(np.exp(np.log(float(horizon)) * point / (points - 1)))
        level = index_value(parameters, best, max(count, ONE), ONE)
        pulls = 0.0
        for mean in sample:
            low, high = ZERO, np.uint64(horizon)  # the most pulls after which the index is still at the level or above
            while low < high:
                middle = (low + high + ONE) >> ONE
                if index_value(parameters, mean, middle, ONE) >= level:
                    low = middle
                else:
                    high = middle - ONE
            pulls += float(low)
        guide[0, point], guide[1, point] = (pulls + sample.size) * arms / sample.size, level
    return guide


@inlined
def _guided_level(guide: NDArray[np.float64], pulls: float) -> float:
    """Interpolate the guide, linearly in 1/sqrt(pulls), in which additive indices are nearly straight."""
    at, last = 1, guide.shape[1] - 1
    while at < last and guide[0, at] < pulls:
        at += 1
    x, low, high = 1 / math.sqrt(pulls), 1 / math.sqrt(guide[0, at - 1]), 1 / math.sqrt(guide[0, at])
    share = (x - low) / (high - low) if high < low else 0.0
    return guide[1, at - 1] + share * (guide[1, at] - guide[1, at - 1])


@inlined
def next_level(
    guide: NDArray[np.float64], level: float, pulls: float, target: float, arms: int, step: int, sigma: float
) -> float:
    """Choose the next level: start a little above the foretold one, then go nine tenths of the foretold way.

    The fewer the arms, the less the guide is to be trusted at first. From the ninth step on, steps double, so that the
    search ends for any index whatever.
    """
    if step == 0:
        return _guided_level(guide, max(target * (1 - 0.5 / math.sqrt(arms)), 1.0))
    down = 0.9 * (_guided_level(guide, pulls) - _guided_level(guide, target))
    least = 1e-6 * sigma * 2.0 ** max(0, step - 8)
    return level - max(down, least)


@inlined
def _uncover(
    bandit: Bandit,
    parameters: Any,
    level: float,
    budget: int,
    first_arm: int,
    run: int,
    pulls: NDArray[np.uint64],
    totals: NDArray[np.float64],
    lowest: NDArray[np.float64],
    levels: NDArray[np.float64],
    tags: NDArray[np.uint64],
    entries: np.uint64,
) -> tuple[int, np.uint64]:
    """Advance each arm until its running minimum is at most `level`, or it has made `budget` pulls more.

    Appends an entry `(level, arm and number of the last pull made at it)` for each level at which an arm was pulled
    (its very first pull apart). Returns the arm reached, less than the number of arms if the entries are full, and the
    number of entries.
    """
    means, _, sigma, bernoulli, inverse, (key_low, key_high), table, horizon, _, _ = bandit
    full = np.uint64(levels.size - 2)
    for arm in range(np.uint64(first_arm), np.uint64(means.size)):
        if lowest[arm] <= level:
            continue
        if entries >= full:
            return np.int64(arm), entries
        n, total, minimum, mean, tag = pulls[arm], totals[arm], lowest[arm], means[arm], arm << SHIFT_32
        last = min(n + np.uint64(budget), np.uint64(horizon))  # however often resumed
        if n == ZERO or n & ONE:  # the very first pull makes no entry; half a block may be left over
            first, second = philox(n >> ONE, arm, np.uint64(run), REWARDS, key_low, key_high)
            if n == ZERO:
                n = ONE
                total = reward_from_word(first, mean, sigma, bernoulli, table)
                minimum = index_value(parameters, total, n, ONE)
            if minimum > level:
                n += ONE
                levels[entries], tags[entries] = minimum, tag | n
                total += reward_from_word(second, mean, sigma, bernoulli, table)
                index = index_value(parameters, total * inverse_of(inverse, n), n, ONE)
                if index < minimum:
                    entries, minimum = entries + ONE, index
        first, second = philox(n >> ONE, arm, np.uint64(run), REWARDS, key_low, key_high)
        while minimum > level and n < last and entries < full:
            # the next block is made while this one is used: two chains of operations that do not wait for each other
            next_first, next_second = philox((n >> ONE) + ONE, arm, np.uint64(run), REWARDS, key_low, key_high)
            n += ONE
            levels[entries], tags[entries] = minimum, tag | n
            total += reward_from_word(first, mean, sigma, bernoulli, table)
            index = index_value(parameters, total * inverse_of(inverse, n), n, ONE)
            if index < minimum:
                entries, minimum = entries + ONE, index
            if minimum <= level:
                break
            n += ONE
            levels[entries], tags[entries] = minimum, tag | n
            total += reward_from_word(second, mean, sigma, bernoulli, table)
            index = index_value(parameters, total * inverse_of(inverse, n), n, ONE)
            if index < minimum:
                entries, minimum = entries + ONE, index
            first, second = next_first, next_second
        pulls[arm], totals[arm], lowest[arm] = n, total, minimum
        if minimum > level:  # stopped within a stretch of one level: close its entry
            levels[entries], tags[entries] = minimum, tag | n
            entries += ONE
            if n < last:
                return np.int64(arm), entries
    return means.size, entries


@inlined
def _write_out(
    row: NDArray[Any], at: int, tags: NDArray[np.uint64], entries: np.uint64, written: NDArray[np.uint64]
) -> int:
    """Write the sorted entries as actions from round `at` on; return the round reached.

    Four actions are written at a blow where there is room for them: most stretches are no longer.
    """
    t, horizon = np.uint64(at), np.uint64(row.size)
    for entry in range(entries):
        arm, end = tags[entry] >> SHIFT_32, tags[entry] & LOW_32
        stop = min(t + end - written[arm], horizon)
        written[arm] = end
        first = t
        if t + np.uint64(4) <= horizon:
            row[t] = arm
            code = row[t]
            row[t + ONE] = code
            row[t + np.uint64(2)] = code
            row[t + np.uint64(3)] = code
            first += np.uint64(4)
        for later in range(first, stop):
            row[later] = arm
        t = stop
        if t == horizon:
            break
    return np.int64(t)


@compiled
def merge_tapes(bandit: Bandit, parameters: Any, first_run: int, actions: NDArray[Any]) -> None:
    """Fill `actions` (runs x horizon) with the demonstrations `first_run`, `first_run + 1`, ..."""
    arms, (runs, horizon) = bandit.means.size, actions.shape
    window = max(WINDOW, 8 * arms)
    guide = level_guide(parameters, bandit.sample, arms, horizon)
    pulls, totals, lowest = np.empty(arms, np.uint64), np.empty(arms), np.empty(arms)
    written = np.empty(arms, np.uint64)
    room = min(horizon, window) * 2 + arms * 2 + 8
    levels, tags = np.empty(room), np.empty(room, np.uint64)
    other_levels, other_tags = np.empty(room), np.empty(room, np.uint64)
    for run in range(runs):
        arrange(bandit, run)
        row = actions[run]
        pulls[:], totals[:], lowest[:], written[:] = ZERO, 0.0, np.inf, ONE
        done = min(arms, horizon)
        for arm in range(done):
            row[arm] = arm  # the opening: every arm once, its index being infinite before
        level, step, made = np.inf, 0, 0
        while done < horizon:
            target = min(horizon, made + window)
            level = next_level(guide, level, made, target * 1.004, arms, step, bandit.sigma)  # rather a little too far
            # what has been made so far comes first, so no arm can make more than what is left
            budget, entries, arm = horizon - made, ZERO, 0
            while True:
                arm, entries = _uncover(
                    bandit,
                    parameters,
                    level,
                    budget,
                    arm,
                    first_run + run,
                    pulls,
                    totals,
                    lowest,
                    levels,
                    tags,
                    entries,
                )
                if arm == arms:
                    break
                levels, tags = np.append(levels, levels), np.append(tags, tags)
                other_levels, other_tags = np.empty(levels.size), np.empty(tags.size, np.uint64)
            made = np.int64(pulls.sum())
            tags_in_order = sort_entries(levels, tags, other_levels, other_tags, entries)
            done = _write_out(row, done, tags_in_order, entries, written)
            step = step + 1 if made < target else 1


@inlined
def _to_descending_keys(keys: NDArray[np.uint64], entries: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Turn the bits of levels, in place, into integers that rise where levels fall; return the range of them."""
    least, greatest = ALL_BITS, ZERO
    for entry in range(entries):
        bits = keys[entry] if keys[entry] != SIGN else ZERO  # minus zero is zero
        bits = ~(bits ^ ((ZERO - (bits >> SHIFT_63)) | SIGN))  # a float's bits, mended so that they sort; then turned
        keys[entry] = bits
        least, greatest = min(least, bits), max(greatest, bits)
    return least, greatest


@inlined
def _by_insertion(keys: NDArray[np.uint64], tags: NDArray[np.uint64], entries: np.uint64) -> None:
    """Finish the order by (key, tag): the digits that were looked at leave a few neighbours to exchange."""
    for entry in range(ONE, entries):
        key, tag = keys[entry], tags[entry]
        at = entry
        while at > ZERO and (keys[at - ONE] > key or (keys[at - ONE] == key and tags[at - ONE] > tag)):
            keys[at], tags[at] = keys[at - ONE], tags[at - ONE]
            at -= ONE
        keys[at], tags[at] = key, tag


@register_jitable
def sort_entries(
    levels: NDArray[np.float64],
    tags: NDArray[np.uint64],
    other_levels: NDArray[np.float64],
    other_tags: NDArray[np.uint64],
    entries: np.uint64,
) -> NDArray[np.uint64]:
    """Return the tags in order of descending level, equal levels by ascending tag (the arm is its high half).

    A radix sort on one to three digits of the levels' bits, whatever bits differ, finished by insertion. All four
    arrays are overwritten.
    """
    keys, other_keys = levels.view(np.uint64), other_levels.view(np.uint64)
    least, greatest = _to_descending_keys(keys, entries)
    digit = np.uint64(8) if entries < np.uint64(5000) else np.uint64(11)
    passes = 1 if entries < np.uint64(400) else 2 if entries < np.uint64(300_000) else 3
    buckets = ONE << digit
    shift = ZERO
    while (greatest - least) >> shift >= ONE << (np.uint64(passes) * digit):
        shift += ONE
    counts = np.empty(buckets, np.uint64)
    for _ in range(passes):
        counts[:] = ZERO
        for entry in range(entries):
            counts[((keys[entry] - least) >> shift) & (buckets - ONE)] += ONE
        start = ZERO
        for bucket in range(buckets):
            counts[bucket], start = start, start + counts[bucket]
        for entry in range(entries):
            bucket = ((keys[entry] - least) >> shift) & (buckets - ONE)
            place = counts[bucket]
            counts[bucket] = place + ONE
            other_keys[place], other_tags[place] = keys[entry], tags[entry]
        keys, other_keys, tags, other_tags = other_keys, keys, other_tags, tags
        shift += digit
    _by_insertion(keys, tags, entries)
    return tags


@inlined
def play_largest_index(
    bandit: Bandit, parameters: Any, name: np.uint64, uses_round: bool, random_ties: bool, initial: int, batch: int,
    pulls: NDArray[Any], totals: NDArray[np.float64], index: NDArray[np.float64], actions: NDArray[Any],
) -> None:  # fmt: skip
    """Fill `actions` with demonstration `name`; the three arrays before it, one place an arm, are for its working.

    Each arm is first pulled `initial` times, in turn. From then on the rule decides every `batch` rounds.
    """
    arms, horizon = bandit.means.size, actions.size
    opening = initial * arms
    for arm in range(arms):
        pulls[arm], totals[arm], index[arm] = 0, 0.0, np.inf
    chosen = 0
    for t in range(horizon):
        if t < opening or (t - opening) % batch == 0:
            if t < opening:
                if t % arms == 0:
                    for arm in range(arms):
                        index[arm] = np.inf  # a new turn; the arms that have had theirs go down
            elif uses_round or t == opening:
                for arm in range(arms):
                    n = np.uint64(pulls[arm])
                    mean = totals[arm] * inverse_of(bandit.inverse, n)
                    index[arm] = index_value(parameters, mean, n, np.uint64(t + 1))
            chosen, tied = 0, 1
            for arm in range(1, arms):
                if index[arm] > index[chosen]:
                    chosen, tied = arm, 1
                elif index[arm] == index[chosen]:
                    tied += 1
            if random_ties and tied > 1:
                first, second = philox(np.uint64(t) >> ONE, ZERO, name, TIES, bandit.key[0], bandit.key[1])
                word = second if t & 1 else first
                ahead = np.int64(uniform_from_word(word) * tied)  # how many of the tied arms to pass over
                largest = index[chosen]
                while ahead > 0 or index[chosen] != largest:
                    if index[chosen] == largest:
                        ahead -= 1
                    chosen += 1
        totals[chosen] += reward(bandit, name, np.uint64(chosen), np.uint64(pulls[chosen]))
        pulls[chosen] += 1
        if t < opening:
            index[chosen] = -np.inf
        elif not uses_round:
            n = np.uint64(pulls[chosen])
            mean = totals[chosen] * inverse_of(bandit.inverse, n)
            index[chosen] = index_value(parameters, mean, n, np.uint64(t + 1))
        actions[t] = chosen


@compiled
def pull_largest_index(
    bandit: Bandit, parameters: Any, first_run: int, uses_round: bool, random_ties: bool, initial: int, batch: int,
    actions: NDArray[Any],
) -> None:  # fmt: skip
    """Fill `actions` (runs x horizon) with the demonstrations `first_run`, `first_run + 1`, ..."""
    arms = bandit.means.size
    pulls, totals, index = np.empty(arms, np.int64), np.empty(arms), np.empty(arms)
    for run in range(actions.shape[0]):
        arrange(bandit, run)
        name = np.uint64(first_run + run)
        play_largest_index(
            bandit, parameters, name, uses_round, random_ties, initial, batch, pulls, totals, index, actions[run]
        )
