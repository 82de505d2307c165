"""Rules that choose by features, with whole matrices and nothing compiled: what the kernels are held against."""

from __future__ import annotations

import numpy as np

import unbandit as ub
from unbandit.tape import Stream, Tape


def played(rule, theta, sigma, log, run=0, seed=0):
    """Play a rule on the offers of a log; return what was chosen and gained in every round."""
    tape, design = Tape(seed), rule.design(log)
    size, blocks = design.size, design.count
    precision = np.stack([rule.ridge * np.eye(size)] * blocks)
    weighted = np.zeros((blocks, size))
    chosen, rewards, known, pulls = [], [], 0, np.zeros(len(log.arms), int)
    for t in range(log.rounds):
        if t % rule.batch == 0:
            while known < t - rule.delay:
                offer = design.offsets[known] + chosen[known]
                x, block = design.vectors[offer], design.blocks[offer]
                precision[block] += np.outer(x, x)
                weighted[block] += x * rewards[known]
                known += 1
        offers = np.arange(design.offsets[t], design.offsets[t + 1])
        scores = np.array([score(rule, tape, run, t, design, o, precision, weighted) for o in offers])
        choice = choose(rule, tape, run, t, scores)
        offer = offers[choice]
        arm, block = design.codes[offer], design.blocks[offer]
        mean = design.vectors[offer] @ theta.reshape(blocks, size)[block]
        rewards.append(float(mean + sigma * tape.normal(run, arm, pulls[arm] + 1)))
        pulls[arm] += 1
        chosen.append(choice)
    return np.array(chosen), np.array(rewards)


def score(rule, tape, run, t, design, offer, precision, weighted):
    x, block, size = design.vectors[offer], design.blocks[offer], design.size
    inverse = np.linalg.inv(precision[block])
    mean = inverse @ weighted[block]
    if isinstance(rule, ub.LinUCB):
        return x @ mean + rule.alpha * np.sqrt(x @ inverse @ x)
    if isinstance(rule, ub.LinTS):
        z = tape.normal(run, block * size + np.arange(size), t + 1, Stream.DECISIONS)
        root = np.linalg.cholesky(precision[block]).T  # upper triangular: root.T @ root is the precision
        return x @ (mean + rule.v * np.linalg.solve(root, z))
    return x @ mean


def choose(rule, tape, run, t, scores):
    draw = float(tape.uniform(run, 0, t + 1))
    if isinstance(rule, ub.LinSoftmax):
        shares = np.exp((scores - scores.max()) / rule.temperature)
        return int(np.searchsorted(np.cumsum(shares[:-1]), draw * shares.sum(), side="right"))
    if isinstance(rule, ub.LinEpsilonGreedy) and draw < rule.epsilon:
        return int(draw / rule.epsilon * scores.size)
    tied = np.flatnonzero(np.isclose(scores, scores.max(), rtol=0, atol=1e-12))
    which = float(tape.uniform(run, 0, t + 1, Stream.TIES)) if rule.ties == "random" else 0.0
    return int(tied[int(which * tied.size)])
