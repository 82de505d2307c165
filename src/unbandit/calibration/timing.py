"""How long a posterior takes on one core, and how much memory: measured, so different from one machine to the next."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unbandit.calibration.settings import BERNOULLI, BETA, GAUSSIAN, NORMAL, SIGMA
from unbandit.demonstrators import Demonstrator, IndexRule, Thompson, parse_rule
from unbandit.inference import infer
from unbandit.instance import Bernoulli, Gaussian, Instance

USUAL = (4, 5_000)
"""Arms and rounds of the usual record."""

LARGE = (224, 25_000)
"""Arms and rounds of a large one."""

REPEATS = 3
"""A usual record is timed so many times, and the middle one is told."""


@dataclass(frozen=True)
class TimingRequest:
    """Say what is to be timed, and what is to be reached.

    Attributes
    ----------
    text
        The rule.
    arms, rounds
        Of the record.
    seconds, memory
        At most so many seconds, and so many bytes.
    """

    text: str
    arms: int
    rounds: int
    seconds: float
    memory: float = np.inf


@dataclass(frozen=True)
class Timing:
    """Hold what a posterior took: seconds, and the most memory that its process ever had, in bytes."""

    asked: TimingRequest
    seconds: float
    memory: float


def timing_requests() -> Iterator[TimingRequest]:
    """Give everything that is to be timed: index rules and Thompson sampling, and one large record."""
    for text in (*GAUSSIAN, *BERNOULLI):
        rule = parse_rule(text)
        if isinstance(rule, IndexRule | Thompson):
            yield TimingRequest(text, *USUAL, seconds=5.0 if isinstance(rule, Thompson) else 2.0)
    yield TimingRequest("ucb:alpha=0.25", *LARGE, seconds=60.0, memory=2e9)


def timed(asked: TimingRequest) -> Timing:
    """Time one posterior, with as many particles as there are by default, in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        seconds, memory = process.submit(_measure, asked).result()
    return Timing(asked, seconds, memory)


def _measure(asked: TimingRequest) -> tuple[float, float]:
    """Return the seconds of a posterior on one core, compiled beforehand, and the memory of the process."""
    rule = parse_rule(asked.text)
    _once(rule, asked.text in BERNOULLI, asked.arms, 2 * asked.arms)
    times = REPEATS if (asked.arms, asked.rounds) == USUAL else 1
    seconds = [_once(rule, asked.text in BERNOULLI, asked.arms, asked.rounds, seed) for seed in range(times)]
    return float(np.median(seconds)), _peak()


def _once(rule: Demonstrator, coins: bool, arms: int, rounds: int, seed: int = 0) -> float:
    prior = BETA if coins else NORMAL
    means = prior.draw(np.random.default_rng(seed), arms)
    log = rule.demonstrate(Instance(means, Bernoulli() if coins else Gaussian(SIGMA)), rounds, seed=seed)
    began = time.perf_counter()
    infer(log, rule, prior, None if coins else SIGMA, [rounds], seed=1_000 + seed, threads=1)
    return time.perf_counter() - began


def _peak() -> float:
    """Return the most memory that this process ever had, in bytes; NaN where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return 1024.0 * next(float(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return float("nan")
