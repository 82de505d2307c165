"""Read demonstrations of few arms faster: eight counters in one word, a word or two for every few rounds.

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
"""Two words hold so many counters, and one for codes of no arm."""

ROUNDS = 16  # of a word; fewer than 256, which a counter of eight bits holds
WORDS = 4_000  # so many are added up in counters of sixteen bits

_FIELDS = 8


@compiled
def read_few_arms(
    actions: NDArray[np.uint8], offsets: NDArray[np.int64], pulls: NDArray[np.int64], first: NDArray[np.int64],
    last: NDArray[np.int64], own: NDArray[np.int64], of_best: NDArray[np.int64], rounds: NDArray[np.int64],
) -> bool:  # fmt: skip
    """Fill in what `pulls_and_last`, `first_pulls` and, if there is room for it, `switching_counts` find.

    `own`, `of_best` and `rounds` may have no rows: they are then left out. False if there are codes of no arm.
    """
    arms, demonstrations = pulls.shape[1], offsets.size - 1
    two, switching = arms >= _FIELDS, rounds.shape[0] > 0
    low, high = _tables(arms)
    longest = 0
    for which in range(demonstrations):
        longest = max(longest, offsets[which + 1] - offsets[which])
    words = np.zeros((2, longest // ROUNDS + 1), np.uint64)
    sums, latest = np.zeros(2 * _FIELDS, np.int64), np.zeros(256, np.int64)
    for which in range(demonstrations):
        demonstration = actions[offsets[which] : offsets[which + 1]]
        count = (demonstration.size + ROUNDS - 1) // ROUNDS
        sums[:] = 0
        if two:
            _pack_two(demonstration, low, high, words, latest)
            _add_up(words[1, :count], sums[_FIELDS:])
        else:
            _pack(demonstration, low, words[0])
        _add_up(words[0, :count], sums[:_FIELDS])
        if sums[2 * _FIELDS - 1 if two else _FIELDS - 1] > 0:
            return False
        for arm in range(arms):
            pulls[which, arm] = sums[arm]
            if sums[arm] == 0:
                last[which, arm] = 0
            else:
                last[which, arm] = latest[arm] + 1 if two else _last_round(demonstration, words[0, :count], arm)
        if switching:
            room = own[which], of_best[which], rounds[which]
            _switch(demonstration, words, count, pulls[which], last[which], *room)
    first_pulls(actions, offsets, pulls, first)
    return True


@compiled
def _tables(arms: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return what each code adds to the two words; codes of no arm add to the last counter there is."""
    low, high = np.zeros(256, np.uint64), np.zeros(256, np.uint64)
    for code in range(256):
        field = code if code < arms else (2 * _FIELDS - 1 if arms >= _FIELDS else _FIELDS - 1)
        table = low if field < _FIELDS else high
        table[code] = np.uint64(1) << np.uint64(8 * (field % _FIELDS))
    return low, high


@compiled
def _pack(actions: NDArray[np.uint8], table: NDArray[np.uint64], words: NDArray[np.uint64]) -> None:
    """Count every so many rounds in a word."""
    whole = actions.size // ROUNDS
    for at in range(whole):
        word = np.uint64(0)
        start = at * ROUNDS
        for t in range(ROUNDS):
            word += table[actions[start + t]]
        words[at] = word
    word = np.uint64(0)
    for t in range(whole * ROUNDS, actions.size):
        word += table[actions[t]]
    words[whole] = word


@compiled
def _pack_two(
    actions: NDArray[np.uint8], low: NDArray[np.uint64], high: NDArray[np.uint64], words: NDArray[np.uint64],
    latest: NDArray[np.int64],
) -> None:  # fmt: skip
    """Count every so many rounds in two words, and keep where each code was last: of many arms quicker than looking."""
    whole = actions.size // ROUNDS
    for at in range(whole):
        word, other = np.uint64(0), np.uint64(0)
        start = at * ROUNDS
        for t in range(start, start + ROUNDS, 2):
            code, next_code = actions[t], actions[t + 1]
            word += low[code] + low[next_code]
            other += high[code] + high[next_code]
            latest[code] = t
            latest[next_code] = t + 1
        words[0, at], words[1, at] = word, other
    word, other = np.uint64(0), np.uint64(0)
    for t in range(whole * ROUNDS, actions.size):
        word += low[actions[t]]
        other += high[actions[t]]
        latest[actions[t]] = t
    words[0, whole], words[1, whole] = word, other


@compiled
def _add_up(words: NDArray[np.uint64], sums: NDArray[np.int64]) -> None:
    """Add the counters of all words up."""
    byte = np.uint64(0x00FF00FF00FF00FF)  # every other counter, so that each has room for many words
    for start in range(0, words.size, WORDS):
        even, odd = np.uint64(0), np.uint64(0)
        for word in words[start : start + WORDS]:
            even += word & byte
            odd += (word >> np.uint64(8)) & byte
        for pair in range(_FIELDS // 2):
            sums[2 * pair] += np.int64((even >> np.uint64(16 * pair)) & np.uint64(0xFFFF))
            sums[2 * pair + 1] += np.int64((odd >> np.uint64(16 * pair)) & np.uint64(0xFFFF))


@compiled
def _last_round(actions: NDArray[np.uint8], words: NDArray[np.uint64], arm: int) -> int:
    """Return the round of an arm's last pull, of which there is one."""
    mask = np.uint64(255) << np.uint64(8 * arm)
    at = words.size - 1
    while words[at] & mask == 0:
        at -= 1
    t = min((at + 1) * ROUNDS, actions.size) - 1
    while actions[t] != arm:
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
    counters, shift = words[best // _FIELDS], np.uint64(8 * (best % _FIELDS))
    code_of_best = np.uint8(best)
    for arm in range(pulls.size):
        tau, after = rounds[arm], 0
        of_best[arm] = 0
        if tau == 0:
            own[arm] = 0
            continue
        at = (tau + ROUNDS // 2) // ROUNDS
        for t in range(tau, min(at * ROUNDS, actions.size)):
            after += 1 if actions[t] == code_of_best else 0
        for t in range(at * ROUNDS, tau):
            after -= 1 if actions[t] == code_of_best else 0
        for word in range(at, count):
            after += np.int64((counters[word] >> shift) & np.uint64(255))
        of_best[arm] = pulls[best] - after
        own[arm] = own[arm] if of_best[arm] > 0 else 0
    rounds[best] = last[best]
