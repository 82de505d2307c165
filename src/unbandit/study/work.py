"""What the engine needs of a study, of whatever kind: tasks, the rows of each, and all that determines them.

A study of any kind is a `Work`. It can then be kept in a folder, stopped at any moment, taken up again, and done by any
executor (`running`), with no line of its own for any of that.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from unbandit.study.tasks import Task

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Work"]


class Work(ABC):
    """Hold work that is done task by task; works that are described alike are equal.

    Whoever does a task may sit in another process: a work pickles, and a task's rows depend on the two alone.
    """

    @property
    @abstractmethod
    def tasks(self) -> Sequence[Task]:
        """Return the tasks, which depend on the description alone."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Return how many rounds all tasks have together: what progress is counted in."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return all that determines the bytes, as plain values; among them its `schema`."""

    def check(self) -> None:
        """Refuse work that cannot be done on this machine; nothing is refused by default."""
        return

    @abstractmethod
    def rows(self, task: Task) -> pl.DataFrame:
        """Do a task and return its rows."""

    @cached_property
    def _said(self) -> str:
        return json.dumps(self.describe(), allow_nan=False)

    @property
    def identity(self) -> dict[str, Any]:
        """Return all that determines the bytes, as plain values: a copy to keep."""
        said: dict[str, Any] = json.loads(self._said)
        return said

    @cached_property
    def digest(self) -> str:
        """Return a digest of the identity, which every part carries."""
        return hashlib.sha256(self._said.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self._said == other._said if isinstance(other, Work) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._said)
