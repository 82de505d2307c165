"""Tally a log that comes in pieces: runs of rows, each of one demonstration, in the order of the file.

A demonstration whose rows stand together is read whole while they are in memory. Of one that is spread out, a first
pass counts, which tells the most-pulled arm; a second finds the switching rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import called, compiled, inlined

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


@compiled
def read_epochs(actions: NDArray[Any], order: NDArray[np.int64], arms: int) -> tuple[NDArray[np.int64], int]:
    """Tell in which round it showed that an arm was gone: its turn came and another arm was pulled.

    Parameters
    ----------
    actions
        Arms, round by round.
    order
        The arms that were pulled, in the order of the first epoch.
    arms
        How many there are.

    Returns
    -------
    passed
        For each arm the round (from 1) in which its turn visibly passed; 0 for an arm still active at the end.
    broken
        The first round whose arm had been passed over before, so that no elimination rule explains it; 0 if none.
    """
    passed = np.zeros(arms, np.int64)
    following, preceding = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    return passed, _pass_turns(actions, order, following, preceding, passed)


@compiled
def epochs_of_demonstrations(
    actions: NDArray[Any], offsets: NDArray[np.int64], first: NDArray[np.int64],
    passed: NDArray[np.int64], broken: NDArray[np.int64], broken_arm: NDArray[np.int64],
) -> None:  # fmt: skip
    """Fill in what `read_epochs` finds of each demonstration, and the arm of the round that is broken.

    `first` has one row a demonstration: the round of each arm's first pull, by which the first epoch is ordered.
    """
    arms = first.shape[1]
    following, preceding = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    for which in range(offsets.size - 1):
        demonstration = actions[offsets[which] : offsets[which + 1]]
        passed[which] = 0
        broken[which] = broken_arm[which] = 0
        if demonstration.size == 0:
            continue
        order = np.argsort(first[which])
        order = order[np.count_nonzero(first[which] == 0) :]
        broken[which] = _pass_turns(demonstration, order, following, preceding, passed[which])
        if broken[which] > 0:
            broken_arm[which] = demonstration[broken[which] - 1]


@compiled
def _pass_turns(
    actions: NDArray[Any], order: NDArray[np.int64], following: NDArray[np.int64], preceding: NDArray[np.int64],
    passed: NDArray[np.int64],
) -> int:  # fmt: skip
    """Go round the ring of arms, and take out those that are passed over; return the first round that breaks it."""
    broken = 0
    for at in range(order.size):
        following[order[at]] = order[(at + 1) % order.size]
        preceding[order[at]] = order[at - 1]
    due = order[0]
    for t in range(actions.size):
        arm = np.int64(actions[t])
        if passed[arm] > 0:
            broken = t + 1 if broken == 0 else broken
            continue
        while due != arm:  # the arms between are gone: take them out of the ring
            passed[due] = t + 1
            following[preceding[due]], preceding[following[due]] = following[due], preceding[due]
            due = following[due]
        due = following[arm]
    return broken


UNSIGNED_ZERO, UNSIGNED_ONE = np.uint64(0), np.uint64(1)


@inlined
def find_switches(
    actions: NDArray[Any], pulls: NDArray[Any], best: int, own: NDArray[Any], of_best: NDArray[Any],
    rounds: NDArray[Any],
) -> None:  # fmt: skip
    """Fill what `switching.switching_rounds` finds, of the best arm the round of its last pull.

    `pulls` has the arms' pull counts; the last three arrays, one place an arm, are filled.
    """
    missing = -1
    for arm in range(pulls.size):
        own[arm], of_best[arm], rounds[arm] = pulls[arm], 0, 0
        missing += 1 if pulls[arm] > 0 else 0
    few, found = pulls.size <= 64, UNSIGNED_ZERO  # of few arms, those that are found are kept as bits of one number
    most, after, t = pulls[best], 0, actions.size
    while missing > 0 or after == 0:
        # four at a time, so that reading one does not wait for what follows from another
        for pulled in (actions[t - 1], actions[max(t - 2, 0)], actions[max(t - 3, 0)], actions[max(t - 4, 0)]):
            if missing > 0 or after == 0:
                t -= 1
                arm = np.int64(pulled)
                if arm == best:
                    rounds[best] = t + 1 if after == 0 else rounds[best]
                    after += 1
                elif after == 0:  # not followed by the best arm
                    own[arm] -= 1
                    missing -= 1 if own[arm] == 0 else 0
                elif ((found >> np.uint64(arm)) & UNSIGNED_ONE) == UNSIGNED_ZERO if few else rounds[arm] == 0:
                    rounds[arm], of_best[arm] = t + 1, most - after
                    found |= UNSIGNED_ONE << np.uint64(arm & 63)
                    missing -= 1
    for arm in range(pulls.size):
        own[arm] = own[arm] if of_best[arm] > 0 else 0


FEW_ARMS = 32  # up to so many are sorted in place


@compiled
def pulls_and_last(
    actions: NDArray[Any], offsets: NDArray[np.int64], arms: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count each demonstration's pulls, and find the round (from 1; 0 for none) of each arm's last.

    Demonstration `d` is `actions[offsets[d] : offsets[d + 1]]`. Returns two arrays of (demonstrations, arms + 1): the
    last column is for actions outside 0 ... arms - 1, of which there should be none.
    """
    demonstrations = offsets.size - 1
    pulls = np.zeros((demonstrations, arms + 1), np.int64)
    last = np.zeros((demonstrations, arms + 1), np.int64)
    tables = np.zeros((LANES, arms + 1), np.int64)
    outside = np.uint64(arms)
    for which in range(demonstrations):
        start, stop = offsets[which], offsets[which + 1]
        latest = last[which]
        whole = start + (stop - start) // LANES * LANES
        if whole > start:
            tables[:] = 0
            for t in range(start, whole, LANES):
                for lane in range(LANES):
                    arm = min(np.uint64(actions[t + lane]), outside)
                    tables[lane, arm] += 1
                    latest[arm] = t + lane
            for arm in range(arms + 1):
                for lane in range(LANES):
                    pulls[which, arm] += tables[lane, arm]
                latest[arm] += 1 - start if pulls[which, arm] > 0 else 0
        for t in range(whole, stop):
            arm = min(np.uint64(actions[t]), outside)
            pulls[which, arm] += 1
            latest[arm] = t + 1 - start
    return pulls, last


