"""Work that takes long: how far it is, and how it ends."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from rich.console import Console

import unbandit as ub
from unbandit import checks, progress
from unbandit.inference.filter import CloudCollapsed

RULE = ub.UCB(alpha=0.25)
LOG = RULE.demonstrate(ub.Instance([0.7, 0.5, 0.2], 0.5), 300, seed=1)


def posterior(**options):
    return ub.posterior(LOG, RULE, sigma=0.5, particles=200, check=False, **options)


def test_kernels_count_what_they_do_and_change_nothing():
    plain = posterior(threads=1)
    work = progress.Work()
    token = progress._current.set(work)
    try:
        counted = posterior(threads=1)
    finally:
        progress._current.reset(token)
    assert work.signals.tolist() == [4 * 200 * 300, 0]
    assert np.array_equal(counted.means, plain.means)
    assert counted.log_evidence == plain.log_evidence


@pytest.mark.parametrize("rule", ["ucb:alpha=0.25", "sae:alpha=0.25", "softmax", "epsilon-greedy"])
def test_stopped_work_ends_with_ctrl_c_and_not_as_a_log_that_no_particle_explains(rule):
    log = ub.parse_rule(rule).demonstrate(ub.Instance([0.7, 0.2], 0.5), 100, seed=1)
    with progress.stopped_together() as work:
        work.stop()
        with pytest.raises(KeyboardInterrupt):
            ub.posterior(log, rule, sigma=0.5, particles=50, check=False)
    assert ub.posterior(log, rule, sigma=0.5, particles=50, check=False).particles == 50  # later work is not stopped


def test_a_kernel_ends_while_it_runs():
    long = RULE.demonstrate(ub.Instance([0.7, 0.5, 0.2], 0.5), 100_000, seed=1)
    posterior()  # compiles what follows
    with progress.stopped_together() as work:
        timer = threading.Timer(0.3, work.stop)
        timer.start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            ub.posterior(long, RULE, sigma=0.5, particles=4_000, check=False, threads=1)
    assert time.monotonic() - began < 3
    assert 0 < work.signals[progress.DONE] < 4 * 4_000 * 100_000


def test_an_error_in_one_thread_does_not_stop_the_work_of_others():
    def work(number):
        if number == 1:
            raise CloudCollapsed("no.")
        return number

    with progress.stopped_together() as shared:
        with pytest.raises(CloudCollapsed):
            checks.in_threads(work, [(number,) for number in range(4)], 2)
        assert not shared.signals[progress.STOP]


def test_work_is_shown_while_it_runs():
    seen: list[tuple[str, float | None, float | None]] = []

    def slowly() -> int:
        work = progress.current_work()
        with work.stage("Counting", 10):
            for _ in range(10):
                time.sleep(0.15)
                work.signals[progress.DONE] += 1
                with work.stage("A part of it", 3):
                    pass
        return 7

    with progress.shown_by(lambda *each: seen.append(each)):
        assert progress.interruptible(slowly) == 7
    shares = [share for stage, share, _ in seen if stage == "Counting" and share is not None]
    assert {stage for stage, _, _ in seen} == {"Counting"}
    assert shares == sorted(shares)
    assert 0 <= shares[0] < 0.3 < 0.7 < shares[-1] <= 1
    left = [left for _, _, left in seen if left is not None]
    assert 0 < left[-1] < left[0] < 2


INTERRUPTED = """
import time
import unbandit as ub

rule = ub.UCB(alpha=0.25)
instance = ub.Instance([0.7, 0.5, 0.2], 0.5)
ub.posterior(rule.demonstrate(instance, 300, seed=1), rule, sigma=0.5, particles=200, check=False)
log = rule.demonstrate(instance, 200_000, seed=1)
print("begun", flush=True)
try:
    ub.posterior(log, rule, sigma=0.5, particles=4_000, check=False)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def test_ctrl_c_ends_a_long_posterior_within_a_second():
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "begun\n"
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert run.stdout.readline() == "stopped\n"
        assert time.monotonic() - began < 1
        assert run.wait(timeout=5) == 0


def test_work_of_hours_says_once_a_minute_how_long_it_will_take(monkeypatch):
    clock = iter([0.0, 30.0, 90.0, 100.0, 200.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    text = io.StringIO()
    lines = progress.progress_on(Console(file=text), "Measuring", rounds=False)
    lines.begin(1_000, 500)
    for _ in range(4):
        lines.advance(50)
    lines.end()
    assert text.getvalue() == "Measuring: 60.0%, 6 min 0 s left\nMeasuring: 70.0%, 5 min 0 s left\n"
    assert type(progress.progress_on(Console(file=text))) is progress.Progress
