"""Ctrl-C at any moment: exit code 130, and no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, sys
from unbandit.cli import main

module = sys.argv.pop(1)

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
main()
"""


@pytest.mark.parametrize(
    "module", ["typer", "unbandit.cli.estimate", "polars", "unbandit.log.reader", "unbandit.estimators.api", "numba"]
)
def test_control_c_while_a_module_is_imported(module: str, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("arm\nA\nB\nA\nA\n")
    arguments = [module, "estimate", str(log), "--rule", "ucb:alpha=0.25", "--sigma", "1"]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


POOL = """
import time
from unbandit.study.dispatch import WorkerProcesses

with WorkerProcesses(2) as pool:
    calls = [pool.submit(time.sleep, 30) for _ in range(20)]
    print("begun", flush=True)
    try:
        calls[0].result()
    except KeyboardInterrupt:
        for call in calls:
            call.cancel()
print("ended")
"""


@pytest.mark.parametrize("delay", [0.0, 0.2, 1.5])
def test_control_c_reaches_worker_processes_that_start_wait_or_work(delay: float) -> None:
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", POOL], **piped) as run:  # type: ignore[call-overload]
        assert run.stdout is not None
        assert run.stdout.readline() == "begun\n"
        time.sleep(delay)
        os.killpg(run.pid, signal.SIGINT)
        said, error = run.communicate(timeout=25)
    assert (said, error) == ("ended\n", "")


ORPHANED = """
import os, time
from unbandit.study.dispatch import WorkerProcesses

if __name__ == "__main__":
    with WorkerProcesses(1) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 600).result()
"""


def is_running(process: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not list its processes in /proc")
@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL])
def test_worker_processes_end_with_the_one_that_started_them(signal_number: int) -> None:
    with subprocess.Popen([sys.executable, "-c", ORPHANED], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        worker = int(run.stdout.readline())
        assert is_running(worker)
        run.send_signal(signal_number)
        run.wait(60)
    until = time.monotonic() + 60
    while is_running(worker):
        assert time.monotonic() < until, "the worker outlived its parent"
        time.sleep(0.05)
