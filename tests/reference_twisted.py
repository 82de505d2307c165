"""The twisted filter by dense linear algebra: the whole hidden path as one vector of innovations.

What `kernels/smc/twist.py` computes round by round. Scores are an affine function of the innovations, found here by
playing the path with none of them and with each of them alone.
"""

from __future__ import annotations

import numpy as np


def play(transitions, innovations):
    """Return the scores before each round, (rounds, arms), by the definition of the transitions."""
    arms = transitions.start.size
    scores, sums, means, path = np.zeros(arms), np.zeros(arms), transitions.start.copy(), []
    for at, arm in enumerate(transitions.arm):
        if transitions.begins[at]:
            scores = np.zeros(arms)
        path.append(scores.copy())
        if transitions.noise[at] == 0:
            reward = transitions.known[at]
        else:
            mean = means[arm] if transitions.separate else transitions.base[at] + transitions.share[at] * sums[arm]
            reward = mean + transitions.noise[at] * innovations[at]
            means[arm] += transitions.learns[at] * (reward - means[arm])
        scores[arm] = transitions.keeps[at] * scores[arm] + transitions.gains[at] * reward + transitions.shifts[at]
        sums[arm] += reward
    return np.array(path)


class DensePath:
    """The Gaussian approximation of all innovations: mean, covariance, and the log of its normaliser."""

    def __init__(self, transitions, sites):
        rounds = len(sites.centre)
        self.base = play(transitions, np.zeros(rounds))
        self.maps = np.stack([play(transitions, unit) - self.base for unit in np.eye(rounds)], axis=-1)
        precision, linear, constant = np.eye(rounds), np.zeros(rounds), 0.0
        for at in np.flatnonzero(transitions.judged):
            away, bend, slope = self.base[at] - sites.centre[at], sites.bend[at], sites.slope[at]
            precision += self.maps[at].T @ bend @ self.maps[at]
            linear += self.maps[at].T @ (slope - bend @ away)
            constant += slope @ away - 0.5 * away @ bend @ away
        self.covariance = np.linalg.inv(precision)
        self.mean = self.covariance @ linear
        self.log_normaliser = constant + 0.5 * linear @ self.mean - 0.5 * np.linalg.slogdet(precision)[1]

    def log_density(self, innovations):
        """Return the log density of innovations over that of standard normal ones."""
        away = innovations - self.mean
        inside = away @ np.linalg.solve(self.covariance, away) + np.linalg.slogdet(self.covariance)[1]
        return 0.5 * (innovations @ innovations - inside)

    def scores_covariance(self, at):
        """Return the covariance of the scores before a round."""
        return self.maps[at] @ self.covariance @ self.maps[at].T
