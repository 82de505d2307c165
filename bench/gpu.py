"""What a GPU does: `python -m bench.gpu [--quick]` prints its rows as Markdown. Needs a GPU, and `unbandit[gpu]`."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from bench.report import WARNING, Row, markdown, number
from bench.setting import FULL, QUICK, RULE, Effort, instance_of
from unbandit import SAE, UCB, UCB1, Instance, Study, datasets
from unbandit.demonstrators import Demonstrator
from unbandit.devices import checked_device, gpu_name

HEADINGS = ("work", "billion rounds a second, or seconds")
PICTURES = ("ucb", "sae", "gap-decay", "naive", "sketch-tradeoff")
SHARE_RUNS = 100_000


def protocols() -> Instance:
    """Return the 224 charging protocols of the high regime."""
    return datasets.battery("high")


def median_seconds(call: Callable[[], object], repeats: int) -> float:
    call()  # compiles
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def rate(instance: Instance, rule: Demonstrator, horizon: int, runs: int, effort: Effort) -> float:
    """Return billion rounds a second: orders drawn, runs simulated, estimated, and summed up into folds."""
    study = Study(instance, rule, horizon, effort.of(runs), device="cuda", keep="sums")
    seconds = median_seconds(lambda: [study.rows(task) for task in study.tasks], effort.repeats)
    return study.rounds / seconds / 1e9


def rates(effort: Effort) -> list[Row]:
    battery = protocols()
    adjusted = UCB.variance_adjusted(alpha=0.25, sigma=battery.sigma)
    cases = [
        ("UCB, K=2, T=5,000, simulated and estimated", instance_of(2), RULE, 5_000, 16_000_000, 95.0),
        ("UCB, K=4, T=5,000, simulated and estimated", instance_of(4), RULE, 5_000, 16_000_000, 70.0),
        ("UCB, K=20, T=5,000, simulated and estimated", instance_of(20), RULE, 5_000, 4_000_000, 20.0),
        ("UCB, K=224 in equal steps, T=25,000, simulated and estimated", instance_of(224), RULE, 25_000, 400_000, 10.0),
        ("UCB, 224 charging protocols, T=25,000, simulated and estimated", battery, adjusted, 25_000, 400_000, 12.0),
        ("UCB1, K=20, T=5,000, simulated and estimated", instance_of(20), UCB1(), 5_000, 2_000_000, 7.0),
        ("SAE, K=2, T=5,000, simulated and estimated", instance_of(2), SAE(), 5_000, 16_000_000, None),
        ("SAE, K=4, T=5,000, simulated and estimated", instance_of(4), SAE(), 5_000, 16_000_000, None),
    ]
    rows = []
    for work, instance, rule, horizon, runs, reach in cases:
        found = rate(instance, rule, horizon, runs, effort)
        rows.append(Row.at_least(work, number(found), "", found, reach))
        print(f"{work}: {found:.1f}", flush=True)
    return rows


def shares(effort: Effort) -> list[Row]:
    """Return in how many demonstrations every action is the CPU's."""
    rows = []
    for rule, arms in ((RULE, 2), (RULE, 4), (RULE, 20), (UCB1(), 20), (SAE(), 4)):
        runs, horizon = effort.of(SHARE_RUNS), 5_000
        here, there = (
            rule.demonstrate(instance_of(arms), horizon, runs=runs, seed=1, device=device) for device in ("cpu", "cuda")
        )
        assert here.actions is not None
        assert there.actions is not None
        same = (here.actions.reshape(runs, -1) == there.actions.reshape(runs, -1)).all(axis=1)
        work = f"{rule.name}, K={arms}, T={horizon:,}: share of {runs:,} demonstrations with the CPU's every action"
        rows.append(Row(work, "", "", f"{same.mean():.6f}", "at least 0.9999", bool(same.mean() >= 0.9999)))
        print(f"{work}: {same.mean():.6f}", flush=True)
    runs, battery = effort.of(SHARE_RUNS // 20), protocols()
    adjusted = UCB.variance_adjusted(alpha=0.25, sigma=battery.sigma)
    counts = [adjusted.evidence(battery, 25_000, runs=runs, seed=1, device=device) for device in ("cpu", "cuda")]
    named = [[getattr(each, name) for each in counts] for name in ("pulls", "own", "of_best")]
    share = np.all([(here == there).all(axis=1) for here, there in named], axis=0).mean()
    work = f"ucb, 224 charging protocols, T=25,000: share of {runs:,} demonstrations with the CPU's every count"
    rows.append(Row(work, "", "", f"{share:.6f}", "at least 0.9999", bool(share >= 0.9999)))
    print(f"{work}: {share:.6f}", flush=True)
    return rows


def pictures(effort: Effort) -> list[Row]:
    """Return how long the synthetic pictures take, from nothing, compiling included."""
    from unbandit.paper.reproduce import reproduce

    runs = effort.of(1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        reproduce(PICTURES, Path(folder) / "pictures", runs=runs, device="cuda")
        seconds = time.perf_counter() - start
    work = f"Every synthetic picture of the paper, {runs:,} runs a point, in seconds"
    print(f"{work}: {seconds:.1f}", flush=True)
    return [Row.at_most(work, number(seconds), "", seconds, 60.0)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description="Print the GPU's rows as Markdown.")
    parser.add_argument("--quick", action="store_true", help="a few seconds of work, to see that everything runs")
    options = parser.parse_args(arguments)
    effort = QUICK if options.quick else FULL
    checked_device("cuda")
    made = pictures(effort)  # first, so that nothing has been compiled for it
    rows = [*rates(effort), *shares(effort), *made]
    versions = ", ".join(f"{name} {version(name)}" for name in ("numba", "numba-cuda", "numpy"))
    opening = f"Printed by `make bench-gpu` on one {gpu_name()}, {versions}."
    table = markdown(HEADINGS, [[row.work, row.ratio] for row in rows])
    print("\n\n".join(part for part in (WARNING if options.quick else "", opening, table) if part))
    slower = [f"{row.work}: {row.ratio} ({row.reach})" for row in rows if row.reached is False]
    if slower and not options.quick:
        raise SystemExit("\n".join(["Less than it was before:", *slower]))


if __name__ == "__main__":
    main()
