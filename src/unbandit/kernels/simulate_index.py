"""Simulations of index rules: by merging the arms' tapes, or round by round (`pull_largest_index`).

Where the index ignores the round, an arm's index changes only by its own pulls: arm `i` is pulled for the `n+1`-st time
at the *level* `m_i(n) = min(U_i(1), ..., U_i(n))`, and all pulls come in descending order of their levels (at equal
levels the lowest arm first). `merge_tapes` lowers a level step by step, advances each arm on its own until its running
minimum has reached it, and sorts what that uncovered; a stretch of pulls at one level is one entry. The cost of a round
does not depend on the number of arms. `merge_few_tapes` keeps a few arms in order instead. Indices that change with the
round, random ties, longer openings and batches take the plain loop.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from unbandit.kernels.arrivals import Arrivals, all_known, arrivals_for, forget_arrivals, send_reward
from unbandit.kernels.bandit import Bandit, arrange, inverse_of, reward
from unbandit.kernels.compile import BORROWING, Numbers, Words, borrowing, called, compiled, inlined
from unbandit.kernels.formula import index_value
from unbandit.kernels.rewards import (
    BATCH,
    BLOCK,
    SLOTS,
    STRIDE,
    Ahead,
    count_above,
    draw_block,
    draw_first,
    forget_ahead,
    new_ahead,
    next_block,
    prepare_next,
    prepare_rewards,
    series,
)
from unbandit.kernels.rng import philox, uniform_from_word

ZERO, ONE, FULL = np.uint64(0), np.uint64(1), np.uint64(SLOTS)
LOW_32, SHIFT_32 = np.uint64(0xFFFFFFFF), np.uint64(32)
SIGN, SHIFT_63, ALL_BITS = np.uint64(1 << 63), np.uint64(63), np.uint64(0xFFFFFFFFFFFFFFFF)
TIES = np.uint64(2)  # the tape's stream 2
MANY_PULLS = 48  # of each arm that are left, on average: then several blocks are prepared together
WINDOW = 32768  # rounds merged at a time, at least: few enough for the cache, many enough for each arm


class ArmStates(NamedTuple):
    """The arms: pulls made, and the running minimum of the index, one number per arm; the pulls drawn ahead."""

    pulls: Words
    lowest: Numbers
    ahead: Ahead


@called
def new_states(arms: int) -> ArmStates:
    """Return room for the states of all arms."""
    return ArmStates(np.empty(arms, np.uint64), np.empty(arms), new_ahead(arms, STRIDE))


@borrowing
def forget_states(states: ArmStates) -> None:
    """Begin a run."""
    for arm in range(states.pulls.size):
        states.pulls[arm], states.lowest[arm] = ZERO, np.inf
    forget_ahead(states.ahead)


class Entries(NamedTuple):
    """Entries of a merge: the level of a stretch of pulls, and its arm (high half) with the last pull (low half)."""

    levels: Numbers
    tags: Words


@compiled
def level_guide(parameters: Any, sample: Numbers, arms: int, horizon: int) -> Numbers:
    """Predict the level after N pulls in all, as if every sample mean equalled its mean.

    Returns two rows: pulls in all, rising, and the level. It only steers the search for the next level; the actions do
    not depend on it.
    """
    points, best = 48, sample[0]
    for mean in sample:
        best = max(best, mean)
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
def _guided_level(guide: Numbers, pulls: float) -> float:
    """Interpolate the guide, linearly in 1/sqrt(pulls), in which additive indices are nearly straight."""
    at, last = 1, guide.shape[1] - 1
    while at < last and guide[0, at] < pulls:
        at += 1
    x, low, high = 1 / math.sqrt(pulls), 1 / math.sqrt(guide[0, at - 1]), 1 / math.sqrt(guide[0, at])
    share = (x - low) / (high - low) if high < low else 0.0
    return guide[1, at - 1] + share * (guide[1, at] - guide[1, at - 1])


@inlined
def next_level(guide: Numbers, level: float, pulls: float, target: float, arms: int, step: int, sigma: float) -> float:
    """Choose the next level: first one a little above the predicted level, then nine tenths of the way to it.

    The fewer the arms, the less reliable the guide is at first. From the ninth step on, steps double, so that the
    search ends for any index.
    """
    if step == 0:
        return _guided_level(guide, max(target * (1 - 0.5 / math.sqrt(arms)), 1.0))
    down = 0.9 * (_guided_level(guide, pulls) - _guided_level(guide, target))
    least = 1e-6 * sigma * 2.0 ** max(0, step - 8)
    return level - max(down, least)


@borrowing
def _uncover(
    bandit: Bandit, parameters: Any, level: float, budget: int, first_arm: int, run: int, states: ArmStates,
    entries: Entries, count: np.uint64,
) -> tuple[int, np.uint64]:  # fmt: skip
    """Advance each arm until its running minimum is at most `level`, or it has made `budget` pulls more.

    Appends an entry for each level at which an arm was pulled, except its very first pull. Returns the arm reached,
    less than the number of arms if the entries are full, and the number of entries.
    """
    pulls, lowest, ahead = states
    full = np.uint64(entries.levels.size - 2)
    many = budget >= MANY_PULLS * bandit.means.size
    for arm in range(np.uint64(first_arm), np.uint64(bandit.means.size)):
        if lowest[arm] <= level:
            continue
        if count >= full:
            return np.int64(arm), count
        n, minimum, tag, slot = pulls[arm], lowest[arm], arm << SHIFT_32, FULL
        last = min(n + np.uint64(budget), np.uint64(bandit.horizon))  # however often resumed
        while minimum > level and n < last and count < full:
            if n == ahead.ends[arm]:
                if not many:
                    prepare_rewards(bandit, np.uint64(run), (arm,), (n,), ahead.room)
                    slot = ZERO
                elif slot == FULL:
                    prepare_next(bandit, np.uint64(run), arm, ahead)
                    slot = ZERO
                next_block(bandit, parameters, arm, slot, ahead)
                slot += ONE
            place = (arm + ONE) * STRIDE - (ahead.ends[arm] - n)
            if n == ZERO:  # the very first pull has no entry
                minimum, n, place = ahead.minima[place], ONE, place + ONE
            stop = min(min(ahead.ends[arm], last), n + full - count)
            while minimum > level and n < stop:
                n += ONE
                entries.levels[count], entries.tags[count] = minimum, tag | n
                after = ahead.minima[place]
                count += np.uint64(after < minimum)  # a new minimum completes an entry
                minimum, place = after, place + ONE
        pulls[arm], lowest[arm] = n, minimum
        if minimum > level:  # stopped within a stretch at one level: close its entry
            entries.levels[count], entries.tags[count] = minimum, tag | n
            count += ONE
            if n < last:
                return np.int64(arm), count
    return bandit.means.size, count


@borrowing
def _to_descending_keys(keys: Words, entries: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Turn the bits of levels, in place, into integers that rise where levels fall; return the range of them."""
    least, greatest = ALL_BITS, ZERO
    for entry in range(entries):
        bits = keys[entry] if keys[entry] != SIGN else ZERO  # minus zero is zero
        bits = ~(bits ^ ((ZERO - (bits >> SHIFT_63)) | SIGN))  # a float's bits in sortable form, then reversed
        keys[entry] = bits
        least, greatest = min(least, bits), max(greatest, bits)
    return least, greatest


