"""Work that takes long: how far it is, and how it ends."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import threading
import time

import numba
import numpy as np
import pytest
from rich.console import Console

import unbandit as ub
from unbandit import checks, progress
from unbandit.inference import usual_prior
from unbandit.inference.clouds import particles_for, run_filters
from unbandit.inference.filter import CloudCollapsed
from unbandit.inference.prior import belief_of
from unbandit.instance import Gaussian
from unbandit.kernels.compile import CACHE_DIRECTORY

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


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
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
    stopped_at: list[float] = []
    with progress.stopped_together() as work:

        def stop_once_it_runs() -> None:
            while work.signals[progress.DONE] == 0:
                time.sleep(0.02)
            stopped_at.append(time.monotonic())
            work.stop()

        threading.Thread(target=stop_once_it_runs, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            ub.posterior(long, RULE, sigma=0.5, particles=4_000, check=False, threads=1)
    assert time.monotonic() - stopped_at[0] < 4  # less than one where no other tests run
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
    assert 0 <= left[-1] <= left[0]


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


def seconds_to_stop(program: str) -> float:
    """Start a program, press Ctrl-C while it works, and return how long it takes to say that it stopped."""

    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # what starts tests may not
    with subprocess.Popen([sys.executable, "-c", heed + program], stdout=subprocess.PIPE, text=True) as run:
        end = threading.Timer(120, run.kill)
        end.daemon = True
        end.start()
        assert run.stdout is not None
        assert run.stdout.readline() == "begun\n"
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert run.stdout.readline() == "stopped\n"
        taken = time.monotonic() - began
        assert run.wait(timeout=30) == 0
        end.cancel()
    return taken


def test_ctrl_c_ends_a_long_posterior_soon():
    assert seconds_to_stop(INTERRUPTED) < 4  # less than one where no other tests run


def test_work_of_hours_says_now_and_then_how_long_it_will_take(monkeypatch):
    monkeypatch.setenv(progress.SWITCH, "")
    clock = iter([0.0, 5.0, 15.0, 18.0, 40.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    text = io.StringIO()
    lines = progress.progress_on(Console(file=text), "Measuring", rounds=False)
    lines.begin(1_000, 500)
    for _ in range(4):
        lines.advance(50)
    lines.end()
    assert text.getvalue() == "Measuring: 60.0%, 1 min left\nMeasuring: 70.0%, 1 min left\n"


SIMULATED = """
import unbandit as ub

rule = ub.UCB1()
instance = ub.Instance([0.7, 0.5, 0.2], 0.5)
rule.demonstrate(instance, 300, seed=1)
print("begun", flush=True)
try:
    rule.demonstrate(instance, 200_000_000, seed=1)
except KeyboardInterrupt:
    print("stopped", flush=True)
