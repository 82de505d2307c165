"""Clouds of particles around the Gaussian approximation of a hidden path: what they find of it, and their evidence."""

from dataclasses import dataclass

import numpy as np

from unbandit import checks
from unbandit.contexts.expectation import Approximation, ChoiceRecord, log_ties
from unbandit.inference.filter import log_mean, new_cloud, systematic
from unbandit.kernels.compile import Numbers
from unbandit.kernels.simulate_linear import GREEDY, SOFTMAX, THOMPSON, UCB
from unbandit.kernels.smc.cloud import Belief, Cloud
from unbandit.kernels.smc.linear import filter_chances, filter_cuts
from unbandit.progress import current_work

PARTICLES = {UCB: (1_500, 4_000), THOMPSON: (500, 1_333), SOFTMAX: (500, 1_333), GREEDY: (2_000, 16_000)}
"""Of a cloud, at least and at most, by kind of choice: no cut kills particles of choices by chance; of greedy choices,
which may be random ones, paths are hard to follow."""
FULL = 750  # rounds up to which a cloud has most particles; with more rounds they are fewer in proportion
FIRST_DRAWS = 10_000  # for the probability of a choice before any reward is known


@dataclass(frozen=True, eq=False)
class PathClouds:
    """Independent clouds at the end of a record.

    Attributes
    ----------
    states
        Per cloud, particles in proportion to their weights: the expectation of the coefficients given all hidden
        rewards, (clouds, particles, coefficients).
    evidences
        The log evidence by each cloud; minus infinity by one that died.
    effective_size
        The smallest effective sample size that any cloud fell to.
    died
        Per cloud: the state that no particle survived; 0 where some did.
    """

    states: Numbers
    evidences: Numbers
    effective_size: float
    died: tuple[int, ...]

    @property
    def log_evidence(self) -> tuple[float, float]:
        """Return the log evidence by all clouds, and its Monte-Carlo error."""
        return log_mean(self.evidences)


def particles_for(kind: int, rounds: int) -> int:
    """Return the default number of particles of a cloud for a kind of rule."""
    fewest, most = PARTICLES[kind]
    return max(min(most * FULL // max(rounds, 1), most), fewest)


def run_clouds(
    approximation: Approximation, *, particles: int, clouds: int, seed: int, threads: int | None = None
) -> PathClouds:  # fmt: skip
    """Send clouds through a record, on threads."""
    rounds, _ = approximation.path.gains.shape

    def run(name: int) -> tuple[Cloud, int]:
        return _run(approximation, particles, seed, name)

    with current_work().stage("Reading the rounds", clouds * particles * rounds):
        outcomes = checks.in_threads(run, [(name,) for name in range(clouds)], checks.threads(threads))
    current_work().end_if_stopped()
    record = approximation.record
    first = approximation.log_start + log_first_choices(record) + log_ties(record, approximation.path)
    states, evidences = [], []
    for name, (cloud, died) in enumerate(outcomes):
        evidences.append(-np.inf if died else first + float(cloud.increments.sum()))
        if not died:
            generator = np.random.default_rng([seed, name, 7])
            states.append(cloud.sums[generator.permutation(systematic(cloud.log_weights, particles, generator))])
    smallest = min(float(cloud.effective_size.min(initial=particles)) for cloud, died in outcomes)
    size = approximation.path.gains.shape[1]
    kept = np.array(states).reshape(len(states), particles, size)
    return PathClouds(kept, np.array(evidences), smallest, tuple(died for _, died in outcomes))


def _run(approximation: Approximation, particles: int, seed: int, name: int) -> tuple[Cloud, int]:
    """Send one cloud through a record; return it, and the state at which it died, or 0."""
    path = approximation.path
    rounds, size = path.gains.shape
    unused = Belief(False, np.zeros(size), np.ones(size), 1.0)
    cloud = new_cloud(
        unused, np.zeros((particles, size)), np.zeros(size), rounds, np.zeros(0, np.int64), seed, name
    )  # fmt: skip
    cloud.sums[:] = path.start
    record, sites, twist = approximation.record, approximation.sites, approximation.twist
    if approximation.chances is None:
        return cloud, filter_cuts(path, sites, twist, 0.0, False, cloud)
    if record.one_by_one:
        return cloud, filter_cuts(path, sites, twist, record.strength, True, cloud)
    return cloud, filter_chances(
        path, sites, approximation.chances, twist, (record.kind, record.strength), cloud
    )  # fmt: skip


def log_first_choices(record: ChoiceRecord) -> float:
    """Return the log probability of choices by chance before any reward is known, when all values are 0."""
    total, generator = 0.0, np.random.default_rng(0)
    for at in range(int(np.searchsorted(record.known, 0, side="right"))):
        offers, chosen = record.vectors[record.offsets[at] : record.offsets[at + 1]], int(record.chosen[at])
        if record.kind == THOMPSON:  # A is a multiple of 1: its scale does not matter, nor does that of the draws
            values = generator.standard_normal((FIRST_DRAWS, offers.shape[1])) @ offers.T
            first = values[:, chosen] >= values.max(axis=1)  # with others, if their features are equal
            total += np.log((1 + np.count_nonzero(first)) / (1 + FIRST_DRAWS))
        elif record.kind == GREEDY and record.first_wins:
            total += np.log(record.strength / len(offers) + (1 - record.strength) * (chosen == 0))
        elif record.kind != UCB:
            total -= np.log(len(offers))
    return float(total)
