"""Closed forms on simulated records: `bracket` beside Procedures 1 and 2 and beside the naive estimator.

Records of four designs: means drawn anew in every run, means at even distances, arms that are nearly equal, and the
paper's own instances. The same records are read by every method. The noise is known, and for an index that does not
rise one for one with the mean (and for Bernoulli rewards) the best mean, as the paper has it.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit import datasets
from unbandit.calibration.settings import BERNOULLI, GAUSSIAN, SIGMA, CellTrials
from unbandit.demonstrators import UCB, Demonstrator, EliminationRule, parse_rule
from unbandit.estimators.procedures import Anchor, Method, can_compare, compare, intervals, quantile
from unbandit.instance import Bernoulli, Gaussian, Instance, Noise
from unbandit.log.tallies import Tallies
from unbandit.result import ESTIMATED
from unbandit.study.taskgrid import Task, describe_rule
from unbandit.tape import Tape

Floats = NDArray[np.float64]
Design = Literal["random", "even", "near", "paper"]

METHODS: Final[tuple[Method, ...]] = ("bracket", "switching", "naive")
LEVEL = 0.95

CELLS: dict[Design, tuple[tuple[int, int, int], ...]] = {
    "random": ((2, 500, 2_000), (4, 2_000, 1_000), (10, 500, 500), (10, 5_000, 250), (20, 2_000, 250)),
    "even": ((2, 500, 2_000), (2, 5_000, 1_000), (4, 2_000, 1_000), (10, 500, 500), (10, 5_000, 500)),
    "near": ((2, 500, 1_000), (4, 2_000, 500), (10, 500, 250), (20, 5_000, 250)),
}
"""Arms, horizon and runs of each cell, by design."""

NEAR = 0.05  # within which nearly equal means are

BERNOULLI_RULES = (*BERNOULLI, "ucb:alpha=0.25,scale=0.7")
"""The rules that play rewards of 0 and 1 here; those without a closed form are left out later."""

GAUSSIAN_RULES = (*GAUSSIAN, "sae:alpha=0.25,scale=0.4", "phased:alpha=0.25,scale=0.4")
"""The rules that play Gaussian rewards; of elimination also with a width that eliminates in these horizons."""

EVEN_SIGMAS = (SIGMA, 1.0)  # noise of Gaussian rewards where the best arm is 1 better than the worst


@dataclass(frozen=True)
class ClosedFormCell:
    """A rule and the bandits that it plays in a number of runs: of a fixed instance, or with other means in each."""

    design: Design
    rule: Demonstrator
    arms: int
    horizon: int
    runs: int
    noise: Noise
    means: tuple[float, ...] | None = None  # fixed, and shuffled in every run; None for means drawn anew
    label: str = ""  # of an instance of the paper

    @property
    def described(self) -> dict[str, object]:
        """Return all that determines what is played, as plain values."""
        name = f"{self.rule} on {self.arms} arms, {self.horizon} rounds, {self.design} {self.label}".rstrip()
        return {
            "name": name, "rule": describe_rule(self.rule), "arms": self.arms, "horizon": self.horizon,
            "noise": str(self.noise), "means": None if self.means is None else list(self.means), "runs": self.runs,
        }  # fmt: skip

    def seed(self, seed: int) -> int:
        """Derive a seed from what is played, except the number of runs, and from the seed of the calibration."""
        text = json.dumps([seed, {**self.described, "runs": None}])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")

    def drawn_means(self, seed: int, run: int) -> Floats:
        """Draw the means of a run of a design that is not fixed."""
        generator, bernoulli = np.random.default_rng([seed, run]), isinstance(self.noise, Bernoulli)
        if self.design == "near":
            return generator.uniform(0.0, NEAR, self.arms) + 0.5 * bernoulli
        return generator.uniform(0.0, 1.0, self.arms) if bernoulli else generator.standard_normal(self.arms)


def closed_form_cells(text: str, runs: int | None = None) -> tuple[ClosedFormCell, ...]:
    """Return the cells of a rule, those of the paper with the first rule of each name; `runs` replaces their number."""
    rule, bernoulli = parse_rule(text), text in BERNOULLI_RULES
    if not can_compare(rule, "switching"):
        return ()
    cells, best, worst = [], (0.9 if bernoulli else 1.0), (0.1 if bernoulli else 0.0)
    for design, sizes in CELLS.items():
        noises: Sequence[Noise] = [Gaussian(sigma) for sigma in (EVEN_SIGMAS if design == "even" else (SIGMA,))]
        for noise in [Bernoulli()] if bernoulli else noises:
            for arms, horizon, usual in sizes:
                means = tuple(np.linspace(best, worst, arms).tolist()) if design == "even" else None
                cells.append(ClosedFormCell(design, rule, arms, horizon, usual, noise, means))
    if text in ("ucb:alpha=0.25", "sae:alpha=0.25"):
        cells += paper_cells(rule.name)
    return tuple(cells if runs is None else [replace(cell, runs=runs) for cell in cells])


def paper_cells(name: str) -> Iterator[ClosedFormCell]:
    """Yield the cells with the paper's own instances; horizons from the shortest to the longest that it shows."""

    def cell(label: str, rule: Demonstrator, instance: Instance, horizon: int, runs: int) -> ClosedFormCell:
        means = tuple(instance.means.tolist())
        return ClosedFormCell("paper", rule, len(means), horizon, runs, instance.noise, means, label)

    two, four, rule = datasets.two_armed(), datasets.linear(), parse_rule(f"{name}:alpha=0.25")
    if name == "sae":
        for horizon, runs in ((5_000, 500), (50_000, 250)):
            yield cell("two arms", rule, two, horizon, runs)
            yield cell("four arms", rule, four, horizon, runs)
        return
    for horizon, runs in ((500, 100_000), (1_077, 10_000), (5_000, 2_000)):
        yield cell("two arms", UCB(alpha=0.15), two, horizon, runs)
        yield cell("two arms", rule, two, horizon, runs)
        yield cell("four arms", rule, four, horizon, max(runs // 20, 500))
    for horizon, runs in ((500, 100_000), (5_000, 2_000)):
        for beta in (0.05, 0.5):
            yield cell(f"gap T^-{beta}", rule, datasets.shrinking_gap(horizon, beta), horizon, runs)
    protocols = datasets.battery("high", arms=20, seed=1)
    for horizon in (1_000, 10_000):
        adjusted = UCB.variance_adjusted(alpha=0.25, sigma=protocols.sigma)
        yield cell("20 protocols", adjusted, protocols, horizon, 250)


@dataclass(frozen=True, eq=False)
class ClosedFormTrials(CellTrials):
    """All runs of some cells; one row per run and arm, with every method's answer."""

    cells: tuple[ClosedFormCell, ...]
    kind: ClassVar[str] = "closed-forms"
    deciding: ClassVar[tuple[str, ...]] = (
        *("kernels", "demonstrators", "datasets", "tape.py", "instance.py", "estimators/procedures.py"),
        "calibration/closed_forms.py",
    )
    rounds_of_a_task: ClassVar[int] = 400_000

    def rows(self, task: Task) -> pl.DataFrame:
        """Play the runs of a task and read them by every method."""
        cell, runs = self.cells[task.cell], np.arange(task.first_run, task.last_run)
        seed = cell.seed(self.seed)
        tallies, instances = _played(cell, seed, runs)
        means = np.array([instance.means for instance in instances])
        columns: dict[str, Floats | NDArray[Any]] = {
            "cell": np.full(means.size, task.cell),
            "run": np.repeat(runs, cell.arms),
            "pulls": tallies.pulls.reshape(-1),
            "gap": (means.max(axis=1, keepdims=True) - means).reshape(-1),
            "seen": _seen_gaps(cell, tallies.pulls, instances, seed, runs).reshape(-1),
        }
        # Gaussian gaps need no known mean, so all runs are read at once; otherwise each has a best mean of its own.
        together = isinstance(cell.noise, Gaussian) and getattr(cell.rule, "shifts", True)
        blocks = [(0, runs.size)] if together or cell.means else [(run, run + 1) for run in range(runs.size)]
        for method in METHODS:
            parts = []
            for start, stop in blocks:
                known = None if together else Anchor(None, instances[start].best_mean)
                parts.append(_answers(cell, method, tallies.part(start, stop), known))
            columns |= {name: np.concatenate([part[name] for part in parts]).reshape(-1) for name in parts[0]}
        return pl.DataFrame(columns, nan_to_null=True)


def _played(cell: ClosedFormCell, seed: int, runs: NDArray[np.int64]) -> tuple[Tallies, list[Instance]]:
    """Play runs of a cell; return what was counted, and the instance of each run, its arms in the order of the run."""
    if cell.means is not None:
        fixed, orders = Instance(cell.means, cell.noise), Tape(seed).orders(runs, cell.arms)
        tallies = cell.rule.evidence(
            fixed, cell.horizon, runs=runs.size, seed=seed, threads=1, first_run=int(runs[0]), orders=orders
        )
        return tallies, [fixed.reordered(order) for order in orders]
    instances = [Instance(cell.drawn_means(seed, run), cell.noise) for run in runs.tolist()]
    parts = [
        cell.rule.evidence(instance, cell.horizon, seed=seed, first_run=run, threads=1)
        for run, instance in zip(runs.tolist(), instances, strict=True)
    ]
    names = parts[0].arrays
    return Tallies(**{name: np.concatenate([part.arrays[name] for part in parts]) for name in names}), instances


def _seen_gaps(
    cell: ClosedFormCell, pulls: NDArray[np.int64], instances: Sequence[Instance], seed: int, runs: NDArray[np.int64]
) -> Floats:
    """Return every gap as one who saw the rewards would estimate it: between the sample means of arm and best arm.

    The most-pulled arm is taken for the best, as the closed forms take it. Of an elimination rule, the two are compared
    after as many pulls of each: what the best arm gave later decided nothing.
    """
    tape, gaps = Tape(seed), np.full(pulls.shape, np.nan)
    for row, (run, instance) in enumerate(zip(runs.tolist(), instances, strict=True)):
        counts, best = pulls[row], int(pulls[row].argmax())
        arms = np.repeat(np.arange(counts.size), counts)
        numbers = np.arange(1, arms.size + 1) - np.repeat(np.cumsum(counts) - counts, counts)
        rewards = tape.reward(instance, run, arms, numbers)
        own = np.bincount(arms, rewards, minlength=counts.size)
        until = counts if isinstance(cell.rule, EliminationRule) else np.full(counts.size, counts[best])
        of_best = np.concatenate([[0.0], np.cumsum(rewards[arms == best])])[until]
        pulled = counts > 0
        gaps[row, pulled] = (of_best / np.maximum(until, 1) - own / np.maximum(counts, 1))[pulled]
    return gaps


def _answers(
    cell: ClosedFormCell, method: Method, tallies: Tallies, known: Anchor | None
) -> dict[str, NDArray[Any]]:  # fmt: skip
    """Return what a method says about every arm of some runs, by column; of `bracket` also which arms look close."""
    constant = float(np.sqrt(2) * cell.noise.deviation)
    found = compare(tallies, cell.rule, method, cell.horizon, constant, known, cell.noise)
    low, high, deviation, *_ = intervals(found, cell.noise, known, quantile(LEVEL))
    columns: dict[str, NDArray[Any]] = {method: found.gap, f"{method} verdict": found.verdict}
    if method != "naive":
        columns |= {f"{method} low": low, f"{method} high": high}
    if method == "bracket":
        with np.errstate(invalid="ignore"):
            columns["close"] = (found.verdict == ESTIMATED) & (found.gap < 2 * deviation)
    return columns
