"""Time and memory of a posterior on one core: measured, so different from one machine to the next."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unbandit.calibration.settings import BERNOULLI, BETA, GAUSSIAN, NOISE, NORMAL
from unbandit.demonstrators import IndexRule, Thompson, parse_rule
from unbandit.inference import infer
from unbandit.instance import Bernoulli, Instance

USUAL = (4, 5_000)
"""Arms and rounds of the usual record."""

LARGE = (224, 25_000)
"""Arms and rounds of a large one."""

REPEATS = 3
"""How often a usual record is timed; the median is reported."""


@dataclass(frozen=True)
class TimingRequest:
    """A posterior to be timed: rule, arms and rounds of the record, most seconds and most bytes to reach."""

    text: str
    arms: int
    rounds: int
    seconds: float
    memory: float = np.inf


@dataclass(frozen=True)
class Timing:
    """What a posterior took: seconds, and the most memory that its process ever had, in bytes."""

    asked: TimingRequest
    seconds: float
    memory: float


def timing_requests() -> Iterator[TimingRequest]:
    """Yield everything that is to be timed: index rules and Thompson sampling, and one large record."""
    for text in (*GAUSSIAN, *BERNOULLI):
        rule = parse_rule(text)
        if isinstance(rule, IndexRule | Thompson):
            yield TimingRequest(text, *USUAL, seconds=5.0 if isinstance(rule, Thompson) else 2.0)
    yield TimingRequest("ucb:alpha=0.25", *LARGE, seconds=60.0, memory=2e9)


def timed(asked: TimingRequest) -> Timing:
    """Time one posterior, with the default number of particles, in a separate process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        seconds, memory = process.submit(_measure, asked).result()
    return Timing(asked, seconds, memory)


def _measure(asked: TimingRequest) -> tuple[float, float]:
    """Return the seconds of a posterior on one core, compiled beforehand, and the memory of the process."""
    _once(asked, 2 * asked.arms)
    times = REPEATS if (asked.arms, asked.rounds) == USUAL else 1
    return float(np.median([_once(asked, asked.rounds, seed) for seed in range(times)])), _peak()


def _once(asked: TimingRequest, rounds: int, seed: int = 0) -> float:
    rule = parse_rule(asked.text)
    prior, noise = (BETA, Bernoulli()) if asked.text in BERNOULLI else (NORMAL, NOISE)
    means = prior.draw(np.random.default_rng(seed), asked.arms)
    log = rule.demonstrate(Instance(means, noise), rounds, seed=seed)
    began = time.perf_counter()
    infer(log, rule, prior, noise, [rounds], seed=1_000 + seed, threads=1)
    return time.perf_counter() - began


def _peak() -> float:
    """Return the most memory that this process ever had, in bytes; NaN if the system does not report it."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return 1024.0 * next(float(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return float("nan")
