"""Count a record: pulls, first and last rounds, switching rounds, and the epochs of a rule that eliminates.

Rows come in runs, each of one demonstration, in the order of the file; a log in memory has one run per demonstration. A
demonstration whose rows stand together is read whole: forwards to count, backwards, no further than needed, to find the
switching rounds. Of one that is spread out, a first pass counts, which shows the most-pulled arm, and a second finds
the switching rounds. A log that still grows keeps, for every pair of arms, the switching round of the one as if the
other were the best.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import Integers, Marks, Words, called, compiled, compiled_late, inlined

LANES = 8  # tables counted side by side, so that a run of one arm does not wait for its own last increment
FEW_ARMS = 15  # arms whose counters fit in a word, four bits each, beside one for codes of no arm
BLOCK = 1 << 14  # rows checked, then counted, while they are in the processor's nearest memory
ZERO, ONE = np.uint64(0), np.uint64(1)

Codes = NDArray[Any]  # arms, row by row, as unsigned integers


# Counts: pulls, first and last rounds


@called
def _count_few(codes: Codes, start: int, stop: int, arms: int, increments: Words, tables: Integers) -> bool:
    """Add rows of few arms to the first entries of `tables`; False if there are codes of no arm.

    Each arm has four bits of a word, and codes of no arm have the next four: a word counts 15 rows without waiting for
    memory, and 17 words are added up in counters of eight bits.
    """
    every_other, last_code, at = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(255), start
    while at < stop:
        even, odd = ZERO, ZERO
        for _ in range(17):
            word = ZERO
            if at + 15 <= stop:
                for t in range(np.uint64(at), np.uint64(at + 15)):
                    word += increments[min(np.uint64(codes[t]), last_code)]
            else:
                for t in range(at, stop):
                    word += increments[min(np.uint64(codes[t]), last_code)]
            even += word & every_other
            odd += (word >> np.uint64(4)) & every_other
            at = min(at + 15, stop)
        for pair in range(8):
            tables[2 * pair] += np.int64((even >> np.uint64(8 * pair)) & last_code)
            tables[2 * pair + 1] += np.int64((odd >> np.uint64(8 * pair)) & last_code)
    outside, tables[arms] = tables[arms], 0
    return outside == 0


@called
def _count_many(codes: Codes, start: int, stop: int, arms: int, tables: Integers) -> bool:
    """Add rows to `tables`, of which there is one per lane; False if there are codes of no arm."""
    highest = codes[start]
    for t in range(start, stop):
        highest = max(highest, codes[t])
    if np.uint64(highest) >= np.uint64(arms):
        return False
    whole = start + (stop - start) // LANES * LANES
    for t in range(start, whole, LANES):
        for lane in range(LANES):
            tables[np.uint64(lane * arms) + np.uint64(codes[np.uint64(t + lane)])] += 1
    for t in range(whole, stop):
        tables[np.uint64(codes[t])] += 1
    for arm in range(arms):
        for lane in range(1, LANES):
            tables[arm] += tables[lane * arms + arm]
            tables[lane * arms + arm] = 0
    return True


@called
def _count_long(
    codes: Codes, start: int, stop: int, before: int, increments: Words, tables: Integers, pulls: Integers,
    first: Integers, last: Integers,
) -> bool:  # fmt: skip
    """Add a long run to the counts of a demonstration with `before` earlier rounds; False if there are codes of no arm.

    Last pulls are found only if there are earlier rounds: otherwise `_find_switches` does it. `tables` are left at 0.
    """
    arms, fresh, missing = pulls.size, 0, 0
    if arms <= FEW_ARMS:
        if not _count_few(codes, start, stop, arms, increments, tables):
            return False
    else:
        for at in range(start, stop, BLOCK):
            if not _count_many(codes, at, min(at + BLOCK, stop), arms, tables):
                return False
    for arm in range(arms):
        fresh += 1 if tables[arm] > 0 and pulls[arm] == 0 else 0
        missing += 1 if tables[arm] > 0 and before > 0 else 0
        pulls[arm] += tables[arm]
    t = start
    while fresh > 0:  # first pulls, from the front
        arm = np.uint64(codes[np.uint64(t)])
        if first[arm] == 0:
            first[arm] = before + (t - start) + 1
            fresh -= 1
        t += 1
    t = stop - 1
    while missing > 0:  # last pulls, from the end
        arm = np.uint64(codes[np.uint64(t)])
        if tables[arm] > 0:
            last[arm], tables[arm] = before + (t - start) + 1, 0
            missing -= 1
        t -= 1
    for arm in range(arms):
        tables[arm] = 0
    return True


@called
def _count_short(
    codes: Codes, start: int, stop: int, before: int, pulls: Integers, first: Integers, last: Integers
) -> bool:
    """Add a short run to the counts of a demonstration, row by row; False if there are codes of no arm."""
    arms = np.uint64(pulls.size)
    for t in range(start, stop):
        arm, now = np.uint64(codes[t]), before + (t - start) + 1
        if arm >= arms:
            return False
        pulls[arm] += 1
        last[arm] = now
        if first[arm] == 0:
            first[arm] = now
    return True


# Switching rounds


@called
def _find_switches(
    codes: Codes, start: int, stop: int, pulls: Integers, last: Integers, own: Integers, of_best: Integers,
    rounds: Integers,
) -> None:  # fmt: skip
    """Find the last pulls and switching rounds of a demonstration that is here as a whole, from its end backwards."""
    arms, best = pulls.size, 0
    for arm in range(arms):
        best = arm if pulls[arm] > pulls[best] else best
        own[arm] = pulls[arm]
    t, favourite = stop - 1, np.uint64(best)
    while np.uint64(codes[np.uint64(t)]) != favourite:  # what comes last is not followed by the best arm
        arm = np.uint64(codes[np.uint64(t)])
        last[arm] = max(last[arm], t - start + 1)
        own[arm] -= 1
        t -= 1
    last[best] = rounds[best] = t - start + 1
    missing, so_far, own[best] = 0, pulls[best], 0
    for arm in range(arms):
        missing += 1 if own[arm] > 0 else 0
    while missing > 0:
        arm = np.uint64(codes[np.uint64(t)])
        so_far -= np.int64(1) if arm == favourite else np.int64(0)
        if rounds[arm] == 0:
            rounds[arm], of_best[arm] = t - start + 1, so_far
            last[arm] = max(last[arm], t - start + 1)
            own[arm] = own[arm] if so_far > 0 else 0
            missing -= 1
        t -= 1


@inlined
def find_switches_ahead(
    actions: Codes, pulls: NDArray[Any], best: int, own: NDArray[Any], of_best: NDArray[Any], rounds: NDArray[Any]
) -> None:
    """Find the switching rounds of a demonstration whose pulls are counted, on a GPU.

    The same as `_find_switches`, without last pulls, and reading four rounds ahead: a GPU waits long for each.
    """
    missing = -1
    for arm in range(pulls.size):
        own[arm], of_best[arm], rounds[arm] = pulls[arm], 0, 0
        missing += 1 if pulls[arm] > 0 else 0
    few, found = pulls.size <= 64, ZERO  # of few arms, those that are found are kept as bits of one number
    most, after, t = pulls[best], 0, actions.size
    while missing > 0 or after == 0:
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
                elif ((found >> np.uint64(arm)) & ONE) == ZERO if few else rounds[arm] == 0:
                    rounds[arm], of_best[arm] = t + 1, most - after
                    found |= ONE << np.uint64(arm & 63)
                    missing -= 1
    for arm in range(pulls.size):
        own[arm] = own[arm] if of_best[arm] > 0 else 0


@compiled_late(spared=50_000)  # rows
def tally_runs(
    codes: Codes, starts: Integers, who: Integers, lengths: Integers, torn: Marks,
    pulls: Integers, first: Integers, last: Integers, own: Integers, of_best: Integers, rounds: Integers,
) -> bool:  # fmt: skip
    """Add runs of rows to the counts of their demonstrations; False if there are codes of no arm.

    Run `r` has the rows from `starts[r]` to `starts[r + 1]`, of demonstration `who[r]`. For each demonstration,
    `lengths` are its rounds so far, and `torn` says whether it came in more than one piece. The other arrays are as in
    `Tallies`, 0 at first; the last three are filled in only for demonstrations that are not torn.
    """
    arms = pulls.shape[1]
    tables, increments = np.zeros(LANES * arms + FEW_ARMS + 1, np.int64), np.zeros(256, np.uint64)
    for code in range(256):
        increments[code] = ONE << np.uint64(4 * min(code, arms, FEW_ARMS))
    for run in range(who.size):
        d, start, stop = who[run], starts[run], starts[run + 1]
        before = lengths[d]
        lengths[d] = before + stop - start
        if start == stop:
            continue
        if stop - start >= LANES * arms:
            if not _count_long(codes, start, stop, before, increments, tables, pulls[d], first[d], last[d]):
                return False
        elif not _count_short(codes, start, stop, before, pulls[d], first[d], last[d]):
            return False
        if before > 0:
            torn[d] = True
        else:
            _find_switches(codes, start, stop, pulls[d], last[d], own[d], of_best[d], rounds[d])
    return True


@compiled
def count_runs(
    codes: Codes, starts: Integers, who: Integers, lengths: Integers, pulls: Integers, first: Integers,
    last: Integers,
) -> None:  # fmt: skip
    """Add runs of rows to the counts of their demonstrations, and to nothing else; see `tally_runs`."""
    for run in range(who.size):
        d, start, stop = who[run], starts[run], starts[run + 1]
        _count_short(codes, start, stop, lengths[d], pulls[d], first[d], last[d])
        lengths[d] += stop - start


@compiled
def switch_runs(
    codes: Codes, starts: Integers, who: Integers, torn: Marks, best: Integers, end: Integers,
    passed: Integers, of_best_so_far: Integers, own: Integers, of_best: Integers, rounds: Integers,
) -> None:  # fmt: skip
    """Find the switching rounds of torn demonstrations in a second pass over all runs; see `tally_runs`.

    For each demonstration: its most-pulled arm (`best`) and the round of that arm's last pull (`end`), the rounds of
    this pass so far (`passed`) and those of the most-pulled arm among them. Of torn demonstrations `own` begins as all
    pulls, the other two as 0.
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
            so_far += np.int64(1) if arm == favourite else np.int64(0)
            rounds[d, arm], of_best[d, arm] = before + (t - start) + 1, so_far
        for t in range(followed, stop):  # not followed by the best arm
            own[d, np.uint64(codes[t])] -= 1
        passed[d], of_best_so_far[d] = before + stop - start, so_far


