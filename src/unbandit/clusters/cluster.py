"""Our end of a cluster: an executor whose futures are kept by a driver in a process of its own."""

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

from unbandit.errors import ClusterError, MissingExtra, ParameterError

NAMES = {"ray": ("Ray", "ray"), "dask": ("Dask", "distributed")}
"""The clusters: what they are called, and the module that knows them."""


WAIT = 20.0
"""Seconds that a cluster has to answer, unless told."""


START = 120.0
"""Seconds that a cluster of our own has to start, however slow the machine is."""


CLOSE = 10.0
"""Seconds that a driver has to end, before it is ended."""


ALONE = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""What keeps each worker of a cluster of our own to one thread."""


class LostWorker(Exception):
    """Say that a worker died while it was at work: what it had in hand can be handed out again."""


class Cluster:
    """Hand calls to a cluster: an executor, to be used in a `with` block.

    Parameters
    ----------
    name
        ``"ray"`` or ``"dask"``.
    address
        Of its head; without one that of the library's own setting (``RAY_ADDRESS``, ``DASK_SCHEDULER_ADDRESS``), and
        without that a cluster is started on this machine, and stopped at the end.
    workers
        Of a cluster on this machine; by default one a core.
    wait
        Seconds that the head has to answer.

    Raises
    ------
    ParameterError
        For a name that is none of these.
    MissingExtra
        If the library is not installed.
    ClusterError
        On entering, if the head does not answer in time, or there are no workers.
    """

    def __init__(self, name: str, address: str | None = None, workers: int | None = None, wait: float = WAIT) -> None:
        if name not in NAMES:
            raise ParameterError(f'expected one of threads, {", ".join(NAMES)}; got "{name}".', parameter="executor")
        if not wait > 0:
            raise ParameterError(f"expected seconds above 0; got {wait!r}.", parameter="wait")
        self.name, self.address, self.wait = name, address or _set_elsewhere(name), wait
        if self.address and workers is not None:
            raise ParameterError(
                "the cluster at an address has workers of its own; leave threads out.", parameter="threads"
            )
        self._asked = workers or os.cpu_count() or 1
        self._futures: dict[int, Future[Any]] = {}
        self._numbers, self._lock, self._sending = count(), threading.Lock(), threading.Lock()
        self._lost: ClusterError | None = None
        self._begun: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
        self.workers = 0
        if find_spec(NAMES[name][1]) is None:
            raise MissingExtra(f"--executor {name}", name)

    def __enter__(self) -> Cluster:
        self._errors: IO[bytes] = tempfile.TemporaryFile()
        command = [sys.executable, "-m", "unbandit.clusters.driver"]
        self._driver = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=self._environment(),
            start_new_session=True,  # Ctrl-C is for us to hear
        )  # fmt: skip
        self._listener = threading.Thread(target=self._listen, name="cluster", daemon=True)
        self._listener.start()
        try:
            with suppress(OSError):  # a driver that cannot start is told of by its other end
                self._send((self.name, self.address, self._asked, self.wait))
            self._await_answer()
        except BaseException:
            self._driver.kill()  # it may wait for an answer for long
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Have a call done by some worker of the cluster."""
        future, call = _Promise(self, next(self._numbers)), pickle.dumps((function, arguments), protocol=5)
        with self._lock:
            if self._lost is not None:
                raise self._lost
            self._futures[future.number] = future
        with suppress(OSError):  # a driver that is gone is told of by its other end
            self._send(("submit", future.number, call))
        return future

    def _cancel(self, number: int) -> None:
        with suppress(OSError):
            self._send(("cancel", number))

    def _send(self, message: tuple[Any, ...]) -> None:
        assert self._driver.stdin is not None
        data = pickle.dumps(message, protocol=5)
        with self._sending:
            self._driver.stdin.write(data)
            self._driver.stdin.flush()

    def _listen(self) -> None:
        """Take in what the driver says, until it is gone."""
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
                        self._give_up(self._told("was lost", rest[0]))
                    self._begun.put((kind, *rest))
        except Exception:  # it ended, or says what we cannot read
            self._give_up(self._told("was lost", self._last_words()))
            self._begun.put(("ended", self._last_words()))

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
            open_ones, self._futures = list(self._futures.values()), {}
        for future in open_ones:
            future.set_exception(self._lost)

    def _await_answer(self) -> None:
        """Wait until the driver has found the cluster, as long as it may take."""
        limit = START  # for loading the library, which the head has no part in
        while True:
            try:
                kind, *rest = self._begun.get(timeout=limit)
            except Empty:
                raise self._told(f"did not answer within {limit:g} s", self._last_words()) from None
            if kind == "ready":
                return
            if kind == "loaded":
                limit = self.wait if self.address else START
                continue
            raise self._told("could not be used", rest[0])

    def _told(self, what: str, reason: str) -> ClusterError:
        head = f"the head at {self.address}" if self.address else "a cluster on this machine"
        because = f" ({reason})" if reason else ""
        remedy = "Is it running, and is the address right?" if "answer" in what and self.address else ""
        return ClusterError(f"{NAMES[self.name][0]}: {head} {what}{because}. {remedy}".rstrip())

    def _last_words(self) -> str:
        """Return the last line that the driver wrote to its standard error."""
        with suppress(OSError, ValueError, AttributeError):  # not every system can read at a place
            size = os.fstat(self._errors.fileno()).st_size
            tail = os.pread(self._errors.fileno(), 4096, max(0, size - 4096)).decode(errors="replace")
            lines = [line.strip() for line in tail.splitlines() if line.strip() and not line.startswith("[")]  # no logs
            return lines[-1][:200].rstrip(".") if lines else ""
        return ""

    def _environment(self) -> dict[str, str]:
        """Return the driver's environment; the workers of a cluster of our own have it too."""
        here = os.pathsep.join(os.path.abspath(each) for each in sys.path)  # noqa: PTH100 ("" is where we are)
        added = {"PYTHONPATH": here, "RAY_gcs_rpc_server_reconnect_timeout_s": str(max(1, round(self.wait)))}
        if not self.address:
            added |= dict.fromkeys(ALONE, "1") | {"RAY_USAGE_STATS_ENABLED": "0"}
        return os.environ | added

    def _end(self) -> None:
        """End the driver, and with it a cluster of our own."""
        with suppress(OSError):
            assert self._driver.stdin is not None
            self._driver.stdin.close()
        try:
            self._driver.wait(CLOSE if self._lost is None else 1.0)
        except subprocess.TimeoutExpired:
            self._driver.kill()
            self._driver.wait()
        self._give_up(ClusterError(f"{NAMES[self.name][0]}: the cluster was left."))
        self._listener.join()
        assert self._driver.stdout is not None
        self._driver.stdout.close()
        self._errors.close()


class _Promise(Future[Any]):
    """A future that asks the cluster when it is cancelled, and ends when the cluster says so."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        super().__init__()
        self._cluster, self.number = cluster, number

    def cancel(self) -> bool:
        """Ask for the call to be dropped; it is over when `result` returns or raises."""
        if not self.done():
            self._cluster._cancel(self.number)
        return False


def _set_elsewhere(name: str) -> str | None:
    """Return the address that the library's own setting gives, if there is one."""
    return os.environ.get({"ray": "RAY_ADDRESS", "dask": "DASK_SCHEDULER_ADDRESS"}[name]) or None
