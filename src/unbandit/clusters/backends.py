"""Ray and Dask behind one interface (`BACKENDS`), and the function that their workers call.

An error of a call comes back as a value, so whatever a library raises is about the cluster. Of a call that ended,
`outcome` returns what came back, or raises `LostWorker` once the library has given up retrying, `LostHead`,
`CancelledError` or, for workers that cannot run it, `ClusterError`.
"""

import logging
import pickle
import time
import uuid
from concurrent.futures import CancelledError
from importlib import import_module
from typing import Any, NamedTuple

from unbandit.errors import ClusterError

MOST_RETRIES = 3  # of a call whose worker died; the default of Dask's schedulers, too
OBJECT_STORE_BYTES = 200_000_000  # of a Ray cluster that we start: receipts are small
WAIT_SHARE = 0.9  # of the time to answer: then a head without workers is given up, before our caller does

OWN_DASK_SETTINGS = {
    "distributed.scheduler.allowed-failures": MOST_RETRIES,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
}
"""Settings of a Dask cluster that we start: nobody looks at its figures, so none are collected."""


class Library(NamedTuple):
    """A library: what it is called, its module, and the environment variable with the address of a head."""

    title: str
    module: str
    setting: str


LIBRARIES = {
    "ray": Library("Ray", "ray", "RAY_ADDRESS"),
    "dask": Library("Dask", "distributed", "DASK_SCHEDULER_ADDRESS"),
}


class LostWorker(Exception):
    """A worker died during a call, and so did those that retried it."""


class LostHead(Exception):
    """The cluster is gone."""


def call_to_outcome(call: bytes) -> bytes:
    """Run a pickled ``(function, arguments)`` and return ``("done", value)`` or ``("failed", error)``, pickled."""
    try:
        function, arguments = pickle.loads(call)
        return pickle.dumps(("done", function(*arguments)))
    except Exception as error:  # the call's own: raised again by the future
        try:
            data = pickle.dumps(("failed", error))
            pickle.loads(data)
        except Exception:  # an error that does not pickle
            data = pickle.dumps(("failed", RuntimeError(f"{type(error).__name__}: {error}")))
        return data


def _cannot_start(library: str, reason: str) -> ClusterError:
    remedy = "Install the same version of unbandit on every worker."
    return ClusterError(f"{library}: a worker could not start: {reason}.", remedy=remedy)


class _Ray:
    """A Ray cluster: the one at an address, or our own."""

    def __init__(self, address: str | None, workers: int, wait: float) -> None:
        self._ray: Any = import_module("ray")
        own = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
        settings: dict[str, Any] = {"address": address} if address else {"address": "local"} | own
        self._ray.init(**settings, log_to_driver=False, logging_level=logging.ERROR)
        self._remote = self._ray.remote(num_cpus=1, max_retries=MOST_RETRIES)(call_to_outcome)
        until = time.monotonic() + WAIT_SHARE * wait
        while not self.workers():
            if time.monotonic() > until:
                raise ClusterError("it has no processors to work on")
            time.sleep(0.2)

    def submit(self, call: bytes) -> Any:
        reference = self._remote.remote(call)
        future = reference.future()
        future.reference = reference
        return future

    def outcome(self, future: Any) -> bytes:
        exceptions = self._ray.exceptions
        try:
            outcome: bytes = future.result()
        except exceptions.TaskCancelledError:
            raise CancelledError from None
        except exceptions.RayTaskError as error:
            raise _cannot_start("Ray", str(error).strip().splitlines()[-1].rstrip(".")) from None
        except (exceptions.LocalRayletDiedError, ConnectionError) as error:
            raise LostHead(str(error)) from None
        except exceptions.RayError as error:
            raise LostWorker(str(error)) from None
        return outcome

    def cancel(self, future: Any) -> None:
        self._ray.cancel(future.reference, force=False)  # a call that is running is asked to end

    def workers(self) -> int:
        return int(self._ray.cluster_resources().get("CPU", 0))

    def close(self) -> None:
        self._ray.shutdown()


class _Dask:
    """A Dask cluster: the one at an address, or our own."""

    def __init__(self, address: str | None, workers: int, wait: float) -> None:
        library: Any = import_module("distributed")
        self._killed: type[Exception] = library.KilledWorker
        settings = {"distributed.comm.timeouts.connect": f"{wait}s"}
        import_module("dask").config.set(settings if address else settings | OWN_DASK_SETTINGS)
        self._own: Any = None
        if not address:
            self._own = library.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None,
                memory_limit=0, silence_logs=logging.ERROR,
            )  # fmt: skip
        self._client = library.Client(address or self._own, timeout=wait, set_as_default=False)
        self._cancelled: set[str] = set()
        try:
            self._client.wait_for_workers(1, timeout=WAIT_SHARE * wait)
        except TimeoutError:
            raise ClusterError("it has no workers") from None

    def submit(self, call: bytes) -> Any:
        return self._client.submit(call_to_outcome, call, key=f"unbandit-{uuid.uuid4().hex}", pure=False)

    def outcome(self, future: Any) -> bytes:
        try:
            outcome: bytes = future.result()
        except self._killed as error:
            raise LostWorker(str(error)) from None
        except CancelledError:
            if future.key in self._cancelled:
                raise CancelledError from None
            raise LostHead("the connection to it broke") from None
        except (ImportError, AttributeError) as error:
            raise _cannot_start("Dask", str(error).rstrip(".")) from None
        finally:
            future.release()
        return outcome

    def cancel(self, future: Any) -> None:
        self._cancelled.add(future.key)
        future.cancel()  # a call that is running goes on to its end, and nobody waits for it

    def workers(self) -> int:
        if self._client.status != "running":
            raise LostHead("the connection to it broke")
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        return sum(each["nthreads"] for each in workers.values())

    def close(self) -> None:
        self._client.close(timeout=2)
        if self._own is not None:
            self._own.close(timeout=5)


Backend = _Ray | _Dask

BACKENDS: dict[str, type[Backend]] = {"ray": _Ray, "dask": _Dask}