# Switching rounds of every pair of arms, for a record that grows


@compiled
def advance_switching(
    codes: Codes, before: int, pulls: Integers, first: Integers, last: Integers, rounds: Integers, own: Integers,
    of_other: Integers,
) -> None:  # fmt: skip
    """Add the next rounds of one demonstration, which has `before` earlier ones, to the counts of each pair of arms.

    At `[i, b]`, `rounds` is arm i's last pull before arm b's last (0 if there is none), `own` and `of_other` the pulls
    of both up to there. The rounds are read once from front to back, and back until every pair is found.
    """
    arms = pulls.size
    old_pulls, old_last = pulls.copy(), last.copy()
    _count_short(codes, 0, codes.size, before, pulls, first, last)
    # For every arm that came now, those whose last pull was earlier than its own one before the piece are settled: the
    # others' last pulls, perhaps pulled again below, are now followed by it.
    present, count = np.empty(arms, np.int64), 0
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
def switching_of_runs(
    codes: Codes, starts: Integers, who: Integers, lengths: Integers, pulls: Integers, first: Integers,
    last: Integers, rounds: Integers, own: Integers, of_other: Integers,
) -> None:  # fmt: skip
    """Add the next runs of several demonstrations, one row each in every array, by `advance_switching`."""
    for run in range(who.size):
        d, start, stop = who[run], starts[run], starts[run + 1]
        before = lengths[d]
        advance_switching(codes[start:stop], before, pulls[d], first[d], last[d], rounds[d], own[d], of_other[d])
        lengths[d] = before + stop - start


