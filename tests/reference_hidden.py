"""Rounds and arrivals that a log does not show, in plain Python: what the filters of these are held against."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from unbandit.kernels.smc.cloud import PARTICLES, RESAMPLING, two_uniforms
from unbandit.kernels.smc.hidden import ARRIVED, DELAYED, HIDDEN_ARMS


@dataclass
class Particle:
    """A guess at what was pulled and gained."""

    pulls: np.ndarray
    memory: np.ndarray  # (arms, columns)
    left: list[int]  # pulls that each arm is still to have before the log begins
    log_weight: float = 0.0

    expected: list[tuple[int, int]] = field(default_factory=list)  # rounds in which rewards arrive, and their arms
    opened: int | None = None  # the round in which the rule began to decide
    seen: tuple[np.ndarray, np.ndarray] | None = None  # pulls and memory at its last look

    def copied(self) -> Particle:
        found = Particle(self.pulls.copy(), self.memory.copy(), list(self.left))
        found.expected, found.opened, found.seen = list(self.expected), self.opened, self.seen
        return found


@dataclass
class PlainFilter:
    """A rule, what is believed of its rewards, and the random numbers of a cloud; nothing is moved after resampling."""

    rule: Any
    parameters: Any
    belief: Any
    rng: Any
    tries: int = 1

    def run(self, arms: list[int], opening: int, left: list[int], number: int) -> tuple[list[Particle], list[float]]:
        """Return the particles at the end, and by how much each round changed the log evidence; -1 is a hidden arm."""
        size, before = len(left), sum(left)
        shape = (size, self.rule.columns)
        cloud = [Particle(np.zeros(size, np.int64), np.zeros(shape), list(left)) for _ in range(number)]
        increments, judged = [], False
        for step, arm in enumerate(arms):
            follows = arms[step + 1] if step + 1 < len(arms) and step + 1 >= opening else -1
            looks = self.tries > 1 and follows >= 0
            for place, each in enumerate(cloud):
                chosen = arm
                if arm < 0:
                    draws = np.array(
                        [two_uniforms(self.rng, HIDDEN_ARMS, step, place * size + k)[0] for k in range(size)]
                    )
                    if step < opening + before:
                        chosen = self.guided(each, step, float(draws[0]), left)
                    else:
                        chosen = self.rule.choose(self.parameters, each.pulls, each.memory, step + 1, draws)
                elif step >= opening and not judged:
                    each.log_weight += math.log(self.chance(each, step + 1, arm))
                self.reward(each, place, step, chosen, follows if looks else None)
            judged = looks
            cloud, increment = self.resampled(cloud, step)
            increments.append(increment)
        return cloud, increments

    def run_late(
        self, arms: list[int], initial: int, batch: int, cumulative: np.ndarray, number: int, rounds: int
    ) -> tuple[list[Particle], list[float]]:
        """Return the same where rewards are late by random delays; `rounds` numbers what arrives to a particle."""
        size = self.belief.first.size
        cloud = [Particle(np.zeros(size, np.int64), np.zeros((size, self.rule.columns)), []) for _ in range(number)]
        increments = []
        for step, arm in enumerate(arms):
            for place, each in enumerate(cloud):
                here = sorted(late for at, late in each.expected if at == step)
                for order, late in enumerate(here):
                    draw = two_uniforms(self.rng, ARRIVED, step, place * rounds + order)[0]
                    value, share = self.values(each, late, 1, draw)[-1]
                    value = float(draw < share) if self.belief.bernoulli else value
                    learnt = self.learnt(each, step, late, value)
                    each.pulls, each.memory = learnt.pulls, learnt.memory
                if each.opened is None and (each.pulls >= initial).all():
                    each.opened = step
                if each.opened is None:
                    each.log_weight += 0.0 if arm == step % size else -math.inf
                else:
                    since = (step - each.opened) % batch
                    if since == 0:
                        each.seen = each.pulls.copy(), each.memory.copy()
                    chance = self.rule.probability(self.parameters, *each.seen, step - since + 1, arm)
                    each.log_weight += math.log(chance)
                delay = int(np.searchsorted(cumulative, two_uniforms(self.rng, DELAYED, step, place)[0], side="right"))
                each.expected.append((step + 1 + delay, arm))
            cloud, increment = self.resampled(cloud, step)
            increments.append(increment)
        return cloud, increments

    def chance(self, each: Particle, round: int, arm: int) -> float:
        return self.rule.probability(self.parameters, each.pulls, each.memory, round, arm)

    def guided(self, each: Particle, step: int, draw: float, left: list[int]) -> int:
        """Draw an arm by its probability times how many of its pulls are left, over how many would be by its share."""
        rest, all_of_them = sum(each.left), sum(left)
        factors = [
            self.chance(each, step + 1, arm) * (own / rest) / (of_all / all_of_them) if own else 0.0
            for arm, (own, of_all) in enumerate(zip(each.left, left, strict=True))
        ]
        chosen = int(np.searchsorted(np.cumsum(factors), draw * sum(factors), side="right"))
        each.log_weight += math.log(sum(factors))
        each.left[chosen] -= 1
        return chosen

    def reward(self, each: Particle, place: int, step: int, arm: int, follows: int | None) -> None:
        """Draw a reward given those so far; if an arm follows that was seen, among a few by its probability."""
        first, second = two_uniforms(self.rng, PARTICLES, step, place)
        tries = self.tries if follows is not None else 1
        trials = [self.learnt(each, step, arm, value) for value, _ in self.values(each, arm, tries, first)]
        shares = [share for _, share in self.values(each, arm, tries, first)]
        chosen = 0
        if follows is not None:
            shares = [share * self.chance(one, step + 2, follows) for one, share in zip(trials, shares, strict=True)]
            each.log_weight += math.log(sum(shares))
            chosen = int(np.searchsorted(np.cumsum(shares)[:-1], second * sum(shares), side="right"))
        elif self.belief.bernoulli:
            chosen = int(first < shares[1])
        each.pulls, each.memory = trials[chosen].pulls, trials[chosen].memory

    def values(self, each: Particle, arm: int, tries: int, draw: float) -> list[tuple[float, float]]:
        """Return what a reward may be, each with its probability."""
        first, second, sum_of = self.belief.first[arm], self.belief.second[arm], each.memory[arm, 0]
        if self.belief.bernoulli:
            chance = (first + sum_of) / (first + second + each.pulls[arm])
            return [(0.0, 1 - chance), (1.0, chance)]
        noise = self.belief.sigma**2
        variance = 1 / (1 / second + each.pulls[arm] / noise)
        predicted = NormalDist(variance * (first / second + sum_of / noise), math.sqrt(variance + noise))
        return [(predicted.inv_cdf((at + draw) / tries), 1 / tries) for at in range(tries)]

    def learnt(self, each: Particle, step: int, arm: int, value: float) -> Particle:
        found = each.copied()
        self.rule.learn(self.parameters, found.pulls, found.memory, step + 1, arm, value)
        found.memory[arm, 0] += value
        found.pulls[arm] += 1
        return found

    def resampled(self, cloud: list[Particle], step: int) -> tuple[list[Particle], float]:
        """Return the particles, resampled where few of them carry the weight, and the log of their average weight."""
        weights = np.exp([each.log_weight for each in cloud])
        average = weights.mean()
        if weights.sum() ** 2 / np.square(weights).sum() >= 0.5 * len(cloud):
            for each in cloud:
                each.log_weight -= math.log(average)
            return cloud, math.log(average)
        places = np.arange(len(cloud)) + two_uniforms(self.rng, RESAMPLING, step, 0)[0]
        parents = np.searchsorted(np.cumsum(weights / average), places, side="right")
        return [cloud[parent].copied() for parent in np.minimum(parents, len(cloud) - 1)], math.log(average)
