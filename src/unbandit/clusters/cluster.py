"""Our end of a cluster: an executor whose calls are made by a driver in its own process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from queue import Empty, SimpleQueue
from typing import IO, Any

from unbandit import checks
from unbandit.clusters.backends import LIBRARIES, LostWorker
from unbandit.errors import ClusterError, MissingExtra, ParameterError, option

WAIT = 20.0  # default seconds that a head has to answer
SECONDS_TO_START = 120.0  # that a cluster of our own has, however slow the machine is
SECONDS_TO_CLOSE = 10.0  # that a driver has before it is killed

ONE_THREAD = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Settings that keep each worker of a cluster of our own to one thread."""

ON_THIS_MACHINE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Setting by which a Ray cluster of our own listens on this machine's own address only, as is Ray's default on systems
other than Linux: whoever reaches a Ray cluster can have it run programs."""


class Cluster:
    """An executor that submits calls to a Ray or Dask cluster, for use in a `with` block.

    The address of its head is by default that of the library's own setting (``RAY_ADDRESS``,
    ``DASK_SCHEDULER_ADDRESS``); without one, a cluster with so many `workers` is started on this machine, and stopped
    at the end. Entering raises a `ClusterError` if the head does not answer within `wait` seconds, or has no workers.
    """

    def __init__(self, name: str, address: str | None = None, workers: int | None = None, wait: float = WAIT) -> None:
        if name not in LIBRARIES:
            checks.one_of("executor", name, ["threads", *LIBRARIES])
        self.name, self.wait, self._library = name, checks.positive("wait", wait), LIBRARIES[name]
        self.address = address or os.environ.get(self._library.setting) or None
        if self.address and workers is not None:
            text = f"the cluster at an address has its own workers; leave {option('threads')} out."
            raise ParameterError(text, parameter="threads")
        self._own_workers = checks.threads(workers)
        self._futures: dict[int, Future[Any]] = {}
        self._numbers, self._lock, self._sending = count(), threading.Lock(), threading.Lock()
        self._lost: ClusterError | None = None
        self._answers: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
        self.workers = 0
        if find_spec(self._library.module) is None:
            raise MissingExtra(option("executor", name), name)

    @property
    def _patience(self) -> float:
        """Seconds without an answer after which a head is lost: one of our own, on a busy machine, is given longer."""
        return self.wait if self.address else max(self.wait, SECONDS_TO_START)

    def __enter__(self) -> Cluster:
        self._errors: IO[bytes] = tempfile.TemporaryFile()
        command = [sys.executable, "-m", "unbandit.clusters.driver"]
        self._driver = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=self._environment(),
            start_new_session=True,  # Ctrl-C is for this process alone
        )  # fmt: skip
        self._listener = threading.Thread(target=self._listen, name="cluster", daemon=True)
        self._listener.start()
        try:
            self._send(self.name, self.address, self._own_workers, self._patience)
            self._await_answer()
        except BaseException:
            self._driver.kill()  # it may wait long for an answer
            self.__exit__()
            raise
        return self

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Have a call done by a worker of the cluster."""
        future = _ClusterFuture(self, next(self._numbers))
        call = pickle.dumps((function, arguments), protocol=5)
        with self._lock:
            if self._lost is not None:
                raise self._lost
            self._futures[future.number] = future
        self._send("submit", future.number, call)
        return future

    def _send(self, *message: Any) -> None:
        assert self._driver.stdin is not None
        data = pickle.dumps(message, protocol=5)
        with self._sending, suppress(OSError):  # the listener reports a driver that is gone
            self._driver.stdin.write(data)
            self._driver.stdin.flush()

    def _listen(self) -> None:
        """Receive the driver's messages until it is gone."""
        assert self._driver.stdout is not None
        try:
            while True:
                kind, *rest = pickle.load(self._driver.stdout)
                if kind == "workers":
                    self.workers = rest[0]
                elif kind in ("done", "failed", "lost"):
                    self._settle(kind, *rest)
                else:
                    if kind == "gone":
                        self._give_up(self._error("lost {}", rest[0]))
                    self._answers.put((kind, *rest))
        except Exception:  # it ended, or sent something unreadable
            self._give_up(self._error("lost {}", self._last_line()))
            self._answers.put(("ended", self._last_line()))

    def _settle(self, kind: str, number: int, value: Any) -> None:
        with self._lock:
            future = self._futures.pop(number, None)
        if future is None:
            return
        if kind == "done":
            future.set_result(value)
        else:
            future.set_exception(LostWorker(value) if kind == "lost" else value)

    def _give_up(self, error: ClusterError) -> None:
        with self._lock:
            self._lost = self._lost or error
            pending, self._futures = list(self._futures.values()), {}
        for future in pending:
            future.set_exception(self._lost)

    def _await_answer(self) -> None:
        """Wait until the driver has reached the cluster, within the limits."""
        limit = SECONDS_TO_START  # to load the library, which does not involve the head
        while True:
            try:
                kind, *rest = self._answers.get(timeout=limit)
            except Empty:
                remedy = "Is it running, and is the address right?" if self.address else None
                raise self._error(f"{{}} did not answer within {limit:g} s", self._last_line(), remedy) from None
            if kind == "ready":
                return
            if kind != "loaded":
                raise self._error("cannot connect to {}" if self.address else "cannot start {}", rest[0])
            limit = self._patience

    def _error(self, event: str, reason: str, remedy: str | None = None) -> ClusterError:
        library = self._library.title
        head = f"the {library} head at {self.address}" if self.address else f"the {library} cluster on this machine"
        because = f" ({reason})" if reason else ""
        return ClusterError(f"{event.format(head)}{because}.", remedy=remedy)

    def _last_line(self) -> str:
        """Return the last line that the driver wrote to its standard error."""
        with suppress(OSError, ValueError, AttributeError):  # not every system can read at a place
            size = os.fstat(self._errors.fileno()).st_size
            tail = os.pread(self._errors.fileno(), 4096, max(0, size - 4096)).decode(errors="replace")
            lines = [line.strip() for line in tail.splitlines() if line.strip() and not line.startswith("[")]  # no logs
            return lines[-1][:200].rstrip(".") if lines else ""
        return ""

    def _environment(self) -> dict[str, str]:
        """Return the driver's environment, which the workers of a cluster of our own share."""
        paths = os.pathsep.join(os.path.abspath(each) for each in sys.path)  # noqa: PTH100 ("" is the working directory)
        added = {"PYTHONPATH": paths, "RAY_gcs_rpc_server_reconnect_timeout_s": str(max(1, round(self._patience)))}
        if not self.address:
            added |= dict.fromkeys(ONE_THREAD, "1") | {"RAY_USAGE_STATS_ENABLED": "0"} | ON_THIS_MACHINE
        return os.environ | added

    def __exit__(self, *_: object) -> None:
        """End the driver, and with it a cluster of our own."""
        with suppress(OSError):
            assert self._driver.stdin is not None
            self._driver.stdin.close()
        try:
            self._driver.wait(SECONDS_TO_CLOSE if self._lost is None else 1.0)
        except subprocess.TimeoutExpired:
            self._driver.kill()
            self._driver.wait()
        self._give_up(ClusterError("the cluster was left."))
        self._listener.join()
        assert self._driver.stdout is not None
        self._driver.stdout.close()
        self._errors.close()


class _ClusterFuture(Future[Any]):
    """A future that asks the cluster to cancel its call, and ends when the cluster says so."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        super().__init__()
        self._cluster, self.number = cluster, number

    def cancel(self) -> bool:
        """Ask to drop the call; it has ended when `result` returns or raises."""
        if not self.done():
            self._cluster._send("cancel", self.number)
        return False
