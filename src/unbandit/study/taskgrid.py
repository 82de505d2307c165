"""What the engine needs to know about a study of any kind: its tasks, the rows of each, and what identifies it.

The identity, everything that determines the bytes, is in the folder's `study.json`, and its digest in every part.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from unbandit.demonstrators import Demonstrator
from unbandit.kernels.compile import digest_of

if TYPE_CHECKING:
    import polars as pl

TASK_ROUNDS = 20_000_000  # about how many rounds a task simulates
GPU_TASK_ROUNDS = 20_000_000_000  # the same on a GPU, which smaller tasks would leave idle
TASK_ROWS = 300_000  # about how many rows a task yields at most

DECIDING = (
    *("kernels", "demonstrators", "estimators", "tape.py", "instance.py", "result.py", "datasets/registry.py"),
    *("study/taskgrid.py", "study/grid.py", "study/rows.py", "study/monte_carlo.py"),
)
"""The files and folders that decide a study's numbers; instances are described by their own."""


@dataclass(frozen=True)
class Task:
    """A block of a cell's runs."""

    number: int  # its place in the study, from 0
    cell: int  # the cell's place in `study.cells`
    first_run: int
    last_run: int  # not included
    rounds: int  # of all its runs together


def runs_per_task(horizon: int, rows: int, rounds: int = TASK_ROUNDS) -> int:
    """Return how many runs of a cell make a task, given the horizon and the rows of one run."""
    most = TASK_ROWS // rows if rows > 0 else rounds
    return max(1, min(rounds // horizon, most))


class Tasks(Sequence[Task]):
    """The tasks of a study, cell by cell, computed on demand: there can be millions.

    Of each cell are given its horizon and the runs per task; `runs` is one number for all cells, or one per cell.
    """

    def __init__(self, cells: Iterable[tuple[int, int]], runs: int | Sequence[int]) -> None:
        self._cells = list(cells)
        self._runs = [runs] * len(self._cells) if isinstance(runs, int) else list(runs)
        counts = (-(-cell_runs // size) for cell_runs, (_, size) in zip(self._runs, self._cells, strict=True))
        self._first_numbers = list(accumulate(counts, initial=0))

    def __len__(self) -> int:
        return self._first_numbers[-1]

    @overload
    def __getitem__(self, number: int) -> Task: ...
    @overload
    def __getitem__(self, number: slice) -> list[Task]: ...
    def __getitem__(self, number: int | slice) -> Task | list[Task]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        cell = bisect_right(self._first_numbers, number) - 1
        horizon, size = self._cells[cell]
        first = (number - self._first_numbers[cell]) * size
        last = min(first + size, self._runs[cell])
        return Task(number, cell, first, last, (last - first) * horizon)


class TaskGrid(ABC):
    """Work that is done task by task; grids with the same identity are equal.

    A task may be done in another process: a grid pickles, and the rows of a task depend on grid and task alone.
    """

    @property
    @abstractmethod
    def tasks(self) -> Sequence[Task]:
        """Return the tasks, which depend on the description alone."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Return the rounds of all tasks together: the unit of progress."""

    def cost(self, task: Task) -> int:
        """Return about how long a task takes, in any unit that grids which run together share; by default rounds."""
        return task.rounds

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return everything that determines the bytes, as plain values; `schema` is one of its keys."""

    def check(self) -> None:
        """Refuse work that this machine cannot do; by default nothing is refused."""
        return

    @abstractmethod
    def rows(self, task: Task) -> pl.DataFrame:
        """Do a task and return its rows."""

    @cached_property
    def _identity_json(self) -> str:
        return json.dumps(self.describe(), allow_nan=False)

    @property
    def identity(self) -> dict[str, Any]:
        """Return everything that determines the bytes, as plain values: a copy to keep."""
        identity: dict[str, Any] = json.loads(self._identity_json)
        return identity

    @cached_property
    def digest(self) -> str:
        """Return a digest of the identity, which every part carries."""
        return hashlib.sha256(self._identity_json.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self._identity_json == other._identity_json if isinstance(other, TaskGrid) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity_json)


@cache
def code(*deciding: str) -> str:
    """Return a digest of the sources (by default `DECIDING`) that decide a study's numbers: edited code never mixes."""
    home = Path(__file__).parents[1]
    places = [home / name for name in deciding or DECIDING]
    files = [file for place in places for file in (sorted(place.rglob("*")) if place.is_dir() else [place])]
    sources = [file for file in files if file.suffix in {".py", ".npy"}]
    return digest_of(*sources, text="\n".join(file.relative_to(home).as_posix() for file in sources))


def describe_rule(rule: Demonstrator) -> str:
    """Return a rule's text and, for a rule from outside this package, a digest of the file that defines it."""
    if type(rule).__module__.split(".")[0] == __name__.split(".")[0]:
        return str(rule)
    try:
        file = Path(inspect.getfile(type(rule)))
    except (TypeError, OSError):  # defined in an interactive shell: there is no file
        return str(rule)
    return f"{rule} (source {digest_of(file)})" if file.is_file() else str(rule)


def differences(
    before: Mapping[str, Any], now: Mapping[str, Any], sides: tuple[str, str] = ("the folder has", "asked for")
) -> list[str]:
    """Return one phrase per difference between two identities; `sides` introduces the values of each."""
    phrases = []
    for key in [*now, *(key for key in before if key not in now)]:
        old, new = before.get(key), now.get(key)
        if old == new:
            continue
        if key == "code":
            if before.get("version") == now.get("version"):  # another version has other code anyway
                phrases.append("made by other code than this version's")
        elif isinstance(old, list) and isinstance(new, list):
            phrases.append(f"{key}: {_list_difference(old, new, sides)}")
        elif isinstance(old, dict) and isinstance(new, dict):
            phrases += [f"{key}, {phrase}" for phrase in differences(old, new, sides)]
        else:
            phrases.append(f"{key}: {sides[0]} {_brief(old)}, {sides[1]} {_brief(new)}")
    return phrases


def _list_difference(before: list[Any], now: list[Any], sides: tuple[str, str]) -> str:
    """Describe two lists by the entries that only one of them has."""
    gone, new = [each for each in before if each not in now], [each for each in now if each not in before]
    if not gone and not new:
        return f"{sides[0]} them in another order"
    named = all(isinstance(each, dict) for each in gone + new)
    if named and [_brief(each) for each in gone] == [_brief(each) for each in new]:  # same names, other contents
        pairs = list(zip(gone, new, strict=True))
        keys = dict.fromkeys(key for table in gone + new for key in table)
        changed = [key for key in keys if any(one.get(key) != other.get(key) for one, other in pairs)]
        return f"{sides[0]} {_brief_list(gone)} with other {', '.join(changed)}"
    return f"{sides[0]} {_brief_list(gone)}, {sides[1]} {_brief_list(new)}"


def _brief_list(values: list[Any]) -> str:
    listed = ", ".join(_brief(value) for value in values[:4]) or "no other"
    return listed + (f" and {len(values) - 4} more" if len(values) > 4 else "")


def _brief(value: Any) -> str:
    if value is None:
        return "none"
    return str(value.get("name", "another") if isinstance(value, dict) else value)


def readable_json(value: Any, indent: str = "") -> str:
    """Write JSON with one key per line and lists of plain values on one line, which `json.dumps` cannot do."""
    inner = indent + "  "
    if isinstance(value, Mapping) and value:
        lines = [f"{inner}{json.dumps(key)}: {readable_json(part, inner)}" for key, part in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(part, list | Mapping) for part in value):
        return "[\n" + ",\n".join(inner + readable_json(part, inner) for part in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
