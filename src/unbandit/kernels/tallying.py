"""Tally a log that comes in pieces: runs of rows, each of one demonstration, in the order of the file.

A demonstration whose rows stand together is read whole while they are in memory. Of one that is spread out, a first
pass counts, which tells the most-pulled arm; a second finds the switching rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import called, compiled

__all__ = ["count_runs", "first_out_of_order", "run_starts", "run_starts_of_pairs", "switch_runs", "tally_runs"]

LANES = 8  # tables counted side by side, so that a run of one arm does not wait for its own last increment
FEW = 8  # arms whose counters fit in a word, a byte each
ONE = np.int64(1)


@called
def _count_few(codes: NDArray[Any], start: int, stop: int, tables: NDArray[np.int64]) -> None:
    """Add rows to the first entries of `tables`: each arm has a byte of a word, and four words take turns."""
    one, at = np.uint64(1), start
    while at < stop:
        end = min(at + 4 * 255, stop)
        whole = at + (end - at) // 4 * 4
        a, b, c, d = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
        for t in range(np.uint64(at), np.uint64(whole), np.uint64(4)):
            a += one << (np.uint64(codes[t]) << np.uint64(3))
            b += one << (np.uint64(codes[t + np.uint64(1)]) << np.uint64(3))
            c += one << (np.uint64(codes[t + np.uint64(2)]) << np.uint64(3))
            d += one << (np.uint64(codes[t + np.uint64(3)]) << np.uint64(3))
        for t in range(whole, end):
            tables[np.uint64(codes[t])] += 1
        for arm in range(FEW):
            shift = np.uint64(8 * arm)
            for word in (a, b, c, d):
                tables[arm] += np.int64((word >> shift) & np.uint64(255))
        at = end


@called
def _count(
    codes: NDArray[Any], start: int, stop: int, d: int, before: int, tables: NDArray[np.int64],
    pulls: NDArray[np.int64], first: NDArray[np.int64],
) -> None:  # fmt: skip
    """Add many rows to the pulls of demonstration `d`, of which `before` rounds came earlier, and find first ones.

    In `tables`, zero before, is left which arms are here.
    """
    arms = pulls.shape[1]
    if arms <= FEW:
        _count_few(codes, start, stop, tables)
    else:
        whole = start + (stop - start) // LANES * LANES
        for t in range(start, whole, LANES):
            for lane in range(LANES):
                tables[np.uint64(lane * arms) + np.uint64(codes[np.uint64(t + lane)])] += 1
        for t in range(whole, stop):
            tables[np.uint64(codes[t])] += 1
    fresh = 0
    for arm in range(arms):
        here = np.int64(0)
        for lane in range(LANES):
            here += tables[lane * arms + arm]
            tables[lane * arms + arm] = 0
        fresh += 1 if here > 0 and pulls[d, arm] == 0 else 0
        tables[arm] = here
        pulls[d, arm] += here
    t = start
    while fresh > 0:
        arm = np.uint64(codes[np.uint64(t)])
        if first[d, arm] == 0:
            first[d, arm] = before + (t - start) + 1
            fresh -= 1
        t += 1


@called
def _latest(
    codes: NDArray[Any], start: int, stop: int, d: int, before: int, tables: NDArray[np.int64],
    last: NDArray[np.int64],
) -> None:  # fmt: skip
    """Find the last pull of each arm that is here, from the end backwards."""
    missing = 0
    for arm in range(last.shape[1]):
        missing += 1 if tables[arm] > 0 else 0
    t = stop - 1
    while missing > 0:
        arm = np.uint64(codes[np.uint64(t)])
        if tables[arm] > 0:
            last[d, arm], tables[arm] = before + (t - start) + 1, 0
            missing -= 1
        t -= 1


@called
def _switch(
    codes: NDArray[Any], start: int, stop: int, d: int, pulls: NDArray[np.int64], last: NDArray[np.int64],
    own: NDArray[np.int64], of_best: NDArray[np.int64], rounds: NDArray[np.int64],
) -> None:  # fmt: skip
    """Find the last pulls and switching rounds of a demonstration that is here as a whole, from its end backwards."""
    arms, best = pulls.shape[1], 0
    for arm in range(arms):
        best = arm if pulls[d, arm] > pulls[d, best] else best
        own[d, arm] = pulls[d, arm]
    t, favourite = stop - 1, np.uint64(best)
    while np.uint64(codes[np.uint64(t)]) != favourite:  # what comes last is not followed by the best arm
        arm = np.uint64(codes[np.uint64(t)])
        last[d, arm] = max(last[d, arm], t - start + 1)
        own[d, arm] -= 1
        t -= 1
    last[d, best] = rounds[d, best] = t - start + 1
    missing, so_far, own[d, best] = 0, pulls[d, best], 0
    for arm in range(arms):
        missing += 1 if own[d, arm] > 0 else 0
    while missing > 0:
        arm = np.uint64(codes[np.uint64(t)])
        so_far -= ONE if arm == favourite else np.int64(0)
        if rounds[d, arm] == 0:
            rounds[d, arm], of_best[d, arm] = t - start + 1, so_far
            last[d, arm] = max(last[d, arm], t - start + 1)
            own[d, arm] = own[d, arm] if so_far > 0 else 0
            missing -= 1
        t -= 1


@compiled
def tally_runs(
    codes: NDArray[Any], starts: NDArray[np.int64], who: NDArray[np.int64],
    lengths: NDArray[np.int64], torn: NDArray[np.bool_], pulls: NDArray[np.int64], first: NDArray[np.int64],
    last: NDArray[np.int64], own: NDArray[np.int64], of_best: NDArray[np.int64], rounds: NDArray[np.int64],
) -> None:  # fmt: skip
    """Add runs of rows to the counts of their demonstrations; a run is a whole one until rows of the same come again.

    Parameters
    ----------
    codes
        Arms, row by row.
    starts, who
        Where each run begins, and the end; the demonstration of each run.
    lengths, torn
        For each demonstration the rounds so far, and whether it came in more than one piece.
    pulls, first, last, own, of_best, rounds
        As in `Tallies`, (demonstrations, arms); the last three only of demonstrations that are not torn.
    """
    arms = pulls.shape[1]
    tables = np.zeros(LANES * max(arms, FEW), np.int64)
    for run in range(who.size):
        d, start, stop = who[run], starts[run], starts[run + 1]
        before = lengths[d]
        lengths[d] = before + stop - start
        if stop - start >= LANES * arms:
            _count(codes, start, stop, d, before, tables, pulls, first)
            if before > 0:
                _latest(codes, start, stop, d, before, tables, last)
            for arm in range(arms):
                tables[arm] = 0
        else:
            for t in range(start, stop):
                arm, now = np.uint64(codes[t]), before + (t - start) + 1
                pulls[d, arm] += 1
                last[d, arm] = now
                if first[d, arm] == 0:
                    first[d, arm] = now
        if before > 0:
            torn[d] = True
        else:
            _switch(codes, start, stop, d, pulls, last, own, of_best, rounds)


@compiled
def count_runs(
    codes: NDArray[Any], starts: NDArray[np.int64], who: NDArray[np.int64],
    lengths: NDArray[np.int64], pulls: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64],
) -> None:  # fmt: skip
    """Add runs of rows to the counts of their demonstrations, and to nothing else; see `tally_runs`."""
    for run in range(who.size):
        d, start, stop = who[run], starts[run], starts[run + 1]
        for t in range(start, stop):
            arm, now = np.uint64(codes[t]), lengths[d] + (t - start) + 1
            pulls[d, arm] += 1
            last[d, arm] = now
            if first[d, arm] == 0:
                first[d, arm] = now
        lengths[d] += stop - start


@compiled
def switch_runs(
    codes: NDArray[Any], starts: NDArray[np.int64], who: NDArray[np.int64],
    torn: NDArray[np.bool_], best: NDArray[np.int64], end: NDArray[np.int64], passed: NDArray[np.int64],
    of_best_so_far: NDArray[np.int64], own: NDArray[np.int64], of_best: NDArray[np.int64], rounds: NDArray[np.int64],
) -> None:  # fmt: skip
    """Find the switching rounds of torn demonstrations in a second pass over all runs.

    Parameters
    ----------
    codes, starts, who, torn
        As in `tally_runs`.
    best, end
        The most-pulled arm of each demonstration, and the round of its last pull.
    passed, of_best_so_far
        For each demonstration the rounds of this pass so far, and those of the most-pulled arm among them.
    own, of_best, rounds
        As in `Tallies`; of torn demonstrations `own` begins as all pulls, the others as 0.
    """
    for run in range(who.size):
        d = who[run]
        if not torn[d]:
            continue
        start, stop, before = starts[run], starts[run + 1], passed[d]
        favourite, so_far = np.uint64(best[d]), of_best_so_far[d]
        followed = min(stop, max(start, start + end[d] - before))
        for t in range(start, followed):
            arm = np.uint64(codes[t])
            so_far += ONE if arm == favourite else np.int64(0)
            rounds[d, arm], of_best[d, arm] = before + (t - start) + 1, so_far
        for t in range(followed, stop):  # not followed by the best arm
            own[d, np.uint64(codes[t])] -= 1
        passed[d], of_best_so_far[d] = before + stop - start, so_far


@compiled
def run_starts(values: NDArray[Any], starts: NDArray[np.int64]) -> int:
    """Fill in where another value begins, the first row too, and then the end; return how many runs there are."""
    count, block = 0, 64
    if values.size > 0:
        starts[0], count = 0, 1
    for begin in range(1, values.size, block):
        end = min(begin + block, values.size)
        here, before, differing = values[begin:end], values[begin - 1 : end - 1], np.int64(0)
        for t in range(here.size):  # without a way out, so that several rows are looked at in one step
            differing |= np.int64(here[t]) ^ np.int64(before[t])
        if differing != 0:
            for t in range(here.size):
                if here[t] != before[t]:
                    starts[count] = begin + t
                    count += 1
    starts[count] = values.size
    return count


@compiled
def run_starts_of_pairs(values: NDArray[np.uint64], starts: NDArray[np.int64]) -> int:
    """Do as `run_starts` for values of two words each."""
    count = 0
    for t in range(values.shape[0]):
        if t == 0 or values[t, 0] != values[t - 1, 0] or values[t, 1] != values[t - 1, 1]:
            starts[count] = t
            count += 1
    starts[count] = values.shape[0]
    return count


@compiled
def first_out_of_order(
    rounds: NDArray[Any], starts: NDArray[np.int64], who: NDArray[np.int64],
    begins: NDArray[np.int64], counted: NDArray[np.int64],
) -> int:  # fmt: skip
    """Return the first row whose round is not one more than the last of its demonstration; as many as rows if none is.

    `begins` is each demonstration's first round, -1 before it came, and `counted` the rows of it so far; both go on.
    """
    for run in range(who.size):
        d, start, stop = who[run], starts[run], starts[run + 1]
        if begins[d] < 0:
            if rounds[start] != 0 and rounds[start] != 1:
                return start
            begins[d] = rounds[start]
        expected, differing, here = begins[d] + counted[d], np.int64(0), rounds[start:stop]
        for t in range(here.size):  # first without a way out, so that several rows are looked at in one step
            differing |= np.int64(here[t]) ^ (expected + t)
        if differing != 0:
            for t in range(here.size):
                if np.int64(here[t]) != expected + t:
                    return start + t
        counted[d] += stop - start
    return rounds.size
