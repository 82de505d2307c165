"""Read demonstrations of few arms faster: sixteen counters in one word, a word for every fifteen rounds.

Adding a table's entry to a word counts a round, and no memory waits for what the round before wrote to it. The words of
a demonstration then tell about when an arm was last pulled, and how often the best arm had been pulled up to there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import compiled
from unbandit.kernels.switching import first_pulls, last_before_best

__all__ = ["MOST_ARMS", "read_few_arms"]

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
            _switch(demonstration, words, count, pulls[which], last[which], *room)
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
def _switch(
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
