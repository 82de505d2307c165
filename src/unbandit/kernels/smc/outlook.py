"""Filter of rules that divide a reward by the probability of its pull (EXP3), with a look at the whole log.

Such a rule adds `r / p_a` to the *gain* `s_a` of the arm that it pulls, and its probabilities `p` depend on the gains
alone. The observer's expectation `M` of a mean moves by `M' = M + k (r - M)`. Rewards are 0 or 1, so any positive
function `psi_t(x)` of the state `x = (s, M)` before round `t` can serve as a look-ahead (`kernels/smc/bernoulli.py`).

Here it comes from hidden paths on which rewards are relaxed to `r = M + c e`, with standard normal innovations `e`. A
path of high density is found by Gauss-Newton steps: along a path the state is replaced by a linear function of the
innovations, the log probability of each action by a quadratic function of the gains, and `solve_outlook` goes from the
last round to the first as `solve_twist` does. An arm whose gain falls behind is pulled no less often than by the rule's
uniform share, and may have fallen behind soon or late: there can be several such paths, and `psi` is the sum over them.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from unbandit.kernels.compile import Numbers, called, compiled
from unbandit.kernels.formula import learn, log_expansion, probability
from unbandit.kernels.smc.cloud import (
    PARTICLES,
    Cloud,
    Steps,
    count_pulls,
    inherit,
    keep_sums,
    posterior_success,
    prior_of,
    resample,
    take_sums,
    uniform,
)
from unbandit.kernels.smc.twist import Transitions, expand_all

BLOCK = 64  # states that are looked at together


class Outlook(NamedTuple):
    """The look-ahead before each round of a log and after it: `psi = sum_m exp(constant + slope z - z' bend z / 2)`.

    One term for each of some paths, `z` being the state less the state on the path; the state has the gains of all arms
    and then the expectations of all means.
    """

    centre: Numbers  # (paths, rounds + 1, coordinates)
    constant: Numbers  # (paths, rounds + 1)
    slope: Numbers
    bend: Numbers  # (paths, rounds + 1, coordinates, coordinates), symmetric


@compiled
def innovations_of(transitions: Transitions, rewards: Numbers, innovations: Numbers) -> None:
    """Fill in the innovations that make these rewards; NaN stands for a reward without innovation."""
    means = transitions.start.copy()
    for at in range(rewards.size):
        arm, innovations[at] = transitions.arm[at], 0.0
        if transitions.noise[at] > 0.0 and not math.isnan(rewards[at]):
            innovations[at] = (rewards[at] - means[arm]) / transitions.noise[at]
            means[arm] += transitions.learns[at] * (rewards[at] - means[arm])


@compiled
def play_path(
    parameters: Any, transitions: Transitions, columns: int, column: int, innovations: Numbers, path: Numbers
) -> float:
    """Fill in the states on the path of some innovations; return its log density, but for a constant.

    `path` has a row for each round and one for the end; `columns` and `column` are those of the rule's memory and of
    the gains.
    """
    arms = transitions.start.size
    memory, means, value = np.zeros((arms, columns)), transitions.start.copy(), 0.0
    pulls, counts, round = np.zeros(arms, np.int64), np.zeros(arms, np.int64), 0
    for at in range(innovations.size + 1):
        if at < innovations.size and transitions.begins[at]:
            round = 0
            for row in range(arms):
                pulls[row] = 0
                for each in range(columns):
                    memory[row, each] = 0.0
        for row in range(arms):
            path[at, row], path[at, arms + row] = memory[row, column], means[row]
        if at == innovations.size:
            break
        round += 1
        if transitions.judged[at] > 0:
            count_pulls(transitions.arm, at, transitions.judged[at], counts)
            for each in range(arms):
                if counts[each] > 0:
                    value += counts[each] * math.log(max(probability(parameters, pulls, memory, round, each), 1e-300))
        arm, reward = transitions.arm[at], transitions.known[at]
        if transitions.noise[at] > 0.0:
            reward = means[arm] + transitions.noise[at] * innovations[at]
            means[arm] += transitions.learns[at] * (reward - means[arm])
            value -= 0.5 * innovations[at] * innovations[at]
        learn(parameters, pulls, memory, round, arm, reward)
        memory[arm, 0] += reward
        pulls[arm] += 1
    return value


@compiled
def solve_outlook(
    parameters: Any, transitions: Transitions, innovations: Numbers, share: float, outlook: Outlook, which: int,
    aim: Numbers,
) -> None:  # fmt: skip
    """Fill in the look-ahead around a path, and the innovations of the path that is most probable by it.

    The path is `outlook.centre[which]`. With `y` the state less that on the path, an innovation `e + u` moves it by `y'
    = A y + d u`, where the pulled arm's gain, to which `r / p` is added, has the row `1 - (r / p) grad log p` of `A`,
    and `1 / p` for the mean; `d` is `c / p` for the gain and `k c` for the mean. The expectation over `e + u` takes a
    rank-one term off the bend. `share` is the part of the sites' curvature that is used.
    """
    path, constant, slope, bend = (
        outlook.centre[which],
        outlook.constant[which],
        outlook.slope[which],
        outlook.bend[which],
    )
    rounds, arms = transitions.arm.size, transitions.start.size
    size, round = 2 * arms, np.zeros(rounds, np.int64)
    rows, pulls, counts = np.zeros((rounds, size)), np.ones(arms, np.int64), np.zeros(arms, np.int64)
    who = np.arange(arms)
    site, site_bend, one, one_bend = np.empty(arms), np.empty((arms, arms)), np.empty(arms), np.empty((arms, arms))
    vector, matrix, pull, column = np.zeros(size), np.zeros((size, size)), np.empty(size), np.empty(size)
    value = 0.0
    for at in range(rounds):
        round[at] = 1 if transitions.begins[at] else round[at - 1] + 1
    for at in range(rounds - 1, -1, -1):
        arm, noise = transitions.arm[at], transitions.noise[at]
        mean, gain = arms + arm, rows[at]
        # The row of A that is not one of the identity, less that row: from the probability of the pull.
        chance = math.exp(log_expansion(parameters, pulls, path[at, :arms], round[at], arm, site, site_bend))
        reward = path[at, mean] + noise * innovations[at] if noise > 0.0 else transitions.known[at]
        for row in range(arms):
            gain[row] = -reward / chance * site[row]
        gain[mean] = 1.0 / chance if noise > 0.0 else 0.0
        # The innovation.
        by_gain, by_mean = noise / chance, noise * transitions.learns[at]
        for row in range(size):
            pull[row] = matrix[row, arm] * by_gain + matrix[row, mean] * by_mean
        push = vector[arm] * by_gain + vector[mean] * by_mean - innovations[at]
        precision = 1.0 + max(by_gain * pull[arm] + by_mean * pull[mean], 0.0)
        value += 0.5 * push * push / precision - 0.5 * math.log(precision) - 0.5 * innovations[at] * innovations[at]
        for row in range(size):
            vector[row] -= pull[row] * push / precision
            for other in range(size):
                matrix[row, other] -= pull[row] * pull[other] / precision
        # b' A and A' Q A.
        for row in range(size):
            column[row] = matrix[row, arm]
        along, across = vector[arm], column[arm]
        for row in range(size):
            vector[row] += gain[row] * along
            for other in range(size):
                change = gain[row] * column[other] + column[row] * gain[other] + gain[row] * gain[other] * across
                matrix[row, other] += change
        # The site.
        if transitions.judged[at] > 0:
            count_pulls(transitions.arm, at, transitions.judged[at], counts)
            arguments = (parameters, pulls, counts, round[at])
            value += expand_all(*arguments, path[at, :arms], who, arms, site, site_bend, one, one_bend)
            for row in range(arms):
                vector[row] += site[row]
                for other in range(arms):
                    matrix[row, other] += share * site_bend[row, other]
        if transitions.begins[at]:  # gains are 0
            for row in range(size):
                for other in range(size):
                    if row < arms or other < arms:
                        matrix[row, other] = 0.0
                if row < arms:
                    vector[row] = 0.0
        constant[at] = value
        for row in range(size):
            slope[at, row] = vector[row]
            for other in range(size):
                bend[at, row, other] = matrix[row, other]
    _follow(transitions, innovations, rows, slope, bend, aim)


@called
def _follow(
    transitions: Transitions, innovations: Numbers, rows: Numbers, slope: Numbers, bend: Numbers, aim: Numbers
) -> None:
    """Fill in the most probable innovations by a look-ahead, along the linear path."""
    rounds, size = rows.shape
    arms, state = size // 2, np.zeros(size)
    for at in range(rounds):
        arm, noise = transitions.arm[at], transitions.noise[at]
        mean = arms + arm
        if transitions.begins[at]:
            for row in range(arms):
                state[row] = 0.0
        moved = state[arm]
        for row in range(size):
            moved += rows[at, row] * state[row]
        state[arm] = moved
        aim[at] = innovations[at]
        if noise == 0.0:
            continue
        by_gain, by_mean = noise * rows[at, mean], noise * transitions.learns[at]
        push, precision = -innovations[at], 1.0
        if at + 1 < rounds:
            push += slope[at + 1, arm] * by_gain + slope[at + 1, mean] * by_mean
            for row in range(size):
                along = bend[at + 1, row, arm] * by_gain + bend[at + 1, row, mean] * by_mean
                push -= along * state[row]
                if row in (arm, mean):
                    precision += along * (by_gain if row == arm else by_mean)
        step = push / max(precision, 1.0)
        aim[at] += step
        state[arm] += by_gain * step
        state[mean] += by_mean * step


@compiled
def filter_outcomes(
    parameters: Any, steps: Steps, cloud: Cloud, memories: Numbers, batch: int, column: int, first: int,
    values: Numbers, outlook: Outlook,
) -> int:  # fmt: skip
    """Move a cloud through a demonstration; return 0, or the first round that no particle survives.

    `memories` has the shape (particles, arms, columns), with the gains in `column`. `first` is the demonstration's
    first round in the log, and `values` has each particle's `log psi` there.
    """
    number, arms, _ = memories.shape
    pulls, counts = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    states, after, success = np.zeros((number, 2 * arms)), np.empty((number, 2, 2)), np.empty(number)
    chances, looks, mark = np.empty(number), np.empty((number, 2)), 0
    for particle in range(number):
        for arm in range(arms):
            prior = prior_of(cloud.belief, arm)
            states[particle, arms + arm] = posterior_success(prior, cloud.before[arm], cloud.past[particle, arm])
    for step in range(steps.arm.size):
        at, arm, known = first + step, steps.arm[step], steps.rewards[step]
        hidden = math.isnan(known)
        judged = step >= steps.opening and (step - steps.opening) % batch == 0
        if judged:
            count_pulls(steps.arm, step, min(batch, steps.arm.size - step), counts)
        if not hidden:  # to the observer from the start; the rule sees it now
            cloud.before[arm] -= 1.0
            for particle in range(number):
                cloud.past[particle, arm] -= known
        # The probability of all actions drawn from this state, and the states after both rewards.
        prior, behind = prior_of(cloud.belief, arm), cloud.before[arm] + pulls[arm]
        for particle in range(number):
            memory, chance, log_chance = memories[particle], 0.0, 0.0
            if judged:
                for each in range(arms):
                    if counts[each] > 0:
                        chance = probability(parameters, pulls, memory, step + 1, each)
                        log_chance += counts[each] * (math.log(chance) if chance > 0.0 else -math.inf)
            chances[particle] = log_chance
            total = cloud.past[particle, arm] + memory[arm, 0]
            success[particle] = posterior_success(prior, behind, total) if hidden else known
            after[particle, 0, 0] = memory[arm, column]  # a reward of 0 adds nothing
            if judged and batch == 1:  # a reward is divided by the chance that was just computed
                after[particle, 1, 0] = memory[arm, column] + 1.0 / chance
            else:
                learn(parameters, pulls, memory, step + 1, arm, 1.0)
                after[particle, 1, 0] = memory[arm, column]
            memory[arm, column] = after[particle, 0, 0]
            for reward in range(2):
                news = float(reward) if hidden else known
                after[particle, reward, 1] = posterior_success(prior, behind + 1.0, total + news)
        # Weight: p(a_t | x) E[psi_{t+1}(x')] / psi_t(x).
        _look(outlook, at + 1, arm, states, after, looks)
        for particle in range(number):
            largest = max(looks[particle, 0], looks[particle, 1])
            failure = (1.0 - success[particle]) * math.exp(looks[particle, 0] - largest)
            win = success[particle] * math.exp(looks[particle, 1] - largest)
            cloud.log_weights[particle] += chances[particle] + largest + math.log(failure + win) - values[particle]
            success[particle] = win / (failure + win)
        alive, resampled = resample(cloud, step)
        if not alive:
            return step + 1
        if resampled:
            inherit(memories, cloud.ancestors)
            inherit(states, cloud.ancestors)
            inherit(after, cloud.ancestors)
            inherit(success, cloud.ancestors)
            inherit(looks, cloud.ancestors)
        for particle in range(number):
            reward = 1 if uniform(cloud.rng, PARTICLES, step, particle) < success[particle] else 0
            if not hidden:
                reward = int(known)
            memories[particle, arm, column] = after[particle, reward, 0]
            memories[particle, arm, 0] += reward
            values[particle] = looks[particle, reward]
            states[particle, arm], states[particle, arms + arm] = after[particle, reward, 0], after[particle, reward, 1]
        pulls[arm] += 1
        if mark < cloud.marks.size and cloud.marks[mark] == step:
            take_sums(cloud, memories)
            mark = keep_sums(cloud, step, mark)
    take_sums(cloud, memories)
    return 0


@called
def _look(outlook: Outlook, at: int, arm: int, states: Numbers, after: Numbers, looks: Numbers) -> None:
    """Fill in `log psi` before round `at` for states after a reward of 0 and of 1 of an arm: (states, 2).

    Innermost loops go over the states of a block: compilers turn these into vector instructions.
    """
    number, size = states.shape
    paths, mean = outlook.constant.shape[0], arm + size // 2
    z, value, product = np.zeros((size, BLOCK)), np.empty(BLOCK), np.empty(BLOCK)
    by_gain, by_mean = np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, number, BLOCK):
        width = min(BLOCK, number - first)
        for path in range(paths):
            centre, slope, bend = outlook.centre[path, at], outlook.slope[path, at], outlook.bend[path, at]
            for state in range(width):
                for row in range(size):
                    z[row, state] = states[first + state, row] - centre[row]
                z[arm, state] = z[mean, state] = 0.0
            for state in range(BLOCK):
                value[state], by_gain[state], by_mean[state] = outlook.constant[path, at], slope[arm], slope[mean]
            for row in range(size):
                own, diagonal = z[row], 0.5 * bend[row, row]
                for state in range(BLOCK):
                    product[state] = diagonal * own[state]
                for other in range(row):
                    across, others = bend[row, other], z[other]
                    for state in range(BLOCK):
                        product[state] += across * others[state]
                along, for_gain, for_mean = slope[row], bend[arm, row], bend[mean, row]
                for state in range(BLOCK):
                    value[state] += own[state] * (along - product[state])
                    by_gain[state] -= for_gain * own[state]
                    by_mean[state] -= for_mean * own[state]
            for state in range(width):
                place = first + state
                for reward in range(2):
                    gain, expected = after[place, reward, 0] - centre[arm], after[place, reward, 1] - centre[mean]
                    total = value[state] + expected * (by_mean[state] - 0.5 * bend[mean, mean] * expected)
                    total += gain * (by_gain[state] - 0.5 * bend[arm, arm] * gain - bend[arm, mean] * expected)
                    if path == 0:
                        looks[place, reward] = total
                    else:
                        largest = max(total, looks[place, reward])
                        ratio = math.exp(min(total, looks[place, reward]) - largest)
                        looks[place, reward] = largest + math.log1p(ratio)
