"""Coefficients from features and choices: this package beside published ideas, on the same logs.

The rivals are written from the ideas of their papers, in their simplest form; none is the authors' code.

All read the same LinUCB logs without rewards, of the sizes that `unbandit calibrate contexts` measures. Where a method
has no scale, its estimate is multiplied by the number that brings it closest to the truth, which nobody would know; it
is compared with this package's estimate given the same help.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp

from bench.one_core import use_all_cores
from bench.report import markdown, number
from bench.setting import Effort
from unbandit import FIT, ContextInstance, ContextLog, LinUCB, NotIdentifiable, context_posterior
from unbandit.checks import threads

LOGS, MORE_LOGS, FEW = 20, 60, 10  # of a cell; of one which so few do not decide; and where all cells are read
RIDGE, SIGMA = 1.0, 0.5
FILMS, MOST_GENRES = 60, 3
DECIDED = 2.0  # standard errors of a difference between methods, on the same logs
ICB_TEMPERATURE, ICB_STEPS = 0.05, 400  # of the agent's choices, and of expectation maximisation
BURN_IN = 1 / 3  # share of the log that suffix imitation leaves out

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """How the logs of a cell come about; `films` have features in the style of MovieLens."""

    features: int
    arms: int
    rounds: int
    alpha: float
    films: bool = False
    logs: int = LOGS

    @property
    def name(self) -> str:
        kind = "films, " if self.films else ""
        return f"{kind}d={self.features}, K={self.arms}, T={self.rounds:,}, alpha={self.alpha:g}"

    def offers(self, generator: np.random.Generator) -> Floats:
        """Return the features of all offers: (rounds, arms, features)."""
        if not self.films:
            return generator.normal(size=(self.rounds, self.arms, self.features)) / np.sqrt(self.features)
        return film_offers(generator, self)


CELLS = (
    *(Cell(d, 5, 300, a, logs=MORE_LOGS if d < 10 and a == 1 else LOGS) for d in (3, 5, 10) for a in (1.0, 3.0)),
    Cell(5, 5, 300, 1.0, films=True),
)
EVERY_CELL = (
    *(Cell(d, k, t, a, logs=FEW) for d in (3, 5, 10) for k in (5, 10) for t in (300, 1_000) for a in (1.0, 3.0)),
    *(Cell(5, 5, t, 1.0, films=True, logs=FEW) for t in (300, 1_000)),
)
"""Those of the table in the documentation, and all: the second take about four times as long."""


@dataclass(frozen=True)
class Comparisons:
    """What every choice says: the chosen offer beside each other one.

    Attributes
    ----------
    differences, widths
        Features of the chosen offer less those of the other, and the same of `sqrt(x' A^-1 x)`: (comparisons, ...).
    expected
        What multiplies theta to give the learner's difference of values, if every reward were its expectation.
    rounds
        The round of each comparison.
    """

    differences: Floats
    widths: Floats
    expected: Floats
    rounds: NDArray[np.int64]


def comparisons_of(log: ContextLog) -> Comparisons:
    """Return all comparisons of a log in which every arm is offered in every round."""
    offers = log.features.reshape(log.rounds, -1, log.features.shape[1])
    design, lists = RIDGE * np.eye(offers.shape[2]), ([], [], [], [])
    for at, (rows, chosen) in enumerate(zip(offers, log.chosen, strict=True)):
        inverse = np.linalg.inv(design)
        widths = np.sqrt(np.einsum("kd,de,ke->k", rows, inverse, rows))
        others = np.arange(len(rows)) != chosen
        differences = rows[chosen] - rows[others]
        parts = differences, widths[chosen] - widths[others], differences - RIDGE * differences @ inverse
        for each, part in zip(lists, (*parts, np.full(others.sum(), at)), strict=True):
            each.append(part)
        design += np.outer(rows[chosen], rows[chosen])
    return Comparisons(*(np.concatenate(each) for each in lists))


def ours(log: ContextLog, alpha: float) -> Floats:
    return context_posterior(log, LinUCB(alpha=alpha, ridge=RIDGE), sigma=SIGMA, check=False, threads=1).mean


def ours_fitted(log: ContextLog, alpha: float) -> Floats:
    rule = LinUCB(alpha=FIT, ridge=RIDGE)
    return context_posterior(log, rule, sigma=SIGMA, check=False, threads=1).mean


def ibcb(log: ContextLog, alpha: float) -> Floats:
    """Solve the quadratic program of Y. Xu et al. (arXiv 2403.16075): the smallest theta that explains all batches.

    Every choice is a linear constraint on theta, with rewards replaced by their expectations; what violates one is
    penalised by its square.
    """
    seen = comparisons_of(log)

    def loss(theta: Floats) -> tuple[float, Floats]:
        short = np.maximum(-(seen.expected @ theta + alpha * seen.widths), 0.0)
        return 0.5 * theta @ theta + 0.5 * short @ short, theta - seen.expected.T @ short

    return np.asarray(minimize(loss, np.zeros(seen.expected.shape[1]), jac=True, method="L-BFGS-B").x)


def linear_program(log: ContextLog, alpha: float) -> Floats:
    """Solve a linear program over theta and a width that nobody knows: confidence bounds of chosen offers are largest.

    The slack of all constraints together is as small as possible; theta is scaled so that choices gain 1 on average.
    """
    seen = comparisons_of(log)
    count, size = seen.differences.shape
    cost = np.concatenate((np.zeros(size + 1), np.ones(count)))
    upper = sparse.hstack((-seen.differences, -seen.widths[:, None], -sparse.eye(count)), format="csr")
    gained = np.concatenate((seen.differences.mean(axis=0), np.zeros(count + 1)))[None]
    bounds = [(None, None)] * size + [(0, None)] * (count + 1)
    found = linprog(cost, A_ub=upper, b_ub=np.zeros(count), A_eq=gained, b_eq=[1.0], bounds=bounds, method="highs")
    return np.asarray(found.x[:size])


def logit(log: ContextLog, alpha: float, first: int = 0) -> Floats:
    """Fit a multinomial logit to the choices from a round on."""
    offers = log.features.reshape(log.rounds, -1, log.features.shape[1])[first:]
    chosen = log.chosen[first:]
    own = offers[np.arange(len(offers)), chosen]

    def loss(theta: Floats) -> tuple[float, Floats]:
        values = offers @ theta
        total = logsumexp(values, axis=1)
        shares = np.exp(values - total[:, None])
        gradient = np.einsum("tk,tkd->d", shares, offers) - own.sum(axis=0) + 1e-3 * theta
        return float((total - (own @ theta)).sum() + 0.5e-3 * theta @ theta), gradient

    return np.asarray(minimize(loss, np.zeros(offers.shape[2]), jac=True, method="L-BFGS-B").x)


def suffix_imitation(log: ContextLog, alpha: float) -> Floats:
    """Drop a burn-in and imitate the rest as if the learner knew theta by then (Kong et al., arXiv 2603.03778)."""
    return logit(log, alpha, int(BURN_IN * log.rounds))


def bayesian_icb(log: ContextLog, alpha: float) -> Floats:
    """Fit an agent that learns and samples (A. Hüyük, D. Jarrett, M. van der Schaar, ICML 2022): Bayesian ICB.

    Their agent has beliefs `N(M_t, sigma^2 A_t^-1)`, draws `rho_t` from them, and chooses in proportion to
    `exp(x' rho_t / temperature)`. By stochastic expectation maximisation: given theta, hidden rewards and draws are
    sampled in turn (rewards are jointly normal given draws; draws by elliptical slices, I. Murray et al. 2010), and
    theta is the most likely one given the draws, over all rewards. It starts at a multinomial logit, and the last half
    of the steps is averaged. Rewards and draws given each other hardly change in length, which stays near where it
    starts: the direction is what it finds.
    """
    generator = np.random.default_rng(0)
    offers = log.features.reshape(log.rounds, -1, log.features.shape[1])
    own = offers[np.arange(log.rounds), log.chosen]
    before = np.cumsum(own[:, :, None] * own[:, None], axis=0) - own[:, :, None] * own[:, None]
    inverses = np.linalg.inv(RIDGE * np.eye(own.shape[1]) + before)
    spreads = SIGMA * np.linalg.cholesky(inverses)
    precision = np.eye(log.rounds)
    for at in range(1, log.rounds):
        precision[:at, :at] += own[:at] @ inverses[at] @ own[:at].T
    factor = np.linalg.cholesky(precision)
    half_own = solve_triangular(factor, own, lower=True)
    information = own.T @ own - half_own.T @ half_own

    def fits(draws: Floats) -> Floats:
        values = np.einsum("tkd,td->tk", offers, draws) / ICB_TEMPERATURE
        return np.asarray(values[np.arange(log.rounds), log.chosen] - logsumexp(values, axis=1))

    rewards = own @ (ICB_TEMPERATURE * logit(log, alpha))
    away = np.zeros_like(own)
    kept = list[Floats]()
    for step in range(ICB_STEPS):
        gained = own * rewards[:, None]
        means = np.einsum("tde,te->td", inverses, np.cumsum(gained, axis=0) - gained)
        away = elliptical_slices(lambda off, means=means: fits(means + off), away, spreads, generator)
        later = np.cumsum((means + away)[::-1], axis=0)[::-1] - (means + away)
        half = solve_triangular(factor, np.einsum("td,td->t", own, later), lower=True)
        theta = np.linalg.solve(information, half_own.T @ half)
        noise = SIGMA * generator.standard_normal(log.rounds)
        rewards = solve_triangular(factor, half + half_own @ theta + noise, lower=True, trans=1)
        if step >= ICB_STEPS // 2:
            kept.append(theta)
    return np.asarray(np.mean(kept, axis=0))


def elliptical_slices(
    fits: Callable[[Floats], Floats], places: Floats, spreads: Floats, generator: np.random.Generator
) -> Floats:
    """Move each row, normal around 0 with its own spread, given its log likelihood."""
    other = np.einsum("tde,te->td", spreads, generator.standard_normal(places.shape))
    level = fits(places) + np.log(generator.random(len(places)))
    angle = generator.uniform(0, 2 * np.pi, len(places))
    low, high = angle - 2 * np.pi, angle.copy()
    moved = places.copy()
    waiting = np.ones(len(places), bool)
    while waiting.any():
        tried = places * np.cos(angle)[:, None] + other * np.sin(angle)[:, None]
        accepted = waiting & (fits(tried) > level)
        moved[accepted] = tried[accepted]
        waiting &= ~accepted
        low, high = np.where(angle < 0, angle, low), np.where(angle >= 0, angle, high)
        angle = generator.uniform(low, high)
        waiting &= high - low > 1e-9  # rounding: the row stays
    return moved


METHODS: dict[str, tuple[Callable[[ContextLog, float], Floats], str, bool]] = {
    "unbandit": (ours, "rule, alpha, ridge, sigma", True),
    "unbandit, scale by hindsight": (ours, "rule, alpha, ridge, sigma; the scale, by hindsight", False),
    "unbandit, alpha=fit": (ours_fitted, "rule, ridge, sigma", True),
    "unbandit, alpha=fit, scale by hindsight": (ours_fitted, "rule, ridge, sigma; the scale, by hindsight", False),
    "IBCB, quadratic program": (ibcb, "rule, alpha, ridge", True),
    "inverse contextual bandits": (bayesian_icb, "ridge, sigma, temperature; the scale, by hindsight", False),
    "linear program": (linear_program, "rule, ridge; the scale, by hindsight", False),
    "suffix imitation": (suffix_imitation, "burn-in; the scale, by hindsight", False),
    "multinomial logit": (logit, "the scale, by hindsight", False),
}
"""How each reads a log, given alpha; what it must be told; and whether its estimate has a scale."""

OURS, HELPED, _, FITTED_HELPED = list(METHODS)[:4]
PROGRAM = "linear program"


def film_offers(generator: np.random.Generator, cell: Cell) -> Floats:
    """Return features in the style of MovieLens: films of one to three genres, times the tastes of each visitor."""
    films = np.zeros((FILMS, cell.features))
    for film in films:
        film[generator.choice(cell.features, generator.integers(1, MOST_GENRES + 1), replace=False)] = 1.0
    films /= np.linalg.norm(films, axis=1, keepdims=True)
    shown = np.array([generator.choice(FILMS, cell.arms, replace=False) for _ in range(cell.rounds)])
    tastes = generator.gamma(2.0, 0.5, size=(cell.rounds, 1, cell.features))
    return np.asarray(films[shown] * tastes)


Found = dict[str, tuple[float, float, float]]
"""What a method finds: the angle to the truth, the error of a coefficient (both NaN where it refuses), and seconds."""


def read_one(cell: Cell, run: int) -> Found:
    """Read one log by all methods."""
    generator = np.random.default_rng([11, run])
    theta = generator.normal(size=cell.features)
    rule = LinUCB(alpha=cell.alpha, ridge=RIDGE)
    log = rule.demonstrate(ContextInstance(theta, SIGMA), cell.offers(generator), seed=run, threads=1)
    results: Found = {}
    read_by: dict[Callable[[ContextLog, float], Floats], tuple[Floats, float]] = {}
    for name, (read, _, scaled) in METHODS.items():
        if read not in read_by:
            start = time.process_time()
            try:
                found = read(log, cell.alpha)
            except NotIdentifiable:  # a log that does not show alpha
                found = np.full(cell.features, np.nan)
            read_by[read] = found, time.process_time() - start
        found, seconds = read_by[read]
        if not scaled:
            found = found * max(found @ theta / max(found @ found, 1e-12), 0.0)
        cosine = found @ theta / max(np.linalg.norm(found) * np.linalg.norm(theta), 1e-12)
        angle = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
        results[name] = angle, float(np.sqrt(np.square(found - theta).mean())), seconds
    return results


def compared(own: Floats, other: Floats) -> str:
    """Write a mean, with a mark: ✓ if it is clearly above ours on the same logs, ✗ if clearly below, ~ if not decided.

    Examples
    --------
    >>> compared(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.1, 3.9])), compared(np.ones(3), np.array([1.0, 0.9, 1.2]))
    ('3.00 ✓', '1.03 ~')
    """
    gains = (other - own)[np.isfinite(other)]
    if gains.size < 2:
        return "-"
    error = float(np.std(gains, ddof=1) / math.sqrt(gains.size))
    mark = "~" if abs(gains.mean()) <= DECIDED * error else "✓" if gains.mean() > 0 else "✗"
    return f"{_short(other)} {mark}"


def beside_program(cells: Sequence[Cell], found: Sequence[Sequence[Found]]) -> str:
    """Compare the fitted alpha directly with the linear program, which is not told it either."""
    rows = []
    for cell, own in zip(cells, found, strict=True):
        angle, error = (
            less(*(np.array([each[name][at] for each in own]) for name in (FITTED_HELPED, PROGRAM))) for at in (0, 1)
        )
        rows.append([cell.name, str(len(own)), angle, error])
    logs = [each for own in found for each in own]
    pooled = [
        less(*(np.array([each[name][at] for each in logs]) for name in (FITTED_HELPED, PROGRAM))) for at in (0, 1)
    ]
    rows.append(["all together", str(len(logs)), *pooled])
    title = f"{FITTED_HELPED}, less {PROGRAM} (neither is told alpha), on the same logs, ± the standard error"
    return f"{title}:\n\n{markdown(['logs', 'number', 'angle, degrees', 'error'], rows)}"


def less(own: Floats, other: Floats) -> str:
    """Write the mean difference of two methods on the same logs, with its standard error.

    Examples
    --------
    >>> less(np.array([1.0, 2.0, np.nan]), np.array([2.0, 3.2, 1.0]))
    '-1.10 ± 0.1'
    """
    gains = (own - other)[np.isfinite(own) & np.isfinite(other)]
    if gains.size < 2:
        return "-"
    return f"{gains.mean():#.3g} ± {np.std(gains, ddof=1) / math.sqrt(gains.size):.2g}"


def _short(values: Floats) -> str:
    return f"{np.nanmean(values):#.3g}"


def table(effort: Effort, chosen: Sequence[Cell] = CELLS) -> str:
    """Read the same logs by all methods; return their errors as Markdown."""
    cells = [replace(cell, rounds=max(effort.of(cell.rounds), 40)) for cell in chosen[: effort.of(len(chosen))]]
    with ProcessPoolExecutor(threads(None), get_context("spawn"), use_all_cores) as pool:
        runs = [range(effort.of(cell.logs, at_least=2)) for cell in cells]
        waiting = [[pool.submit(read_one, cell, run) for run in own] for cell, own in zip(cells, runs, strict=True)]
        found = [[each.result() for each in own] for own in waiting]
    texts = []
    for at, title in enumerate(("Angle between the true coefficients and the estimate, in degrees", "Error")):
        rows, shown = [], [name for name in METHODS if at or name not in (HELPED, FITTED_HELPED)]  # by scale alone
        for cell, own in zip(cells, found, strict=True):
            values = {name: np.array([each[name][at] for each in own]) for name in METHODS}
            texts_of = [
                _short(values[name])
                if name in (OURS, HELPED)
                else compared(values[OURS if METHODS[name][2] else HELPED], values[name])
                for name in shown
            ]
            rows.append([cell.name, str(len(own)), *texts_of])
        texts.append(f"{title}:\n\n{markdown(['logs', 'number', *shown], rows)}")
    texts.append(f"{beside_program(cells, found)}")
    about = "LinUCB logs; means over those that a method does not refuse. ✓: on the same logs "
    about += f"unbandit (alpha known) is below this method by more than {DECIDED:g} standard errors; ✗: above it; ~: "
    about += "not decided. Error is the root mean square of a coefficient. Methods without a scale are given the one "
    about += "that fits the truth best, and compared with unbandit given the same."
    rows = []
    for name, (_, told, _) in METHODS.items():
        results = [each[name] for own in found for each in own]
        seconds = number(float(np.median([each[2] for each in results])))
        rows.append([name, seconds, str(sum(math.isnan(each[0]) for each in results)), told])
    last = markdown(["method", "s, median", "refused", "must be told"], rows)
    return "\n\n".join((about, *texts, last))
