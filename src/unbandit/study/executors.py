"""Who does a study's tasks: threads of ours, a cluster by its name, or anything that can `submit`."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from unbandit.clusters import WAIT, Cluster
from unbandit.demonstrators.base import whole
from unbandit.errors import ParameterError
from unbandit.study.folder import Folder

__all__ = ["WAIT", "Cluster", "Submits", "check_reach", "chosen"]


class Submits(Protocol):
    """Stand for any executor."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Start a call somewhere, and return its future."""


def chosen(
    executor: Submits | str | None, *, address: str | None = None, wait: float = WAIT, threads: int | None = None
) -> int | Cluster | Submits:
    """Return how many threads, which cluster (not yet reached), or which executor of the caller's does the tasks.

    Examples
    --------
    >>> chosen(None, threads=3), chosen("threads", threads=2)
    (3, 2)
    >>> chosen("spark")
    Traceback (most recent call last):
    ...
    unbandit.errors.ParameterError: executor: expected one of threads, ray, dask; got "spark".
    """
    workers = None if threads is None else whole("threads", threads)
    if executor is None or executor == "threads":
        if address is not None:
            raise ParameterError(
                f'threads are of this machine; got "{address}". Name an executor: ray, dask.', parameter="address"
            )
        return workers or os.cpu_count() or 1
    if isinstance(executor, str):
        return Cluster(executor, address, workers, wait)
    if workers is not None:
        raise ParameterError("an executor has workers of its own; leave threads or executor out.", parameter="threads")
    if address is not None:
        raise ParameterError(
            "an executor has one of its own; leave address out, or name the executor.", parameter="address"
        )
    return executor


def check_reach(hands: int | Cluster | Submits, place: Folder) -> None:
    """Refuse a folder that the processes of a cluster cannot see."""
    if isinstance(hands, Cluster) and getattr(place.storage, "only_here", False):
        raise ParameterError(
            f"{place.path}: expected a folder that the workers of a cluster see; got one in the memory of this "
            "process. Take a folder on shared or object storage."
        )
