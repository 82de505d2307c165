"""All genes in one bandit, against a bandit of as many arms as there are charging protocols."""

from __future__ import annotations

from functools import partial

from bench.report import Row, rate
from bench.setting import Effort
from bench.timing import best_seconds
from unbandit import UCB, datasets

GENES, BATTERY = 1_000_000, 25_000  # rounds
ALPHA = 0.25


def compare(effort: Effort) -> list[Row]:
    """Time full logs and evidence of both, with the same number of rounds in all."""
    genes, battery = datasets.gene(), datasets.battery("high")
    for_genes, for_battery = (UCB.variance_adjusted(alpha=ALPHA, sigma=faced.sigma) for faced in (genes, battery))
    rounds = effort.of(GENES, at_least=len(genes) + 1)
    runs = max(1, rounds // BATTERY)
    rows = []
    for way, name in (("demonstrate", "full log"), ("evidence", "counts only")):
        calls = {
            "genes": partial(getattr(for_genes, way), genes, rounds, threads=1),
            "battery": partial(getattr(for_battery, way), battery, BATTERY, runs=runs, threads=1),
        }
        times = best_seconds(calls, effort.repeats)
        ours, others = rounds / times["genes"], runs * BATTERY / times["battery"]
        title = f"UCB on all {len(genes):,} genes, {name}, T={rounds:,}"
        compared = f"the same on {len(battery)} charging protocols at T={BATTERY:,}, {rate(others)}"
        rows.append(Row.at_least(title, rate(ours), compared, ours / others, 0.5))
    return rows