@compiled
def first_pulls(
    actions: NDArray[Any], offsets: NDArray[np.int64], pulls: NDArray[np.int64], first: NDArray[np.int64]
) -> None:
    """Fill in the round (from 1) of each arm's first pull, 0 for an arm never pulled; looks no further than needed."""
    for which in range(offsets.size - 1):
        earliest, missing = first[which], 0
        for arm in range(pulls.shape[1]):
            earliest[arm] = 0
            missing += 1 if pulls[which, arm] > 0 else 0
        t = offsets[which]
        while missing > 0:
            arm = np.uint64(actions[t])
            t += 1
            if earliest[arm] == 0:
                earliest[arm] = t - offsets[which]
                missing -= 1


@compiled
def switching_counts(
    actions: NDArray[Any], offsets: NDArray[np.int64], pulls: NDArray[np.int64], last: NDArray[np.int64],
    own: NDArray[np.int64], of_best: NDArray[np.int64], rounds: NDArray[np.int64],
) -> None:  # fmt: skip
    """Find each arm's switching round `tau_i`, its last pull that is followed by one of the most-pulled arm.

    All arrays but the first two have one row a demonstration. `pulls` has how often each arm was pulled, `last` the
    round of its last pull. Filled in are:

    rounds
        The switching rounds (from 1), 0 where there is none; of the most-pulled arm the round of its last pull.
    own, of_best
        The pulls of the arm and of the most-pulled one at that round, that pull included; 0 where the latter had not
        been pulled by then, and of that arm itself.
    """
    arms = pulls.shape[1]
    order = np.empty(arms, np.int64)
    for which in range(offsets.size - 1):
        demonstration = actions[offsets[which] : offsets[which + 1]]
        best = 0
        for arm in range(arms):
            best = arm if pulls[which, arm] > pulls[which, best] else best
        last_before_best(demonstration, pulls[which], last[which], best, rounds[which], own[which])
        of_best[which] = 0
        if pulls[which, best] > 0:
            _latest_first(rounds[which], order)
            _pulls_of_best(demonstration, rounds[which], order, pulls[which, best], last[which, best], of_best[which])
        for arm in range(arms):
            own[which, arm] = own[which, arm] if of_best[which, arm] > 0 else 0
        rounds[which, best] = last[which, best]