import os
os._exit(0)  # the kernel goes on, as no one counts its rounds
"""


def test_ctrl_c_does_not_wait_for_a_long_simulation():
    assert seconds_to_stop(SIMULATED) < 4


# What a person sees


def test_a_posterior_is_shown_stage_by_stage(monkeypatch):
    monkeypatch.setattr(progress, "LOOK_SECONDS", 0.002)
    monkeypatch.setattr(progress, "SECONDS_TO_JUDGE", 0.01)
    seen: list[tuple[str, float | None, float | None]] = []
    with progress.shown_by(lambda *each: seen.append(each)):
        ub.posterior(LOG, RULE, sigma=0.5, particles=2_000, check=True)
    assert list(dict.fromkeys(stage for stage, _, _ in seen)) == ["Reading the rounds", "Checking the rule"]
    shares = [share for stage, share, _ in seen if stage == "Reading the rounds" and share is not None]
    assert shares == sorted(shares)
    assert shares[-1] > 0.5
    assert any(left is not None for stage, _, left in seen if stage == "Reading the rounds")


def test_candidates_are_shown_as_parts(monkeypatch):
    monkeypatch.setattr(progress, "LOOK_SECONDS", 0.002)
    seen: list[tuple[str, float | None, float | None]] = []
    with progress.shown_by(lambda *each: seen.append(each)):
        ub.identify(LOG, ["ucb:alpha=0.25", "ucb1", "sae:alpha=0.25"], sigma=0.5, particles=100)
    shares = {share for stage, share, _ in seen if stage == "Identifying the rule"}
    assert len(shares) > 2
    assert all(share is not None and 0 <= share <= 1 for share in shares)


def test_compiling_does_not_count_as_the_speed_of_work(monkeypatch):
    seen, compiled, now = [], [0.0], [0.0]
    monkeypatch.setattr(progress, "compile_clock", lambda: lambda: compiled[0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    work = progress.Work(lambda *how_far: seen.append(how_far))
    with work.stage("Reading", 10, in_parts=True):
        now[0], compiled[0] = 32.0, 30.0
        work.finish_part()
        work.look()
    assert seen == [("Reading", 0.1, pytest.approx(18.0))]  # and not nine times 32 seconds


def test_the_clock_runs_while_a_kernel_is_compiled():
    clock = progress.compile_clock()
    before = clock()
    numba.njit(lambda x: x + 1)(1)
    after = clock()
    assert after > before
    assert clock() == after


@pytest.mark.parametrize(
    ("terminal", "asked", "expected"),
    [
        (True, "", ["Reading", "Reading the rounds: 45%, about 12 s left"]),
        (True, "off", []),
        (False, "", []),
        (False, "on", ["Reading\n", "Reading the rounds: 45%, about 12 s left\n"]),
    ],
)
def test_a_line_says_what_is_left(terminal, asked, expected, monkeypatch):
    monkeypatch.setenv(progress.SWITCH, asked)
    out = io.StringIO()
    with progress.StageLine(Console(file=out, force_terminal=terminal, width=100), "Reading") as line:
        time.sleep(0.2 if terminal else 0)  # a terminal is drawn a few times per second
        line.show("Reading the rounds", 0.457, 12.3)
        line.show("Reading the rounds", 0.458, 12.2)
        time.sleep(0.2 if terminal else 0)
    said = out.getvalue()
    assert all(said.count(each) >= 1 for each in expected)
    assert said.count("\n") == 2 if asked == "on" else bool(said) == bool(expected)


def test_without_a_terminal_a_line_is_written_now_and_then(monkeypatch):
    monkeypatch.setenv(progress.SWITCH, "")
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    monkeypatch.setattr(progress, "SECONDS_UNSAID", 0.0)
    said = {}
    for is_quiet in (False, True):
        out = io.StringIO()
        with progress.StageLine(Console(file=out, width=100), "Reading", is_quiet=is_quiet) as line:
            time.sleep(0.2)
            line.show("Reading the rounds", 0.457, 12.3)
            time.sleep(0.2)
        said[is_quiet] = out.getvalue()
    assert re.search(r"Reading: 0\.\d s so far\n", said[False])
    assert "Reading the rounds: 45%, about 12 s left\n" in said[False]
    assert said[True] == ""


def test_a_check_of_many_rules_names_each_and_repeats_no_line(monkeypatch):
    monkeypatch.setenv(progress.SWITCH, "on")
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    out = io.StringIO()
    with progress.StageLine(Console(file=out, width=100), "Reading") as line:
        line.update("Checking ucb1")
        line.show(progress.CHECK, 0.5, 20.0)
        time.sleep(0.3)
        line.update("Checking sae")
        line.update("Estimating")
        line.show(progress.CHECK, None, None)
    expected = [
        "Reading",
        "Checking ucb1",
        "Checking ucb1: 50%, about 20 s left",
        "Checking sae",
        "Estimating",
        progress.CHECK,
    ]
    assert out.getvalue().splitlines() == expected


def test_a_line_says_that_kernels_are_compiled(monkeypatch):
    monkeypatch.setenv(progress.SWITCH, "")
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    compiled = [100.0]  # what was compiled before does not count
    monkeypatch.setattr(progress, "compile_clock", lambda: lambda: compiled[0])
    out = io.StringIO()
    with progress.StageLine(Console(file=out, width=100), "Reading"):
        time.sleep(0.2)
        assert progress.COMPILING not in out.getvalue()
        compiled[0] = 200.0
        until = time.monotonic() + 60
        while f"Reading{progress.COMPILING}\n" not in out.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    assert f"Reading{progress.COMPILING}\n" in out.getvalue()


@pytest.mark.parametrize(("asked", "kind"), [("on", progress.ProgressLines), ("off", progress.Progress), ("", None)])
def test_studies_write_lines_where_they_are_asked_for(asked, kind, monkeypatch):
    monkeypatch.setenv(progress.SWITCH, asked)
    piped, terminal = Console(file=io.StringIO()), Console(file=io.StringIO(), force_terminal=True)
    assert type(progress.progress_on(piped)) is (kind or progress.ProgressLines)
    assert type(progress.progress_on(piped, rounds=False)) is (kind or progress.ProgressLines)
    assert type(progress.progress_on(terminal)) is (progress.Progress if asked == "off" else progress.Bar)


def test_of_many_demonstrations_only_two_keep_their_particles():
    log = RULE.demonstrate(ub.Instance([0.7, 0.2], 0.5), 20, runs=5, seed=1)
    belief = belief_of(usual_prior(Gaussian(0.5), None), 2, Gaussian(0.5), None)
    passes = run_filters(log, RULE, belief, [20] * 5, 30, 1, 0, 1).passes[0]
    assert [each.cloud.sums.shape[0] for each in passes] == [30, 0, 0, 0, 30]
    assert all(each.cloud.increments.size == 20 for each in passes)


def test_many_demonstrations_have_fewer_particles_for_all_of_them_together():
    assert particles_for(100) == particles_for(*[100] * 10) == 4_000
    assert particles_for(*[100] * 97) == 20_000_000 // 9_700
    assert particles_for(*[100] * 5_000) == 250


POOLED = """
import unbandit as ub

rule = ub.UCB(alpha=0.25)
log = rule.demonstrate(ub.Instance([0.7, 0.5, 0.3, 0.1], 0.5), 12, runs=97, seed=1)
ub.posterior(log, rule, sigma=0.5, pool=True, check=False, particles=2_000)
with open("/proc/self/status") as status:  # not `ru_maxrss`, which begins with that of the tests
    print(next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the largest memory is in other units")
@pytest.mark.skipif(CACHE_DIRECTORY is None, reason="without kernels on disk, compiling them takes more memory")
def test_ninety_seven_people_fit_into_memory():
    for _ in range(2):  # the first may compile kernels, which are kept on disk: that takes more memory
        said = subprocess.run([sys.executable, "-c", POOLED], capture_output=True, text=True, check=True, timeout=300)
    assert int(said.stdout) < 500  # megabytes; with every demonstration's paths, 450 more
