"""Rounds of UCB with the full action log: this package, the plain loop, the peers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench import peers, plain_loop
from bench.report import Row, markdown, number, rate
from bench.setting import RULE, SIGMA, Effort, first_width, instance_of
from bench.timing import best_seconds


@dataclass(frozen=True)
class Case:
    """One number of arms: how much each side simulates of it (the slow ones less), and what is to be reached."""

    arms: int
    horizon: int
    runs: int
    plain_rounds: int
    plain_runs: int
    peer_rounds: int
    peer_runs: int
    times_plain: float
    times_peers: float | None = None

    def title(self, runs: int) -> str:
        return f"UCB, full log, K={self.arms:,}, T={self.horizon:,}, {runs:,} run" + "s" * (runs > 1)


CASES = (
    Case(2, 2000, 10_000, 2000, 2000, 2000, 20, times_plain=6, times_peers=500),
    Case(4, 2000, 10_000, 2000, 2000, 2000, 20, times_plain=6, times_peers=500),
    Case(20, 2000, 10_000, 2000, 1000, 2000, 10, times_plain=5, times_peers=500),
    Case(224, 2000, 1000, 2000, 250, 500, 5, times_plain=16),
    Case(12_979, 1_000_000, 1, 100_000, 1, 30, 1, times_plain=500),
)

SLOWER = {"mabwiser": 10}
"""A peer so much slower than the others that it plays this many times fewer runs."""


def compare(effort: Effort) -> tuple[list[Row], str]:
    """Return the rows, and a table of the rates of everybody."""
    ready, failed = peers.ready_peers()
    rows, rates = [], []
    for case in CASES:
        measured = _measure(case, ready, effort)
        title = case.title(effort.of(case.runs))
        rows += [_against_plain(title, measured, case), _against_peers(title, measured, case, ready)]
        rates.append([f"{case.arms:,}", *(_rate_cell(name, measured, failed) for name in _names())])
    return rows, _rates_table(rates, failed)


def _measure(case: Case, ready: list[str], effort: Effort) -> dict[str, float]:
    """Return rounds a second of everybody."""
    instance, width = instance_of(case.arms), first_width(case.horizon)
    level = width**2 / (2 * math.log(case.horizon))
    runs, plain_runs = effort.of(case.runs), effort.of(case.plain_runs)
    calls: dict[str, Callable[[], Any]] = {
        "unbandit": partial(RULE.demonstrate, instance, case.horizon, runs=runs, threads=1),
        "plain loop": partial(plain_loop.simulate, instance.means, SIGMA, width, case.plain_rounds, plain_runs),
    }
    rounds = {"unbandit": case.horizon * runs, "plain loop": case.plain_rounds * plain_runs}
    for name in ready:
        peer_rounds = effort.of(case.peer_rounds, at_least=5)
        peer_runs = max(1, case.peer_runs // SLOWER.get(name, 1))
        calls[name] = partial(peers.PEERS[name], instance.means, SIGMA, level, peer_rounds, peer_runs)
        rounds[name] = peer_rounds * peer_runs
    times = best_seconds(calls, effort.repeats, time.process_time)
    return {name: rounds[name] / time for name, time in times.items()}


def _against_plain(title: str, measured: dict[str, float], case: Case) -> Row:
    ours, plain = measured["unbandit"], measured["plain loop"]
    return Row.at_least(title, rate(ours), f"plain Numba loop, {rate(plain)}", ours / plain, case.times_plain)


def _against_peers(title: str, measured: dict[str, float], case: Case, ready: list[str]) -> Row:
    if not ready:
        return Row(title, rate(measured["unbandit"]), "no peer is installed", "")
    best = max(ready, key=measured.__getitem__)
    ratio = measured["unbandit"] / measured[best]
    compared = f"the best peer: {best}, {rate(measured[best])}"
    return Row.at_least(title, rate(measured["unbandit"]), compared, ratio, case.times_peers)


def _names() -> list[str]:
    return ["plain loop", *peers.PEERS]


def _rate_cell(name: str, measured: dict[str, float], failed: dict[str, str]) -> str:
    if name in failed:
        return "–"
    return number(measured["unbandit"] / measured[name])


def _rates_table(rates: list[list[str]], failed: dict[str, str]) -> str:
    few = ", ".join(f"{case.peer_rounds:,} rounds at K={case.arms:,}" for case in CASES if case.peer_rounds < 2000)
    notes = [
        "## How many times as fast as each",
        "Rounds a second of this package, full log, over those of the others.",
        markdown(["K", *_names()], rates),
        f"The peers are slow, so they play few runs, and only {few}. Fewer rounds than arms are all opening.",
        *(f"{name}: {reason}." for name, reason in failed.items()),
    ]
    return "\n\n".join(notes)
