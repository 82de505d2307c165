"""What the driver needs of a cluster.

What a cluster's workers call: a call in bytes, its outcome in bytes.

Ray, as seen by the driver.

Dask, as seen by the driver.
"""

from __future__ import annotations

import logging
import pickle
import time
import uuid
from concurrent.futures import CancelledError
from importlib import import_module
from typing import Any, Protocol

from unbandit.clusters.cluster import LostWorker
from unbandit.errors import ClusterError


class HeadGone(Exception):
    """Say that the cluster is no more."""


class Backend(Protocol):
    """Stand for a cluster that was found."""

    def submit(self, call: bytes) -> Any:
        """Have a call done, and return a future."""

    def outcome(self, future: Any) -> bytes:
        """Return what came of a call that is over.

        Raises `LostWorker`, `HeadGone`, `CancelledError` or, for workers that cannot do it, `ClusterError`.
        """

    def cancel(self, future: Any) -> None:
        """Drop a call, if it is not being done."""

    def workers(self) -> int:
        """Return how many calls are done at a time; raise `HeadGone` if nobody can tell."""

    def close(self) -> None:
        """Leave the cluster; one of our own ends."""


def work(call: bytes) -> bytes:
    """Do a call and return ``("done", value)`` or ``("failed", error)``, pickled.

    Errors come back as values: what a cluster raises of itself is then always about the cluster.

    Examples
    --------
    >>> pickle.loads(work(pickle.dumps((divmod, (7, 2)))))
    ('done', (3, 1))
    >>> pickle.loads(work(pickle.dumps((divmod, (7, 0)))))
    ('failed', ZeroDivisionError('integer division or modulo by zero'))
    """
    try:
        function, arguments = pickle.loads(call)
        return pickle.dumps(("done", function(*arguments)))
    except Exception as error:  # the task's own: raised again where it was asked for
        return _failed(error)


def _failed(error: Exception) -> bytes:
    try:
        data = pickle.dumps(("failed", error))
        pickle.loads(data)
    except Exception:  # an error that does not travel
        data = pickle.dumps(("failed", RuntimeError(f"{type(error).__name__}: {error}")))
    return data


OBJECTS = 200_000_000
"""Bytes of shared memory of a cluster of our own: receipts are small."""


class OnRay:
    """Hand calls to a Ray cluster: that at an address, or one of our own."""

    def __init__(self, address: str | None, workers: int, wait: float) -> None:
        self._ray: Any = import_module("ray")
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address:
            self._ray.init(address=address, **quiet)
        else:
            self._ray.init(
                address="local", num_cpus=workers, include_dashboard=False, object_store_memory=OBJECTS, **quiet
            )
        self._work = self._ray.remote(num_cpus=1, max_retries=0)(work)
        until = time.monotonic() + 0.9 * wait  # whoever started us waits no longer than that
        while not self.workers():
            if time.monotonic() > until:
                raise ClusterError("it has no processors to work on")
            time.sleep(0.2)

    def submit(self, call: bytes) -> Any:
        """Have a call done, and return a future that knows its reference."""
        reference = self._work.remote(call)
        future = reference.future()
        future.reference = reference
        return future

    def outcome(self, future: Any) -> bytes:
        """Return what came of a call."""
        exceptions = self._ray.exceptions
        try:
            found: bytes = future.result()
        except exceptions.TaskCancelledError:
            raise CancelledError from None
        except exceptions.RayTaskError as error:
            raise ClusterError(
                f"Ray: a worker could not begin: {str(error).strip().splitlines()[-1].rstrip('.')}. "
                "Install the same version of unbandit on every worker."
            ) from None
        except (exceptions.LocalRayletDiedError, ConnectionError) as error:
            raise HeadGone(str(error)) from None
        except exceptions.RayError as error:
            raise LostWorker(str(error)) from None
        return found

    def cancel(self, future: Any) -> None:
        """Drop a call; one that is being done ends at the next chance."""
        self._ray.cancel(future.reference, force=False)

    def workers(self) -> int:
        """Return the processors of the cluster."""
        return int(self._ray.cluster_resources().get("CPU", 0))

    def close(self) -> None:
        """Leave the cluster."""
        self._ray.shutdown()


OWN = {
    "distributed.scheduler.allowed-failures": 0,  # we hand out again ourselves, and say so
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
}
"""Settings of a cluster of our own: nobody looks at its figures, so none are taken."""


BROKEN = "the connection to it broke"


class OnDask:
    """Hand calls to a Dask cluster: that at an address, or one of our own."""

    def __init__(self, address: str | None, workers: int, wait: float) -> None:
        library: Any = import_module("distributed")
        self._killed: type[Exception] = library.KilledWorker
        import_module("dask").config.set({"distributed.comm.timeouts.connect": f"{wait}s"} | ({} if address else OWN))
        self._own: Any = None
        if not address:
            self._own = library.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None,
                memory_limit=0, silence_logs=logging.ERROR,
            )  # fmt: skip
        self._client = library.Client(address or self._own, timeout=wait, set_as_default=False)
        self._cancelled: set[str] = set()
        try:
            self._client.wait_for_workers(1, timeout=0.9 * wait)
        except TimeoutError:
            raise ClusterError("it has no workers") from None

    def submit(self, call: bytes) -> Any:
        """Have a call done, and return a future."""
        return self._client.submit(work, call, key=f"unbandit-{uuid.uuid4().hex}", pure=False)

    def outcome(self, future: Any) -> bytes:
        """Return what came of a call."""
        try:
            found: bytes = future.result()
        except self._killed as error:
            raise LostWorker(str(error)) from None
        except CancelledError:
            if future.key in self._cancelled:
                raise CancelledError from None
            raise HeadGone(BROKEN) from None
        except (ImportError, AttributeError) as error:
            raise ClusterError(
                f"Dask: a worker could not begin: {str(error).rstrip('.')}. "
                "Install the same version of unbandit on every worker."
            ) from None
        finally:
            future.release()
        return found

    def cancel(self, future: Any) -> None:
        """Drop a call; one that is being done goes on to its end, and nobody waits for it."""
        self._cancelled.add(future.key)
        future.cancel()

    def workers(self) -> int:
        """Return the threads of all workers."""
        if self._client.status != "running":
            raise HeadGone(BROKEN)
        found = self._client.scheduler_info(n_workers=-1)["workers"]
        return sum(each["nthreads"] for each in found.values())

    def close(self) -> None:
        """Leave the cluster."""
        self._client.close(timeout=2)
        if self._own is not None:
            self._own.close(timeout=5)
