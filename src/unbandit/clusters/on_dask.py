"""Dask, as seen by the driver."""

from __future__ import annotations

import logging
import uuid
from concurrent.futures import CancelledError
from importlib import import_module
from typing import Any

from unbandit.clusters.backend import HeadGone
from unbandit.clusters.link import LostWorker
from unbandit.clusters.working import work
from unbandit.errors import ClusterError

__all__ = ["OnDask"]

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
