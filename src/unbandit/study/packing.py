"""A study on its way to other processes: pickled once, and opened once by each process that does some of it.

Who opens it makes sure that it would do the same work: the study as it describes itself there must be the study as it
was described here, with the same code behind it.
"""

from __future__ import annotations

import io
import json
import pickle
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from unbandit.errors import ClusterError
from unbandit.study.changes import changes
from unbandit.study.folder import Folder
from unbandit.study.work import Work

__all__ = ["Packed", "Receipt", "packed", "perform_all"]


@dataclass(frozen=True)
class Packed:
    """Hold a study that travels.

    Attributes
    ----------
    data
        The study, pickled.
    said
        How it describes itself where it comes from, as JSON.
    by_value
        Whether rules of it travel with their code: their file is not looked for at the other end.
    """

    data: bytes
    said: str
    by_value: bool

    def opened(self) -> Work:
        """Return the study, if it is the same one here.

        Raises
        ------
        ClusterError
            If other code than where it comes from would do it.
        """
        return _opened(self)


class Receipt(NamedTuple):
    """Say what a task, or a batch of them, came to."""

    rounds: int
    seconds: float = 0.0


def packed(study: Work) -> Packed:
    """Pack a study; rules and instances of a script go by value, all else by the names of their modules."""
    by_value = any(type(each).__module__ == "__main__" for each in getattr(study, "rules", ()))
    data = io.BytesIO()
    _pickler()(data, protocol=5).dump(study)
    return Packed(data.getvalue(), json.dumps(study.identity, allow_nan=False), by_value)


def perform_all(study: Packed, numbers: Sequence[int], folder: str) -> Receipt:
    """Do some tasks and write their parts; it needs nothing but its arguments, so that it can be done anywhere."""
    began = time.perf_counter()
    opened = study.opened()
    place, rounds = Folder(folder, opened), 0
    for number in numbers:
        task = opened.tasks[number]
        place.write(number, opened.rows(task))
        rounds += task.rounds
    return Receipt(rounds, time.perf_counter() - began)


@lru_cache(maxsize=4)
def _opened(study: Packed) -> Work:
    try:
        work: Work = pickle.loads(study.data)
    except (ImportError, AttributeError) as error:
        raise ClusterError(
            f"{socket.gethostname()}: expected a worker with every module that the study's rules and instances stand "
            f"in; got one without ({error}). Install it on every worker."
        ) from error
    said, here = json.loads(study.said), json.loads(json.dumps(work.describe(), allow_nan=False))
    if study.by_value:
        here["rules"] = said["rules"]
    differing = changes(said, here)
    if differing:
        told = "; ".join(differing).replace("the folder has", "the study has").replace("asked for", "the worker has")
        raise ClusterError(
            f"{socket.gethostname()}: expected a worker with the code that the study was begun with; got another "
            f"({told}). Install the same versions of unbandit and polars on every worker."
        )
    work.__dict__["_said"] = study.said  # so that parts carry the digest that they are looked for with
    work.__dict__.pop("digest", None)
    return work


def _pickler() -> Any:
    """Return what pickles classes of a script too, where it is installed: Ray and Dask bring it."""
    for module in ("cloudpickle", "ray.cloudpickle"):
        with suppress(ImportError):
            return import_module(module).Pickler
    return pickle.Pickler
