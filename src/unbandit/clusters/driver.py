"""The process that knows a cluster: it submits calls, and reports their outcomes.

Messages are pickles. The first one in names the cluster (name, address, workers, seconds to wait); then come
``("submit", number, call)`` and ``("cancel", number)``. Out go ``("loaded",)``, then ``("ready",)`` or ``("refused",
reason)``, then ``("done", number, value)``, ``("failed", number, error)`` or, if workers died, ``("lost", number,
reason)``; ``("workers", count)`` from time to time, and ``("gone", reason)`` if the head is.
The process ends when its input does.
"""

import os
import pickle
import sys
import threading
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from importlib import import_module
from typing import IO, Any

from unbandit.clusters.backends import BACKENDS, LIBRARIES, Backend, LostHead, LostWorker
from unbandit.errors import ClusterError, first_line

SECONDS_BETWEEN_LOOKS = 1.0


class Driver:
    """Passes messages between our caller and a cluster."""

    def __init__(self, output: IO[bytes]) -> None:
        self._output, self._lock, self._closing = output, threading.Lock(), threading.Event()
        self._futures: dict[int, Any] = {}
        self._last_answer = time.monotonic()

    def send(self, *message: Any) -> None:
        """Send a message to our caller, if there still is one."""
        data = pickle.dumps(message, protocol=5)
        with self._lock, suppress(OSError, ValueError):
            self._output.write(data)
            self._output.flush()

    def serve(self, messages: IO[bytes]) -> None:
        """Reach the cluster, and follow messages until they end."""
        name, address, workers, wait = pickle.load(messages)
        try:
            import_module(LIBRARIES[name].module)
            self.send("loaded")
            backend = BACKENDS[name](address, workers, wait)
        except Exception as error:  # each library fails in its own ways to reach a head
            self.send("refused", first_line(error))
            return
        try:
            self.send("workers", backend.workers())
            self.send("ready")
            threading.Thread(target=self._count_workers, args=(backend,), daemon=True).start()
            threading.Thread(target=self._watch_answers, args=(wait,), daemon=True).start()
            with suppress(EOFError):
                while True:
                    kind, number, *rest = pickle.load(messages)
                    if kind == "submit":
                        self._submit(backend, number, rest[0])
                    elif number in self._futures:
                        backend.cancel(self._futures[number])
        finally:
            self._closing.set()
            backend.close()

    def _submit(self, backend: Backend, number: int, call: bytes) -> None:
        try:
            future = backend.submit(call)
        except Exception as error:  # likewise to lose one
            self.send("gone", first_line(error))
            return
        self._futures[number] = future
        future.add_done_callback(lambda future: self._report(backend, number, future))

    def _report(self, backend: Backend, number: int, future: Any) -> None:
        self._futures.pop(number, None)
        try:
            kind, value = pickle.loads(backend.outcome(future))
            self.send(kind, number, value)
        except LostWorker as error:
            self.send("lost", number, first_line(error))
        except LostHead as error:
            self.send("gone", first_line(error))
        except (CancelledError, ClusterError) as error:
            self.send("failed", number, error)
        except Exception as error:  # not the call's own error, which comes as a value
            self.send("failed", number, ClusterError(f"the cluster: {first_line(error)}."))

    def _count_workers(self, backend: Backend) -> None:
        """Report the number of workers from time to time."""
        while not self._closing.wait(SECONDS_BETWEEN_LOOKS):
            try:
                self.send("workers", backend.workers())
                self._last_answer = time.monotonic()
            except Exception as error:  # likewise
                if not self._closing.is_set():
                    self.send("gone", first_line(error))
                return

    def _watch_answers(self, wait: float) -> None:
        """Report that the head is gone when it has not answered for too long: a library may wait for it for ever."""
        while not self._closing.wait(SECONDS_BETWEEN_LOOKS):
            if time.monotonic() - self._last_answer > wait + SECONDS_BETWEEN_LOOKS:
                self.send("gone", f"it has not answered for {wait:g} s")
                return


def main() -> None:
    """Serve on the standard streams; what libraries print goes to the standard error."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    Driver(output).serve(sys.stdin.buffer)


if __name__ == "__main__":
    from unbandit.clusters import driver  # so that its classes pickle under their importable name

    driver.main()
    os._exit(0)  # threads of a library may hang on a head that is gone
