"""Ray, as seen by the driver."""

from __future__ import annotations

import logging
import time
from concurrent.futures import CancelledError
from importlib import import_module
from typing import Any

from unbandit.clusters.backend import HeadGone
from unbandit.clusters.link import LostWorker
from unbandit.clusters.working import work
from unbandit.errors import ClusterError

__all__ = ["OnRay"]

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
