"""The process that knows a cluster: it is told what to submit, and tells what came of it.

Messages are pickles. In come first who is meant (name, address, workers, seconds to wait), then ``("submit", number,
call)`` and ``("cancel", number)``; out go ``("loaded",)``, ``("ready",)`` or ``("refused", reason)``, then ``("done",
number, value)``, ``("failed", number, error)``, ``("lost", number, reason)`` if a worker died, ``("workers", count)``
from time to time, and ``("gone", reason)`` if the head is. When nothing more comes in, it ends.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from importlib import import_module
from typing import IO, Any

from unbandit.clusters.backends import Backend, HeadGone, OnDask, OnRay
from unbandit.clusters.cluster import NAMES, LostWorker
from unbandit.errors import ClusterError

__all__ = ["Driver", "main"]

BEAT = 1.0
"""Seconds between two looks at the cluster."""


class Driver:
    """Pass on messages between whoever started us and a cluster."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out, self._lock, self._over = out, threading.Lock(), threading.Event()
        self._futures: dict[int, Any] = {}
        self._seen = time.monotonic()

    def tell(self, *message: Any) -> None:
        """Say something to whoever started us; if nobody is there any more, it does not matter."""
        data = pickle.dumps(message, protocol=5)
        with self._lock, suppress(OSError, ValueError):
            self._out.write(data)
            self._out.flush()

    def serve(self, into: IO[bytes]) -> None:
        """Find the cluster, and do as told until nothing more comes."""
        name, address, workers, wait = pickle.load(into)
        try:
            import_module(NAMES[name][1])
            self.tell("loaded")
            backend: Backend = (OnRay if name == "ray" else OnDask)(address, workers, wait)
        except Exception as error:  # libraries fail in their own ways to find a head; all are told the same
            self.tell("refused", _line(error))
            return
        try:
            self.tell("workers", backend.workers())
            self.tell("ready")
            for watching in (self._look, self._watch):
                threading.Thread(target=watching, args=(backend, wait), daemon=True).start()
            with suppress(EOFError):
                while True:
                    kind, number, *rest = pickle.load(into)
                    if kind == "submit":
                        self._submit(backend, number, rest[0])
                    elif number in self._futures:
                        backend.cancel(self._futures[number])
        finally:
            self._over.set()
            backend.close()

    def _submit(self, backend: Backend, number: int, call: bytes) -> None:
        try:
            future = backend.submit(call)
        except Exception as error:  # likewise to lose one
            self.tell("gone", _line(error))
            return
        self._futures[number] = future
        future.add_done_callback(lambda future: self._ended(backend, number, future))

    def _ended(self, backend: Backend, number: int, future: Any) -> None:
        self._futures.pop(number, None)
        try:
            kind, value = pickle.loads(backend.outcome(future))
            self.tell(kind, number, value)
        except LostWorker as error:
            self.tell("lost", number, _line(error))
        except HeadGone as error:
            self.tell("gone", _line(error))
        except CancelledError:
            self.tell("failed", number, CancelledError())
        except ClusterError as error:
            self.tell("failed", number, error)
        except Exception as error:  # not the task's own error, which comes as a result
            self.tell("failed", number, ClusterError(f"the cluster: {_line(error)}."))

    def _look(self, backend: Backend, wait: float) -> None:
        """Tell how many workers there are, again and again."""
        while not self._over.wait(BEAT):
            try:
                self.tell("workers", backend.workers())
                self._seen = time.monotonic()
            except Exception as error:
                if not self._over.is_set():
                    self.tell("gone", _line(error))
                return

    def _watch(self, backend: Backend, wait: float) -> None:
        """Tell that the head is gone when it has not answered for so long."""
        while not self._over.wait(BEAT):
            if time.monotonic() - self._seen > wait + BEAT:
                self.tell("gone", f"it has not answered for {wait:g} s")
                return


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0][:200].rstrip(".")


def main() -> None:
    """Serve on the standard streams; what libraries print goes to the standard error."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    Driver(out).serve(sys.stdin.buffer)


if __name__ == "__main__":
    from unbandit.clusters import driver  # its classes have one name, whoever imports them

    driver.main()
    os._exit(0)  # threads of a library may hang on a head that is gone
