"""Carry what closed forms read of a demonstration from one piece of it to the next, without keeping its rounds.

The most-pulled arm may still change, so for every pair of arms the switching round of the one is kept as if the other
were the best: its last pull that is followed by a pull of the other, and both counts then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import called, compiled

__all__ = ["advance_epochs", "advance_switching", "epochs_of_runs", "no_marks", "switching_of_runs"]

HEAD, TAIL, DUE, WRAPPED, BROKEN, BROKEN_ARM = range(6)


def no_marks(demonstrations: int) -> NDArray[np.int64]:
    """Return what `advance_epochs` begins with, a row for each demonstration."""
    return np.tile(np.array([-1, -1, -1, 0, 0, -1]), (demonstrations, 1))


@called
def _advance_pairs(
    codes: NDArray[Any], before: int, pulls: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64],
    rounds: NDArray[np.int64], own: NDArray[np.int64], of_other: NDArray[np.int64],
) -> None:  # fmt: skip
    """See `advance_switching`."""
    arms = pulls.size
    old_pulls, old_last = pulls.copy(), last.copy()
    for t in range(codes.size):
        arm = np.int64(codes[t])
        pulls[arm] += 1
        last[arm] = before + t + 1
        if first[arm] == 0:
            first[arm] = before + t + 1
    # For every arm that came now, those whose last pull was earlier than its own one before the piece are settled: the
    # others' last pulls, perhaps pulled again below, are now followed by it.
    present = np.empty(arms, np.int64)
    count = 0
    for b in range(arms):
        if pulls[b] > old_pulls[b]:
            present[count] = b
            count += 1
            for i in range(arms):
                if old_last[i] > old_last[b]:
                    rounds[i, b], own[i, b], of_other[i, b] = old_last[i], old_pulls[i], old_pulls[b]
    # Backwards: arms in the order of their last pulls, and how far along that order each arm's pairs are found.
    latest = np.empty(count, np.int64)
    found, after = np.full(arms, -1, np.int64), np.zeros(arms, np.int64)
    seen, done, t = 0, 0, codes.size - 1
    while done < count and t >= 0:
        i = np.int64(codes[t])
        if found[i] < 0:
            latest[seen] = i
            seen += 1
            found[i] = 0
        while found[i] < seen:
            b = latest[found[i]]
            if b != i:
                rounds[i, b], own[i, b], of_other[i, b] = before + t + 1, pulls[i] - after[i], pulls[b] - after[b]
            found[i] += 1
            if found[i] == count:
                done += 1
        after[i] += 1
        t -= 1


@compiled
def advance_switching(
    codes: NDArray[Any], before: int, pulls: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64],
    rounds: NDArray[np.int64], own: NDArray[np.int64], of_other: NDArray[np.int64],
) -> None:  # fmt: skip
    """Add the next rounds of one demonstration; once from front to back, and back until every pair is found.

    Parameters
    ----------
    codes
        Arms, round by round.
    before
        How many rounds came earlier.
    pulls, first, last
        Of each arm so far, as in `Tallies`.
    rounds, own, of_other
        At `[i, b]`: arm i's last pull before arm b's last (0 if there is none), and the pulls of both up to there.
    """
    _advance_pairs(codes, before, pulls, first, last, rounds, own, of_other)


@called
def _advance(
    codes: NDArray[Any], before: int, following: NDArray[np.int64], preceding: NDArray[np.int64],
    passed: NDArray[np.int64], marks: NDArray[np.int64],
) -> None:  # fmt: skip
    """See `advance_epochs`."""
    for t in range(codes.size):
        arm, now = np.int64(codes[t]), before + t + 1
        if following[arm] < 0:
            if marks[WRAPPED] == 0:
                head, tail = (arm, arm) if marks[HEAD] < 0 else (marks[HEAD], marks[TAIL])
                following[arm], preceding[arm] = head, tail
                following[tail], preceding[head] = arm, arm
                marks[HEAD], marks[TAIL] = head, arm
                continue
            following[arm] = preceding[arm] = arm
            passed[arm] = marks[WRAPPED]
        if marks[WRAPPED] == 0:
            marks[WRAPPED], marks[DUE] = now, marks[HEAD]
        if passed[arm] > 0:
            if marks[BROKEN] == 0:
                marks[BROKEN], marks[BROKEN_ARM] = now, arm
            continue
        due = marks[DUE]
        while due != arm:
            passed[due] = now
            following[preceding[due]], preceding[following[due]] = following[due], preceding[due]
            due = following[due]
        marks[DUE] = following[arm]


@compiled
def advance_epochs(
    codes: NDArray[Any], before: int, following: NDArray[np.int64], preceding: NDArray[np.int64],
    passed: NDArray[np.int64], marks: NDArray[np.int64],
) -> None:  # fmt: skip
    """Go on reading an elimination rule's log epoch by epoch; see `epochs.read_epochs`, which knows the whole log.

    Until an arm is pulled a second time, arms join the ring as they come. One that comes later had its turn passed in
    that very round.

    Parameters
    ----------
    codes, before
        Arms, round by round, and how many rounds came earlier.
    following, preceding
        The ring of arms still active: each one's neighbours, -1 for an arm not seen yet.
    passed
        The round in which each arm's turn visibly passed, 0 if it has not.
    marks
        First and last arm of the ring, whose turn it is, the round in which the first epoch was seen to be over, the
        first round that no elimination rule explains, and its arm; -1 for no arm, 0 for no round.
    """
    _advance(codes, before, following, preceding, passed, marks)


@compiled
def epochs_of_runs(
    codes: NDArray[Any], starts: NDArray[np.int64], who: NDArray[np.int64], lengths: NDArray[np.int64],
    following: NDArray[np.int64], preceding: NDArray[np.int64], passed: NDArray[np.int64], marks: NDArray[np.int64],
) -> None:  # fmt: skip
    """Go on reading many demonstrations, whose rows come in runs (see `tallying`); `lengths` are the rounds so far."""
    for run in range(who.size):
        d, start, stop = who[run], starts[run], starts[run + 1]
        _advance(codes[start:stop], lengths[d], following[d], preceding[d], passed[d], marks[d])
        lengths[d] += stop - start


@compiled
def switching_of_runs(
    codes: NDArray[Any], starts: NDArray[np.int64], who: NDArray[np.int64], lengths: NDArray[np.int64],
    pulls: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64],
    rounds: NDArray[np.int64], own: NDArray[np.int64], of_other: NDArray[np.int64],
) -> None:  # fmt: skip
    """Go on with the switching rounds of many demonstrations, whose rows come in runs; `lengths` go on too."""
    for run in range(who.size):
        d, start, stop = who[run], starts[run], starts[run + 1]
        before = lengths[d]
        _advance_pairs(codes[start:stop], before, pulls[d], first[d], last[d], rounds[d], own[d], of_other[d])
        lengths[d] = before + stop - start
