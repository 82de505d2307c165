"""Simulations of rules that choose by the features of arms: a ridge regression, and what is chosen with it.

The learner keeps `A = ridge I + sum x x'` and `b = sum x y` as a square-root information filter does (G. J. Bierman,
1977): `R` is upper triangular with `R'R = A`, and `R M = c` where `M = A^-1 b`. A round adds its row `(x, y)` to them
by rotations, in which nothing cancels. With `w = R'^-1 x` an offer's mean is `x'M = w'c`, its variance is
`x'A^-1 x = w'w`, and a draw of Thompson sampling is `w'(c + v z)` with standard normal `z`.

A disjoint model has one such block per arm, a shared model one in all.
"""

import math
from typing import NamedTuple

import numpy as np

from unbandit.kernels.compile import Integers, Numbers, called, compiled, inlined
from unbandit.kernels.rng import normal_from_word, philox, uniform_from_word

ONE = np.uint64(1)
REWARDS, DECISIONS, TIES = np.uint64(0), np.uint64(1), np.uint64(2)  # the tape's streams
UCB, THOMPSON, GREEDY, SOFTMAX = 0, 1, 2, 3  # kinds of rules


class Offers(NamedTuple):
    """What can be chosen in every round of a demonstration: the rows `offsets[t]` to `offsets[t + 1]`."""

    vectors: Numbers  # what the model multiplies, one row per offer
    blocks: Integers  # the block of parameters that each offer has
    codes: Integers  # the arm that each offer is
    offsets: Integers
    count: int  # blocks
    arms: int


class LinearOptions(NamedTuple):
    """How a rule chooses by features, and when it learns."""

    kind: int  # `UCB`, `THOMPSON`, `GREEDY` or `SOFTMAX`
    strength: float  # alpha, v, epsilon or the temperature
    ridge: float
    random_ties: bool
    batch: int  # rounds from one look at the rewards to the next
    delay: int  # rounds by which a reward is known later than in the next round


class LinearTape(NamedTuple):
    """The tape's key, and the coefficients of the normal quantile."""

    key: tuple[np.uint64, np.uint64]
    table: Numbers


@called
def begin_learning(root: Numbers, response: Numbers, ridge: float) -> None:
    """Set `R` and `c` to what a learner without rewards has."""
    for row in range(response.size):
        response[row] = 0.0
        for column in range(response.size):
            root[row, column] = math.sqrt(ridge) if row == column else 0.0


@called
def absorb(root: Numbers, response: Numbers, vector: Numbers, reward: float) -> None:
    """Add the row `(x, y)` to `R` and `c` by Givens rotations; `vector` is used up."""
    size = vector.size
    for row in range(size):
        if vector[row] == 0.0:
            continue
        length = math.hypot(root[row, row], vector[row])
        cosine, sine = root[row, row] / length, vector[row] / length
        root[row, row] = length
        for column in range(row + 1, size):
            above, below = root[row, column], vector[column]
            root[row, column] = cosine * above + sine * below
            vector[column] = cosine * below - sine * above
        above = response[row]
        response[row] = cosine * above + sine * reward
        reward = cosine * reward - sine * above


@inlined
def whiten(root: Numbers, vector: Numbers, white: Numbers) -> None:
    """Solve `R'w = x` for `w`."""
    for row in range(vector.size):
        left = vector[row]
        for before in range(row):
            left -= root[before, row] * white[before]
        white[row] = left / root[row, row]


@called
def tape_word(tape: LinearTape, place: int, number: int, name: np.uint64, stream: np.uint64) -> np.uint64:
    """Return the bits of the tape at a round or pull (from 0) and an arm or a number."""
    first, second = philox(np.uint64(place) >> ONE, np.uint64(number), name, stream, tape.key[0], tape.key[1])
    return second if place & 1 else first


@called
def largest_offer(scores: Numbers, count: int, random_ties: bool, draw: float) -> int:
    """Return the offer with the largest score: of equal ones the first, or the one in whose share the draw falls."""
    best, tied = 0, 1
    for offer in range(1, count):
        if scores[offer] > scores[best]:
            best, tied = offer, 1
        elif scores[offer] == scores[best]:
            tied += 1
    if tied == 1 or not random_ties:
        return best
    skipped = np.int64(draw * tied)  # of the tied offers
    for offer in range(best, count):
        if scores[offer] == scores[best]:
            if skipped == 0:
                return offer
            skipped -= 1
    return best