# Epochs of a rule that eliminates

HEAD, TAIL, DUE, WRAPPED, BROKEN, BROKEN_ARM = range(6)


def no_marks(demonstrations: int) -> Integers:
    """Return the marks with which `epochs_of_runs` begins, a row for each demonstration."""
    return np.tile(np.array([-1, -1, -1, 0, 0, -1]), (demonstrations, 1))


@called
def _advance_ring(
    codes: Codes, before: int, following: Integers, preceding: Integers, passed: Integers, marks: Integers
) -> None:
    """Go round the ring of active arms, and take out those that are passed over; see `epochs_of_runs`."""
    due = marks[DUE]
    for t in range(codes.size):
        arm = np.int64(codes[t])
        if arm != due:  # which is rare
            now = before + t + 1
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
                marks[WRAPPED], due = now, marks[HEAD]
            if passed[arm] > 0:
                if marks[BROKEN] == 0:
                    marks[BROKEN], marks[BROKEN_ARM] = now, arm
                continue
            while due != arm:  # the arms between are gone: take them out of the ring
                passed[due] = now
                following[preceding[due]], preceding[following[due]] = following[due], preceding[due]
                due = following[due]
        due = following[np.uint64(arm)]
    marks[DUE] = due


@compiled
def epochs_of_runs(
    codes: Codes, starts: Integers, who: Integers, lengths: Integers, following: Integers,
    preceding: Integers, passed: Integers, marks: Integers,
) -> None:  # fmt: skip
    """Add runs of rows, reading the record of an elimination rule epoch by epoch; see `tally_runs`.

    Until an arm is pulled a second time, arms join the ring as they come. One that comes later had its turn passed in
    that very round. All arrays but the first three have one row per demonstration: each arm's neighbours in the ring of
    arms still active (-1 for an arm not seen yet), the round in which its turn visibly `passed` (0 if it has not), and
    `marks`: first and last arm of the ring, whose turn it is, the round in which the first epoch was seen to be over,
    the first round that no elimination rule explains, and its arm; -1 for no arm, 0 for no round.
    """
    for run in range(who.size):
        d, start, stop = who[run], starts[run], starts[run + 1]
        _advance_ring(codes[start:stop], lengths[d], following[d], preceding[d], passed[d], marks[d])
        lengths[d] += stop - start


def read_epochs(actions: Codes, arms: int) -> tuple[Integers, int]:
    """Read one demonstration of an elimination rule.

    Returns for each arm the round (from 1) in which its turn came and another arm was pulled, 0 for an arm still active
    at the end; and the first round whose arm had been passed over before, which no elimination rule explains (0: none).
    """
    ring, passed, marks = np.full((2, 1, arms), -1), np.zeros((1, arms), np.int64), no_marks(1)
    starts, who, lengths = np.array([0, actions.size]), np.zeros(1, np.int64), np.zeros(1, np.int64)
    epochs_of_runs(actions, starts, who, lengths, ring[0], ring[1], passed, marks)
    return passed[0], int(marks[0, BROKEN])


@compiled
def first_out_of_order(rounds: Codes, starts: Integers, who: Integers, begins: Integers, counted: Integers) -> int:
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