@compiled
def last_before_best(
    actions: NDArray[Any], pulls: NDArray[np.int64], last: NDArray[np.int64], best: int,
    rounds: NDArray[np.int64], own: NDArray[np.int64],
) -> None:  # fmt: skip
    """Find each arm's last pull before the best arm's last, and its pulls up to there; of the best arm itself, 0."""
    for arm in range(pulls.size):
        rounds[arm], own[arm] = last[arm], pulls[arm]
    for t in range(last[best], actions.size):  # what comes after is not followed by the best arm
        rounds[np.uint64(actions[t])] = 0
        own[np.uint64(actions[t])] -= 1
    missing = 0
    for arm in range(pulls.size):
        missing += 1 if last[arm] > last[best] and own[arm] > 0 else 0
    rounds[best], own[best] = -1, 0
    t = last[best] - 1
    while missing > 0:  # go back for the arms that were pulled there
        t -= 1
        if rounds[np.uint64(actions[t])] == 0:
            rounds[np.uint64(actions[t])] = t + 1
            missing -= 1
    rounds[best] = 0


@compiled
def _latest_first(rounds: NDArray[np.int64], order: NDArray[np.int64]) -> None:
    """Sort arms by their rounds, the latest first."""
    if rounds.size > FEW_ARMS:
        order[:] = np.argsort(-rounds)
        return
    for arm in range(rounds.size):
        at = arm
        while at > 0 and rounds[order[at - 1]] < rounds[arm]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = arm


@compiled
def _pulls_of_best(
    actions: NDArray[Any], rounds: NDArray[np.int64], latest_first: NDArray[np.int64], total: int, final: int,
    counts: NDArray[np.int64],
) -> None:  # fmt: skip
    """Count the best arm's pulls, of which the last is in round `final`, up to each of some rounds, from the end."""
    best = actions[final - 1]  # of the type of the others, so that many are compared at once
    after, at = 0, actions.size
    for arm in latest_first:
        if rounds[arm] == 0:
            break
        for t in range(rounds[arm], at):
            after += 1 if actions[t] == best else 0
        at = rounds[arm]
        counts[arm] = total - after


MOST_ARMS = 15
"""A word holds so many counters of four bits, and one for codes of no arm."""

ROUNDS = 15  # of a word: a counter of four bits holds no more
WORDS = 17  # so many are added up in counters of eight bits
COUNTER = np.uint64(15)