@called
def softmax_offer(scores: Numbers, count: int, temperature: float, draw: float) -> int:
    """Return the offer in whose share of `exp(score / temperature)` the draw falls."""
    largest, total = -np.inf, 0.0
    for offer in range(count):
        largest = max(largest, scores[offer])
    for offer in range(count):
        total += math.exp((scores[offer] - largest) / temperature)
    left = draw * total
    for offer in range(count - 1):
        left -= math.exp((scores[offer] - largest) / temperature)
        if left < 0.0:
            return offer
    return count - 1


@called
def score_offers(
    offers: Offers, options: LinearOptions, tape: LinearTape, name: np.uint64, round: int, roots: Numbers,
    responses: Numbers, draws: Numbers, white: Numbers, scores: Numbers,
) -> int:  # fmt: skip
    """Fill in the score of every offer of a round (from 0); return how many there are."""
    begin, end, size = offers.offsets[round], offers.offsets[round + 1], offers.vectors.shape[1]
    drawn = -1  # the block whose draw is in `draws`
    for offer in range(begin, end):
        block = offers.blocks[offer]
        response = responses[block]
        whiten(roots[block], offers.vectors[offer], white)
        mean, square, draw = 0.0, 0.0, 0.0
        if options.kind == THOMPSON and block != drawn:
            for at in range(size):
                bits = tape_word(tape, round, block * size + at, name, DECISIONS)
                draws[at] = normal_from_word(bits, tape.table)
            drawn = block
        for at in range(size):
            mean += white[at] * response[at]
            square += white[at] * white[at]
            draw += white[at] * draws[at]
        score = mean
        if options.kind == UCB:
            score += options.strength * math.sqrt(square)
        elif options.kind == THOMPSON:
            score += options.strength * draw
        scores[offer - begin] = score
    return end - begin


@called
def chosen_offer(
    options: LinearOptions, tape: LinearTape, name: np.uint64, round: int, scores: Numbers, count: int
) -> int:
    """Return which offer is chosen, given the scores of all."""
    draw = 0.0
    if options.kind == GREEDY or options.kind == SOFTMAX:
        draw = uniform_from_word(tape_word(tape, round, 0, name, DECISIONS))
    if options.kind == SOFTMAX:
        return softmax_offer(scores, count, options.strength, draw)
    if options.kind == GREEDY and draw < options.strength:
        return min(np.int64(draw / options.strength * count), count - 1)
    tie = uniform_from_word(tape_word(tape, round, 0, name, TIES)) if options.random_ties else 0.0
    return largest_offer(scores, count, options.random_ties, tie)


@compiled
def choose_by_features(
    offers: Offers, theta: Numbers, sigma: float, options: LinearOptions, tape: LinearTape, first_run: int,
    chosen: Integers, rewards: Numbers,
) -> None:  # fmt: skip
    """Fill `chosen` and `rewards` (runs x rounds) with the demonstrations `first_run`, `first_run + 1`, ...

    `theta` (runs x parameters) is what each run's rewards follow. Noise lies on the arm's tape, by its pulls.
    """
    runs, rounds = chosen.shape
    size, most = offers.vectors.shape[1], 1
    for t in range(rounds):
        most = max(most, offers.offsets[t + 1] - offers.offsets[t])
    roots, responses = np.empty((offers.count, size, size)), np.empty((offers.count, size))
    scores, white, draws, vector = np.empty(most), np.empty(size), np.zeros(size), np.empty(size)
    pulls = np.empty(offers.arms, np.int64)
    for run in range(runs):
        name, known = np.uint64(first_run + run), 0
        for arm in range(offers.arms):
            pulls[arm] = 0
        for block in range(offers.count):
            begin_learning(roots[block], responses[block], options.ridge)
        for t in range(rounds):
            if t % options.batch == 0:  # a look: rewards that became known since the last one
                while known < t - options.delay:
                    offer = offers.offsets[known] + chosen[run, known]
                    block = offers.blocks[offer]
                    for at in range(size):
                        vector[at] = offers.vectors[offer, at]
                    absorb(roots[block], responses[block], vector, rewards[run, known])
                    known += 1
            count = score_offers(offers, options, tape, name, t, roots, responses, draws, white, scores)
            choice = chosen_offer(options, tape, name, t, scores, count)
            offer = offers.offsets[t] + choice
            arm, start, mean = offers.codes[offer], offers.blocks[offer] * size, 0.0
            for at in range(size):
                mean += offers.vectors[offer, at] * theta[run, start + at]
            noise = normal_from_word(tape_word(tape, pulls[arm], arm, name, REWARDS), tape.table)
            chosen[run, t], rewards[run, t] = choice, mean + sigma * noise
            pulls[arm] += 1
