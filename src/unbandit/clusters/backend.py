"""What the driver needs of a cluster."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Backend", "HeadGone"]


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
