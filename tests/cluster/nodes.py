"""Clusters of real processes on this machine: a head and its nodes, to be killed and started again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_health_check_initial_delay_ms": "1000",  # a node that is gone is missed soon
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "5000",
    "RAY_health_check_failure_threshold": "2",
}
HERE = Path(__file__).parent


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def parts(folder: Path) -> int:
    return len(list((folder / "parts").glob("[0-9]*.parquet")))


def until(condition: Callable[[], bool], seconds: float = 60, said: Callable[[], str] = lambda: "") -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, f"waited too long: {said()}"
        time.sleep(0.02)


def once(condition: Callable[[], bool], then: Callable[[], object]) -> threading.Thread:
    """Do something in a thread of its own as soon as something is so."""

    def wait() -> None:
        until(condition)
        then()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it started, at once."""
    try:
        whole = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    except psutil.NoSuchProcess:
        whole = []
    for each in whole:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(whole, timeout=10)
    process.wait(timeout=10)


class Nodes:
    """Start processes, with our modules within their reach, and leave none behind."""

    def __init__(self, logs: Path) -> None:
        self.logs, self.port, self.started = logs, free_port(), []

    def start(self, *command: object) -> subprocess.Popen[bytes]:
        paths = os.pathsep.join([str(HERE), *(path for path in sys.path if path)])
        path = self.logs / f"{len(self.started)}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                [str(word) for word in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                env=os.environ | QUIET | {"PYTHONPATH": paths},
            )  # fmt: skip
        process.log = path
        self.started.append(process)
        return process

    def until_up(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until a process says that it has begun."""

        def says() -> bool:
            said = process.log.read_text(errors="replace")
            assert process.poll() is None, said
            return self.begun in said

        until(says)

    def said(self) -> str:
        """Return the last words of every process."""
        return "\n".join(process.log.read_text(errors="replace")[-600:] for process in self.started)

    def close(self) -> None:
        for process in reversed(self.started):
            kill(process)


class DaskNodes(Nodes):
    """A scheduler and workers of one thread each."""

    begun = "Scheduler at:"

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def head(self) -> subprocess.Popen[bytes]:
        where = ("--host", "127.0.0.1", "--port", self.port, "--no-dashboard", "--no-show")
        return self.start(sys.executable, "-m", "distributed.cli.dask_scheduler", *where)

    def node(self) -> subprocess.Popen[bytes]:
        where = ("--host", "127.0.0.1", "--nthreads", 1, "--no-dashboard", "--no-nanny", "--memory-limit", 0)
        folder = ("--local-directory", self.logs / f"space-{len(self.started)}")
        return self.start(sys.executable, "-m", "distributed.cli.dask_worker", self.address, *where, *folder)


class RayNodes(Nodes):
    """A head without processors of its own, and nodes with one each."""

    begun = "Ray runtime started."
    memory = ("--object-store-memory", 80_000_000)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def head(self) -> subprocess.Popen[bytes]:
        where = ("--head", "--port", self.port, "--num-cpus", 0)
        return self._ray(*where, "--include-dashboard", "false", "--temp-dir", self.logs)

    def node(self) -> subprocess.Popen[bytes]:
        return self._ray("--address", self.address, "--num-cpus", 1)

    def _ray(self, *options: object) -> subprocess.Popen[bytes]:
        return self.start(
            sys.executable, "-m", "ray.scripts.scripts", "start", *options, *self.memory, "--num-gpus", 0,
            "--disable-usage-stats", "--block",
        )  # fmt: skip
