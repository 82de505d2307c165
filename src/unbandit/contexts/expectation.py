"""The Gaussian approximation of a linear demonstrator's hidden path, given all of its choices.

By expectation propagation (`kernels/linear.py`). Passes through the log alternate: backwards, for the probability of
later choices given a state; and forwards, for sites that have the moments of the cuts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from unbandit.kernels.choice_sites import ChanceSites, lay_noise, refine_chances
from unbandit.kernels.compile import Integers, Numbers
from unbandit.kernels.linear import ROUNDING, LinearPath, PathSites, PathTwist, lay_path, refine_sites, solve_path
from unbandit.kernels.simulate_linear import GREEDY, SOFTMAX, THOMPSON, UCB
from unbandit.progress import current_work

MOST_PASSES = 40
SETTLED = 1e-3  # deviations by which no expectation of a comparison moves any more
FIRST_STEP, LATER_STEP, CAREFUL_STEP = 1.0, 0.8, 0.3  # share of the way to the moments of the cuts
CAREFUL_AFTER = 15  # passes
WIDE_SHARE = 0.6  # of the sites' precision that particles are drawn by: from too wide an approximation, not too narrow
GREEDY_SHARE = 0.3  # the same where a choice may be a random one, so that the path has several explanations
ROUGH_PASSES = 15  # for evidence that is only compared
EASY_PASSES, EASY = 5, 0.5
"""First passes over greedy choices, as if at least so many were random ones: what the first choices seem to say must
not make later ones, which contradict it, look random."""
RELUCTANCE = 1.0  # nats by which choices must be more probable if rewards were rounded, so that this is assumed
MOST_DIGITS = 6  # of rewards that may be rounded ones
MOST_EVIDENCE = 1e-6  # of the log of a probability, with rounding; above it the passes diverged
GUMBEL_VARIANCE = math.pi**2 / 6  # softmax takes the largest of values with Gumbel noise of the scale `temperature`


@dataclass(frozen=True, eq=False)
class ChoiceRecord:
    """What a learner was offered and chose, as a linear model sees it, and how it chooses.

    Attributes
    ----------
    vectors, offsets, chosen
        What the model multiplies, one row per offer; the first offer of every round, and the end; and the choice of
        every round among its offers.
    known
        How many rewards the learner knows in each round.
    kind, strength, ridge
        How it chooses: `UCB`, `THOMPSON`, `GREEDY` or `SOFTMAX`, with alpha, v, epsilon or the temperature; and what
        `A` begins with.
    first_wins
        Whether the first of several offers wins a tie.
    rewards
        Those that the record has, NaN where hidden; empty if all are.
    rounded_to
        What these are multiples of, if the learner had them in full and the record has them rounded; else 0.
    """

    vectors: Numbers
    offsets: Integers
    chosen: Integers
    known: Integers
    kind: int
    strength: float
    ridge: float = 1.0
    first_wins: bool = True
    rewards: Numbers = field(default_factory=lambda: np.zeros(0))
    rounded_to: float = 0.0

    @property
    def reluctance(self) -> float:
        """Return by how many nats the choices must be more probable with rounded rewards than with those as given."""
        return RELUCTANCE if self.rounded_to else 0.0

    @property
    def one_by_one(self) -> bool:
        """Return whether choices are greedy or random ones, each with a new reward before it."""
        return self.kind == GREEDY and bool((np.diff(self.known) == 1).all())


@dataclass(frozen=True, eq=False)
class Approximation:
    """A path with sites, and the twist that they imply.

    The sites are wider than those with the moments of the cuts, around the same expectations: particles that come from
    too narrow an approximation miss its tails.

    Attributes
    ----------
    chances
        What the sites are made of, for choices by chance.
    log_start
        Log of the twisting function at the first state.
    log_evidence
        Log probability of all choices, approximately.
    means
        The expectation of every state, given all choices: (states, coefficients).
    settled
        Whether the passes came to rest.
    """

    record: ChoiceRecord
    path: LinearPath
    sites: PathSites
    chances: ChanceSites | None
    twist: PathTwist
    log_start: float
    log_evidence: float
    means: Numbers
    settled: bool


def path_of(record: ChoiceRecord, *, sigma: float, prior: float) -> LinearPath:
    """Return the path of a record, for rewards with the deviation `sigma` and coefficients from `N(0, prior^2)`."""
    rounds, size = record.chosen.size, record.vectors.shape[1]
    rows = record.vectors.shape[0] - rounds
    length = size + (record.rewards.size > 0) + (size if record.rounded_to > 0 else 0)  # of a state
    path = LinearPath(
        gains=np.zeros((rounds, length)), rows=np.zeros((rows, length)), bounds=np.zeros(rows),
        widths=np.zeros(record.vectors.shape[0]), wins=np.ones(rounds), first_row=np.zeros(rounds + 1, np.int64),
        first_choice=np.zeros(rounds + 2, np.int64), covariance=np.zeros((size, size)), start=np.zeros(length),
    )  # fmt: skip
    alpha = record.strength if record.kind == UCB else 0.0
    strict = record.kind == GREEDY and record.first_wins
    lay_path(
        record.vectors, record.offsets, record.chosen, record.known, record.rewards, record.ridge, alpha, sigma, prior,
        record.rounded_to / math.sqrt(12), strict, path,
    )  # fmt: skip
    if record.kind == GREEDY:
        equal, earlier = _ties(record, path)
        path.wins[:] = earlier == 0 if record.first_wins else 1 / (1 + equal)
    return path


def log_rewards(record: ChoiceRecord, sigma: float, prior: float) -> float:
    """Return the log density of the rewards that a record has, given what was chosen; 0 if it has none."""
    known = np.flatnonzero(np.isfinite(record.rewards))
    if known.size == 0:
        return 0.0
    features, values = record.vectors[record.offsets[known] + record.chosen[known]], record.rewards[known]
    ratio, (count, size) = (sigma / prior) ** 2, features.shape
    precision, target = ratio * np.eye(size) + features.T @ features, features.T @ values
    spread = values @ values - target @ np.linalg.solve(precision, target)
    volume = np.linalg.slogdet(precision)[1] - size * math.log(ratio)
    return float(-0.5 * (count * math.log(2 * math.pi * sigma**2) + volume + spread / sigma**2))


def step_of(rewards: Numbers) -> float:
    """Return the largest number of which all known rewards are multiples; 0 where they have many digits, or are 0.

    >>> step_of(np.array([0.5, np.nan, 1.25])), step_of(np.array([0.1, 0.123456789]))
    (0.25, 0.0)
    """
    values = rewards[np.isfinite(rewards)]
    if not values.any():
        return 0.0
    first = math.floor(math.log10(np.abs(values).max()))
    for power in range(first, first - MOST_DIGITS, -1):
        units = values / 10.0**power
        whole = np.rint(units)
        if np.abs(units - whole).max() < 1e-6:
            return float(np.gcd.reduce(whole.astype(np.int64))) * 10.0**power
    return 0.0


def readings(record: ChoiceRecord, sigma: float) -> tuple[ChoiceRecord, ...]:
    """Return a record, and the same with rewards that were rounded after the learner had them, where they look so.

    A step of more than `sigma` is taken to be the rewards' own: that of ratings, or of yes and no.
    """
    step = step_of(record.rewards)
    return (record, replace(record, rounded_to=step)) if 0 < step <= sigma else (record,)


def rough_evidence(record: ChoiceRecord, sigma: float, prior: float) -> float:
    """Return the log evidence of the choices, approximately; minus infinity where the rule cannot have made the first.

    It is the log of a probability, unless the passes diverged.
    """
    path = path_of(record, sigma=sigma, prior=prior)
    if record.kind == UCB and impossible_at_first(path) is not None:
        return -math.inf
    value = approximate(record, path, passes=ROUGH_PASSES).log_evidence + log_ties(record, path)
    return value if math.isfinite(value) and value < MOST_EVIDENCE else -math.inf


def log_ties(record: ChoiceRecord, path: LinearPath) -> float:
    """Return the log probability of which offer won where several have equal indices, whatever the rewards were.

    To a cut all of them satisfy it. It is 0 if the first one won everywhere, and does by the rule; of greedy choices
    the path has it.
    """
    if record.kind not in (UCB, THOMPSON):
        return 0.0
    equal, earlier = _ties(record, path)
    return 0.0 if record.first_wins and not earlier.any() else -float(np.log1p(equal).sum())


def _ties(record: ChoiceRecord, path: LinearPath) -> tuple[Integers, Integers]:
    """Return how many offers are equal to the chosen one, whatever the rewards were, and how many of them precede it.

    Such are offers with equal features, and arms without a known reward that have equal widths.
    """
    rounds, own = np.arange(record.chosen.size), record.offsets[:-1] + record.chosen
    others = np.delete(np.arange(len(record.vectors)), own)
    at = np.repeat(rounds, np.diff(path.first_row))  # the round of every comparison
    moves = path.gains * np.random.default_rng(0).standard_normal(rounds.size)[:, None]
    states = path.start + np.vstack((np.zeros_like(path.start), np.cumsum(moves, axis=0)))  # one path of all
    states = states[record.known[at]]
    size = np.einsum("rc,rc->r", np.abs(path.rows), np.abs(states))
    tied = np.abs(np.einsum("rc,rc->r", path.rows, states)) <= ROUNDING * size
    if record.kind == UCB:
        mine, theirs = path.widths[own[at]], path.widths[others]
        tied &= np.abs(theirs - mine) <= ROUNDING * (theirs + mine)
    elif record.kind == THOMPSON:
        tied &= (record.vectors[others] == record.vectors[own[at]]).all(axis=1)
    earlier = tied & (others < own[at])
    return np.bincount(at[tied], minlength=rounds.size), np.bincount(at[earlier], minlength=rounds.size)


def impossible_at_first(path: LinearPath) -> int | None:
    """Return the first round (from 0) of those before any reward is known whose choice is a cut that 0 violates."""
    end = path.first_row[path.first_choice[1]]
    wrong = np.flatnonzero(path.bounds[:end] > 0)
    return None if wrong.size == 0 else int(np.searchsorted(path.first_row, wrong[0], side="right") - 1)


def approximate(record: ChoiceRecord, path: LinearPath, *, passes: int = MOST_PASSES) -> Approximation:
    """Approximate the path behind a record, in a number of passes at most.

    Softmax choices at a low temperature are nearly cuts, for which sites by gradient and Hessian diverge: they have
    `MOST_PASSES`, and where they do not settle, sites of choices with normal noise take their place.
    """
    if record.kind == UCB:
        sites = PathSites(path.rows, np.zeros(path.bounds.size), np.zeros(path.bounds.size))
        return _settle(
            record, path, sites, None, passes,
            lambda twist, step, means: refine_sites(path, sites, twist, step, means),
        )  # fmt: skip
    if record.kind != SOFTMAX:
        return _approximate_chances(record, path, record.kind, passes)
    found = _approximate_chances(record, path, SOFTMAX, MOST_PASSES)
    fits = found.settled and found.log_evidence < MOST_EVIDENCE
    return found if fits else _approximate_chances(record, path, THOMPSON, passes)


def _approximate_chances(record: ChoiceRecord, path: LinearPath, kind: int, passes: int) -> Approximation:
    """Approximate the path behind choices by chance, with sites as for one kind of them."""
    sites = PathSites(np.zeros_like(path.rows), np.zeros(path.bounds.size), np.zeros(path.bounds.size))
    others = np.diff(path.first_row)
    ends = np.cumsum(others**2)
    chances = ChanceSites(ends - others**2, np.zeros(ends[-1]), np.zeros(ends[-1]), np.zeros(path.bounds.size))
    if record.kind == THOMPSON:
        lay_noise(
            record.vectors, record.offsets, record.chosen, record.known, record.ridge, record.strength, chances.first,
            chances.noise,
        )  # fmt: skip
    elif kind == THOMPSON:
        chances.noise[:] = np.concatenate(
            [(GUMBEL_VARIANCE * record.strength**2 * (np.eye(n) + 1)).ravel() for n in others]
        )
    if kind == GREEDY and record.strength < EASY:
        easy = kind, EASY
        _settle(
            record, path, sites, chances, EASY_PASSES,
            lambda twist, step, means: refine_chances(path, sites, chances, twist, easy, step, means),
        )  # fmt: skip
    return _settle(
        record, path, sites, chances, passes,
        lambda twist, step, means: refine_chances(path, sites, chances, twist, (kind, record.strength), step, means),
    )  # fmt: skip


def _settle(
    record: ChoiceRecord, path: LinearPath, sites: PathSites, chances: ChanceSites | None, passes: int,
    refine: Callable[[PathTwist, float, Numbers], tuple[float, float]],
) -> Approximation:  # fmt: skip
    """Go backwards and forwards until the sites settle."""
    (rounds, size), change, log_constants = path.gains.shape, math.inf, 0.0
    twist = PathTwist(*(np.zeros(shape) for shape in 2 * ((rounds, size), (rounds,), (rounds,))))
    means = np.zeros((rounds + 1, size))
    for number in range(passes):
        current_work().end_if_stopped()
        solve_path(path, sites, twist)
        step = FIRST_STEP if number == 0 else LATER_STEP if number < CAREFUL_AFTER else CAREFUL_STEP
        change, log_constants = refine(twist, step, means)
        if change < SETTLED:
            break
    log_evidence = solve_path(path, sites, twist) + log_constants
    wide = _widened(path, sites, means, GREEDY_SHARE if record.kind == GREEDY else WIDE_SHARE)
    log_start = solve_path(path, wide, twist)
    return Approximation(record, path, wide, chances, twist, log_start, log_evidence, means, change < SETTLED)


def _widened(path: LinearPath, sites: PathSites, means: Numbers, share: float) -> PathSites:
    """Return sites with a share of the precision, and the same slope at the expectation of the state."""
    states = np.repeat(np.arange(means.shape[0]), np.diff(path.first_row[path.first_choice]))
    centres = np.einsum("rc,rc->r", sites.rows, means[states])
    pressure = sites.pressure - (1 - share) * sites.precision * centres
    return PathSites(sites.rows, share * sites.precision, pressure)