@borrowing
def _by_insertion(keys: Words, tags: Words, entries: np.uint64) -> None:
    """Finish the order by (key, tag): the radix sort leaves only a few neighbours to exchange."""
    for entry in range(ONE, entries):
        key, tag = keys[entry], tags[entry]
        at = entry
        while at > ZERO and (keys[at - ONE] > key or (keys[at - ONE] == key and tags[at - ONE] > tag)):
            keys[at], tags[at] = keys[at - ONE], tags[at - ONE]
            at -= ONE
        keys[at], tags[at] = key, tag


@called
def sort_entries(levels: Numbers, tags: Words, other_levels: Numbers, other_tags: Words, entries: np.uint64) -> Words:
    """Return the tags in order of descending level, equal levels by ascending tag (the arm is its high half).

    A radix sort on one to three digits of the levels' bits, whichever bits differ, finished by insertion. All four
    arrays are overwritten. NumPy's sorts inside a kernel allocate, and know no second key.
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
        for bucket in range(buckets):
            counts[bucket] = ZERO
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


def _at_once(row: NDArray[Any]) -> np.uint64:
    """Return how many actions to write at a time. Stretches are short where actions take more than one byte.

    A wide store at every second byte would nearly always touch two lines of the cache.
    """
    return np.uint64(32 if row.itemsize == 1 else 8)


@overload(_at_once, strict=False, jit_options=BORROWING)
def _compiled_at_once(row: Any) -> Any:
    count = _at_once(np.empty(0, row.dtype.name))
    return lambda row: count


@borrowing
def _write_stretch(row: NDArray[Any], at: np.uint64, stop: np.uint64, arm: np.uint64) -> np.uint64:
    """Write pulls of an arm from round `at` to round `stop`; return the latter.

    Many actions are written at a time where there is room for them, in one store; the next stretch overwrites those
    that are too many.
    """
    t, at_once = at, _at_once(row)
    while t < stop and t + at_once <= np.uint64(row.size):
        row[t] = arm
        code = row[t]
        for later in range(at_once):
            row[t + later] = code
        t += at_once
    for later in range(t, stop):
        row[later] = arm
    return stop


@borrowing
def _write_out(row: NDArray[Any], at: int, tags: Words, entries: np.uint64, written: Words) -> int:
    """Write the sorted entries as actions from round `at` on; return the round reached."""
    t, horizon = np.uint64(at), np.uint64(row.size)
    for entry in range(entries):
        arm, end = tags[entry] >> SHIFT_32, tags[entry] & LOW_32
        t = _write_stretch(row, t, min(t + end - written[arm], horizon), arm)
        written[arm] = end
        if t == horizon:
            break
    return np.int64(t)


@called
def _with_twice_the_room(values: NDArray[Any]) -> NDArray[Any]:
    """Return a longer array that begins with these values."""
    larger = np.empty(2 * values.size, values.dtype)
    for at in range(values.size):
        larger[at] = values[at]
    return larger


@compiled
def merge_tapes(bandit: Bandit, parameters: Any, first_run: int, actions: NDArray[Any]) -> None:
    """Fill `actions` (runs x horizon) with the demonstrations `first_run`, `first_run + 1`, ..."""
    arms, (runs, horizon) = bandit.means.size, actions.shape
    window = max(WINDOW, 8 * arms)
    guide = level_guide(parameters, bandit.sample, arms, horizon)
    states = new_states(arms)
    written = np.empty(arms, np.uint64)
    room = min(horizon, window) * 2 + arms * 2 + 8
    levels, tags = np.empty(room), np.empty(room, np.uint64)
    other_levels, other_tags = np.empty(room), np.empty(room, np.uint64)
    for run in range(runs):
        arrange(bandit, run)
        row = actions[run]
        # --- the opening: every arm once, its index being infinite before ---
        forget_states(states)
        for arm in range(arms):
            written[arm] = ONE
        done = min(arms, horizon)
        for arm in range(done):
            row[arm] = arm
        level, step, made = np.inf, 0, 0
        while done < horizon:
            # --- lower the level so that about `target` pulls are made, rather a few too many ---
            target = min(horizon, made + window)
            level = next_level(guide, level, made, target * 1.004, arms, step, bandit.sigma)
            # --- advance every arm to it: what was made before comes first, so no arm can make more than is left ---
            budget, count, arm = horizon - made, ZERO, 0
            if step == 0:
                draw_first(bandit, parameters, np.uint64(first_run + run), level, states.ahead)
            while True:
                entries = Entries(levels, tags)
                arm, count = _uncover(bandit, parameters, level, budget, arm, first_run + run, states, entries, count)
                if arm == arms:
                    break
                levels, tags = _with_twice_the_room(levels), _with_twice_the_room(tags)
                other_levels, other_tags = np.empty(levels.size), np.empty(tags.size, np.uint64)
            # --- sort the entries by level, and write them out as actions ---
            made = 0
            for pulls in states.pulls:
                made += np.int64(pulls)
            tags_in_order = sort_entries(levels, tags, other_levels, other_tags, count)
            done = _write_out(row, done, tags_in_order, count, written)
            step = step + 1 if made < target else 1


@borrowing
def _lower_first(levels: Numbers, order: Words, level: float) -> None:
    """Give the first of the arms, which are in the order of their turns, a lower level; put it in its new place."""
    arm, at = order[0], ONE
    while at < np.uint64(order.size) and (levels[at] > level or (levels[at] == level and order[at] < arm)):
        levels[at - ONE], order[at - ONE] = levels[at], order[at]
        at += ONE
    levels[at - ONE], order[at - ONE] = level, arm


@compiled
def merge_few_tapes(bandit: Bandit, parameters: Any, first_run: int, actions: NDArray[Any]) -> None:
    """Fill `actions` as `merge_tapes` does, without sorting: the first arm is pulled until the second has its turn.

    An arm's first 16 pulls are drawn with those of others, then a batch at a time.
    """
    arms, (runs, horizon), block = np.uint64(bandit.means.size), actions.shape, np.uint64(BLOCK)
    levels, order, places = np.empty(arms), np.empty(arms, np.uint64), np.empty(arms, np.uint64)
    sizes, stride = np.empty(arms, np.uint64), np.uint64(BATCH + 1)
    ahead = new_ahead(bandit.means.size, stride)
    minima = ahead.minima
    for run in range(runs):
        arrange(bandit, run)
        row, name = actions[run], np.uint64(first_run + run)
        for arm in range(arms):
            levels[arm], order[arm], places[arm], sizes[arm] = np.inf, arm, ZERO, block
            ahead.ends[arm], ahead.totals[arm] = ZERO, 0.0
            slot = arm % FULL
            if slot == ZERO:
                prepare_rewards(bandit, name, series(arm, ONE), series(ZERO, ZERO), ahead.room)
            draw_block(bandit, parameters, arm, slot, np.inf, ahead, arm * stride)
        t, last = ZERO, np.uint64(horizon)
        while t < last:
            arm, start = order[0], order[0] * stride
            if places[arm] == sizes[arm]:
                minimum = minima[start + sizes[arm] - ONE]
                prepare_next(bandit, name, arm, ahead)
                for slot in range(FULL):
                    minimum = draw_block(bandit, parameters, arm, slot, minimum, ahead, start + slot * block)
                places[arm], sizes[arm] = ZERO, np.uint64(BATCH)
            # --- pull the first arm until the second has its turn, or to the end of 16 pulls ---
            first = places[arm] & ~(block - ONE)
            reached = count_above(minima, start + first, levels[1], arm < order[1])
            end = first + min(reached + ONE, block)
            t = _write_stretch(row, t, min(t + end - places[arm], last), arm)
            places[arm] = end
            if reached < block:
                _lower_first(levels, order, minima[start + first + reached])


class IndexOptions(NamedTuple):
    """How an index rule decides."""

    uses_round: bool  # whether the index changes with the round
    random_ties: bool  # whether a tie goes to one of the tied arms at random, not to the lowest
    initial: int  # pulls of each arm in the opening
    batch: int  # rounds from one decision to the next
    delay: int = 0  # rounds by which the reward of a pull is known later than in the next one


class IndexState(NamedTuple):
    """Working arrays of a simulation round by round: rewards known, their sum, and index, one number per arm."""

    pulls: NDArray[Any]
    totals: Numbers
    index: Numbers


@inlined
def play_largest_index(
    bandit: Bandit, parameters: Any, name: np.uint64, options: IndexOptions, state: IndexState,
    arrivals: Arrivals | None, actions: NDArray[Any],
) -> None:  # fmt: skip
    """Fill `actions` with demonstration `name`; without `arrivals`, their code is not compiled."""
    pulls, totals, index = state
    arms, horizon, delay, by_chance = bandit.means.size, actions.size, options.delay, False
    if arrivals is not None:
        by_chance = arrivals.cumulative.size > 0
        forget_arrivals(arrivals)
    opening = horizon if by_chance else options.initial * arms + delay
    for arm in range(arms):
        pulls[arm], totals[arm], index[arm] = 0, 0.0, np.inf
    chosen = 0
    for t in range(horizon):
        # --- the reward of `delay + 1` rounds ago becomes known, or those that arrive now ---
        source = np.int64(t - 1 - delay)
        if arrivals is not None and by_chance:
            source = np.int64(arrivals.first[t])
        while source >= 0:
            learnt = np.int64(actions[source]) if by_chance or delay > 0 else np.int64(chosen)
            following = np.int64(-1)
            if arrivals is not None and by_chance:
                following = np.int64(arrivals.following[source])
            source = following
            totals[learnt] += reward(bandit, name, np.uint64(learnt), np.uint64(pulls[learnt]))
            pulls[learnt] += 1
            if t > opening and not options.uses_round:
                n = np.uint64(pulls[learnt])
                mean = totals[learnt] * inverse_of(bandit.inverse, n)
                index[learnt] = index_value(parameters, mean, n, np.uint64(t))
        if arrivals is not None and by_chance and t < opening and all_known(pulls, options.initial):
            opening = t
        if t < opening or (t - opening) % options.batch == 0:
            # --- every arm's index `U_i(mean, n, t)`; in the opening, minus infinity once an arm has had its turn ---
            if t < opening:
                if t % arms == 0:
                    for arm in range(arms):
                        index[arm] = np.inf
            elif options.uses_round or t == opening:
                for arm in range(arms):
                    n = np.uint64(pulls[arm])
                    mean = totals[arm] * inverse_of(bandit.inverse, n)
                    index[arm] = index_value(parameters, mean, n, np.uint64(t + 1))
            # --- the lowest arm with the largest index, or one of the tied arms at random ---
            chosen, tied = 0, 1
            for arm in range(1, arms):
                if index[arm] > index[chosen]:
                    chosen, tied = arm, 1
                elif index[arm] == index[chosen]:
                    tied += 1
            if options.random_ties and tied > 1:
                first, second = philox(np.uint64(t) >> ONE, ZERO, name, TIES, bandit.key[0], bandit.key[1])
                word = second if t & 1 else first
                ahead = np.int64(uniform_from_word(word) * tied)  # how many of the tied arms to skip
                largest = index[chosen]
                while ahead > 0 or index[chosen] != largest:
                    if index[chosen] == largest:
                        ahead -= 1
                    chosen += 1
        # --- pull it ---
        if t < opening:
            index[chosen] = -np.inf
        actions[t] = chosen
        if arrivals is not None and by_chance:
            send_reward(bandit, name, arrivals, t)


def room_to_play(arms: int, horizon: int, delays: Numbers) -> tuple[IndexState, Arrivals | None]:
    """Return what a run fills in; `delays` is the distribution of random delays, empty where the delay is fixed."""
    return IndexState(np.empty(arms, np.int64), np.empty(arms), np.empty(arms)), arrivals_for(delays, horizon)


@compiled
def pull_largest_index(
    bandit: Bandit, parameters: Any, first_run: int, options: IndexOptions, state: IndexState,
    arrivals: Arrivals | None, actions: NDArray[Any],
) -> None:  # fmt: skip
    """Fill `actions` (runs x horizon) with the demonstrations `first_run`, `first_run + 1`, ...; see `room_to_play`."""
    for run in range(actions.shape[0]):
        arrange(bandit, run)
        play_largest_index(bandit, parameters, np.uint64(first_run + run), options, state, arrivals, actions[run])
