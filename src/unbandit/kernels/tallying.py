"""Tally a log that comes in pieces: runs of rows, each of one demonstration, in the order of the file.

A demonstration whose rows stand together is read whole while they are in memory. Of one that is spread out, a first
pass counts, which tells the most-pulled arm; a second finds the switching rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import called, compiled

__all__ = ["count_runs", "first_out_of_order", "switch_runs", "tally_runs"]

LANES = 8  # tables counted side by side, so that a run of one arm does not wait for its own last increment
ONE = np.int64(1)


@called
def _count(
    codes: NDArray[Any], start: int, stop: int, d: int, before: int, tables: NDArray[np.int64],
    pulls: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64],
) -> None:  # fmt: skip
    """Add many rows to the counts of demonstration `d`, of which `before` rounds came earlier.

    `tables` is left as it came: zero.
    """
    arms = pulls.shape[1]
    whole = start + (stop - start) // LANES * LANES
    for t in range(start, whole, LANES):
        for lane in range(LANES):
            tables[np.uint64(lane * arms) + np.uint64(codes[np.uint64(t + lane)])] += 1
    for t in range(whole, stop):
        tables[np.uint64(codes[t])] += 1
    fresh, missing = 0, 0
    for arm in range(arms):
        here = np.int64(0)
        for lane in range(LANES):
            here += tables[lane * arms + arm]
            tables[lane * arms + arm] = 0
        fresh += 1 if here > 0 and pulls[d, arm] == 0 else 0
        tables[arm] = here  # for now: which arms are here
        missing += 1 if here > 0 else 0
        pulls[d, arm] += here
    t = stop - 1
    while missing > 0:
        arm = np.uint64(codes[np.uint64(t)])
        if tables[arm] > 0:
            last[d, arm], tables[arm] = before + (t - start) + 1, 0
            missing -= 1
        t -= 1
    t = start
    while fresh > 0:
        arm = np.uint64(codes[np.uint64(t)])
        if first[d, arm] == 0:
            first[d, arm] = before + (t - start) + 1
            fresh -= 1
        t += 1


@called
def _switch(
    codes: NDArray[Any], start: int, stop: int, d: int, pulls: NDArray[np.int64], last: NDArray[np.int64],
    own: NDArray[np.int64], of_best: NDArray[np.int64], rounds: NDArray[np.int64],
) -> None:  # fmt: skip
    """Find the switching rounds of a demonstration that is here as a whole, from its end backwards."""
    arms, best = pulls.shape[1], 0
    for arm in range(arms):
        best = arm if pulls[d, arm] > pulls[d, best] else best
        own[d, arm] = pulls[d, arm]
    for t in range(start + last[d, best], stop):  # what comes after is not followed by the best arm
        own[d, np.uint64(codes[t])] -= 1
    missing = 0
    for arm in range(arms):
        missing += 1 if arm != best and own[d, arm] > 0 else 0
    rounds[d, best], own[d, best] = last[d, best], 0
    so_far, t, favourite = pulls[d, best], start + last[d, best] - 1, np.uint64(best)
    while missing > 0:
        arm = np.uint64(codes[np.uint64(t)])
        so_far -= ONE if arm == favourite else np.int64(0)
        if rounds[d, arm] == 0:
            rounds[d, arm], of_best[d, arm] = t - start + 1, so_far
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
    tables = np.zeros(LANES * arms, np.int64)
    for run in range(who.size):
        d, start, stop = who[run], starts[run], starts[run + 1]
        before = lengths[d]
        if stop - start >= LANES * arms:
            _count(codes, start, stop, d, before, tables, pulls, first, last)
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
        lengths[d] = before + stop - start


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
def first_out_of_order(
    rounds: NDArray[np.int64], starts: NDArray[np.int64], who: NDArray[np.int64],
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
        expected = begins[d] + counted[d] - start
        for t in range(start, stop):
            if rounds[t] != expected + t:
                return t
        counted[d] += stop - start
    return rounds.size