@compiled
def read_few_arms(
    actions: NDArray[np.uint8], offsets: NDArray[np.int64], pulls: NDArray[np.int64], first: NDArray[np.int64],
    last: NDArray[np.int64], own: NDArray[np.int64], of_best: NDArray[np.int64], rounds: NDArray[np.int64],
) -> bool:  # fmt: skip
    """Fill in what `pulls_and_last`, `first_pulls` and, if there is room for it, `switching_counts` find.

    `own`, `of_best` and `rounds` may have no rows: they are then left out. False if there are codes of no arm.
    """
    arms, demonstrations, switching = pulls.shape[1], offsets.size - 1, rounds.shape[0] > 0
    table, longest = np.zeros(256, np.uint64), 0
    for code in range(256):
        table[code] = np.uint64(1) << np.uint64(4 * min(code, arms))
    for which in range(demonstrations):
        longest = max(longest, offsets[which + 1] - offsets[which])
    words, sums = np.zeros(longest // ROUNDS + 1, np.uint64), np.zeros(MOST_ARMS + 1, np.int64)
    for which in range(demonstrations):
        demonstration = actions[offsets[which] : offsets[which + 1]]
        count = _pack(demonstration, table, words)
        _add_up(words, count, sums)
        if sums[arms] > 0:
            return False
        for arm in range(arms):
            pulls[which, arm] = sums[arm]
            last[which, arm] = _last_round(demonstration, words, count, arm) if sums[arm] > 0 else 0
        if switching:
            room = own[which], of_best[which], rounds[which]
            _switch_packed(demonstration, words, count, pulls[which], last[which], *room)
    first_pulls(actions, offsets, pulls, first)
    return True


@compiled
def _pack(actions: NDArray[np.uint8], table: NDArray[np.uint64], words: NDArray[np.uint64]) -> int:
    """Count every few rounds in a word; return how many words there are."""
    whole = actions.size // ROUNDS
    for at in range(whole):
        word, start = np.uint64(0), at * ROUNDS
        for t in range(ROUNDS):
            word += table[actions[start + t]]
        words[at] = word
    word = np.uint64(0)
    for t in range(whole * ROUNDS, actions.size):
        word += table[actions[t]]
    words[whole] = word
    return whole + 1


@compiled
def _add_up(words: NDArray[np.uint64], count: int, sums: NDArray[np.int64]) -> None:
    """Add the counters of all words up."""
    every_other = np.uint64(0x0F0F0F0F0F0F0F0F)
    sums[:] = 0
    for start in range(0, count, WORDS):
        even, odd = np.uint64(0), np.uint64(0)
        for at in range(start, min(start + WORDS, count)):
            even += words[at] & every_other
            odd += (words[at] >> np.uint64(4)) & every_other
        for pair in range((MOST_ARMS + 1) // 2):
            sums[2 * pair] += np.int64((even >> np.uint64(8 * pair)) & np.uint64(255))
            sums[2 * pair + 1] += np.int64((odd >> np.uint64(8 * pair)) & np.uint64(255))


@compiled
def _last_round(actions: NDArray[np.uint8], words: NDArray[np.uint64], count: int, arm: int) -> int:
    """Return the round of an arm's last pull, of which there is one."""
    counter, at = COUNTER << np.uint64(4 * arm), count - 1
    while words[at] & counter == 0:
        at -= 1
    t, code = min((at + 1) * ROUNDS, actions.size) - 1, np.uint8(arm)
    while actions[t] != code:
        t -= 1
    return t + 1


@compiled
def _switch_packed(
    actions: NDArray[np.uint8], words: NDArray[np.uint64], count: int, pulls: NDArray[np.int64],
    last: NDArray[np.int64], own: NDArray[np.int64], of_best: NDArray[np.int64], rounds: NDArray[np.int64],
) -> None:  # fmt: skip
    """Fill in one demonstration's switching rounds, and the counts there."""
    best = 0
    for arm in range(pulls.size):
        best = arm if pulls[arm] > pulls[best] else best
    last_before_best(actions, pulls, last, best, rounds, own)
    code, shift = np.uint8(best), np.uint64(4 * best)
    for arm in range(pulls.size):
        tau, after = rounds[arm], 0
        if tau == 0:
            own[arm] = of_best[arm] = 0
            continue
        at = (tau + ROUNDS // 2) // ROUNDS  # the nearest word: a few rounds by themselves, then word by word
        for t in range(tau, min(at * ROUNDS, actions.size)):
            after += 1 if actions[t] == code else 0
        for t in range(at * ROUNDS, tau):
            after -= 1 if actions[t] == code else 0
        for word in range(at, count):
            after += np.int64((words[word] >> shift) & COUNTER)
        of_best[arm] = pulls[best] - after
        own[arm] = own[arm] if of_best[arm] > 0 else 0
    rounds[best] = last[best]
