"""A study's work cut into tasks: blocks of runs whose size depends on the grid alone.

Say in a few words how one study differs from another.

What a study is, in words and numbers: all that determines its bytes.

What the engine needs of a study, of whatever kind: tasks, the rows of each, and all that determines them.

A study of any kind is a `Work`. It can then be kept in a folder, stopped at any moment, taken up again, and done by any
executor (`running`), with no line of its own for any of that.
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

import polars as pl

from unbandit.demonstrators import Demonstrator
from unbandit.kernels.compile import digest_of

if TYPE_CHECKING:
    import polars as pl

ROUNDS = 20_000_000
"""About how many rounds a task simulates."""


GPU_ROUNDS = 20_000_000_000
"""The same on a GPU, which is not busy with less."""


ROWS = 300_000
"""About how many rows a task yields at most."""


@dataclass(frozen=True)
class Task:
    """Name a block of a cell's runs.

    Parameters
    ----------
    number
        The task's place in the study, from 0.
    cell
        The cell's place in `study.cells`.
    first_run, last_run
        The runs from `first_run` up to, and without, `last_run`.
    rounds
        How many rounds those runs have together.
    """

    number: int
    cell: int
    first_run: int
    last_run: int
    rounds: int


def block(horizon: int, rows: int, rounds: int = ROUNDS) -> int:
    """Return how many runs of a cell make a task: of so many rounds, and so many rows, each.

    Examples
    --------
    >>> block(horizon=5_000, rows=2), block(horizon=70_000, rows=224), block(horizon=10**9, rows=12_979)
    (4000, 285, 1)
    """
    most = ROWS // rows if rows > 0 else rounds
    return max(1, min(rounds // horizon, most))


class Tasks(Sequence[Task]):
    """List a study's tasks, cell by cell, without holding them: there can be millions.

    Parameters
    ----------
    cells
        Horizon and runs a task of each cell.
    runs
        Of each cell: one number, or one for each.

    Examples
    --------
    >>> tasks = Tasks([(100, 4), (200, 10)], runs=10)
    >>> [(task.cell, task.first_run, task.last_run) for task in tasks]
    [(0, 0, 4), (0, 4, 8), (0, 8, 10), (1, 0, 10)]
    """

    def __init__(self, cells: Iterable[tuple[int, int]], runs: int | Sequence[int]) -> None:
        self._cells = list(cells)
        self._runs = [runs] * len(self._cells) if isinstance(runs, int) else list(runs)
        counts = (-(-of_cell // size) for of_cell, (_, size) in zip(self._runs, self._cells, strict=True))
        self._firsts = list(accumulate(counts, initial=0))

    def __len__(self) -> int:
        return self._firsts[-1]

    @overload
    def __getitem__(self, number: int) -> Task: ...
    @overload
    def __getitem__(self, number: slice) -> list[Task]: ...
    def __getitem__(self, number: int | slice) -> Task | list[Task]:
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        at = range(len(self))[number]
        cell = bisect_right(self._firsts, at) - 1
        horizon, size = self._cells[cell]
        first = (at - self._firsts[cell]) * size
        last = min(first + size, self._runs[cell])
        return Task(at, cell, first, last, (last - first) * horizon)


def changes(had: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """Return one phrase for each thing in which the study asked for is not the one that the folder has.

    Examples
    --------
    >>> changes({"runs": 100, "horizons": [10, 20]}, {"runs": 200, "horizons": [10, 30, 40]})
    ['runs: the folder has 100, asked for 200', 'horizons: the folder has 20, asked for 30, 40']
    """
    said = []
    for key in [*asked, *(key for key in had if key not in asked)]:
        before, now = had.get(key), asked.get(key)
        if before == now:
            continue
        if key == "code":
            if had.get("version") == asked.get("version"):  # another version has other code, of course
                said.append("made by other code than this version's")
        elif isinstance(before, list) and isinstance(now, list):
            said.append(f"{key}: {_lists(before, now)}")
        elif isinstance(before, dict) and isinstance(now, dict):
            said += [f"{key}, {phrase}" for phrase in changes(before, now)]
        else:
            said.append(f"{key}: the folder has {_shown(before)}, asked for {_shown(now)}")
    return said


def _lists(before: list[Any], now: list[Any]) -> str:
    """Tell two lists apart by what only one of them holds."""
    gone, new = [each for each in before if each not in now], [each for each in now if each not in before]
    if not gone and not new:
        return "the folder has them in another order"
    named = all(isinstance(each, dict) for each in gone + new)
    if named and [_shown(each) for each in gone] == [_shown(each) for each in new]:  # same names, other contents
        pairs = list(zip(gone, new, strict=True))
        keys = [key for key in _keys(gone + new) if any(one.get(key) != other.get(key) for one, other in pairs)]
        return f"the folder has {_listed(gone)} with other {', '.join(keys)}"
    return f"the folder has {_listed(gone)}, asked for {_listed(new)}"


def _keys(tables: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for table in tables for key in table))


def _listed(values: list[Any]) -> str:
    shown = ", ".join(_shown(value) for value in values[:4]) or "no other"
    return shown + (f" and {len(values) - 4} more" if len(values) > 4 else "")


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        return str(value.get("name", "another"))
    return str(value)


DECIDING = (
    *("kernels", "demonstrators", "estimators", "tape.py", "instance.py", "result.py", "datasets/registry.py"),
    *("study/taskgrid.py", "study/grid.py", "study/rows.py"),
)
"""The files, and folders of files, that decide a study's numbers; instances are described by their own."""


@cache
def code(*deciding: str) -> str:
    """Return a digest of the sources that decide a study's numbers: parts of edited code must not be mixed.

    A study of another kind names the files, and folders of files, that decide its own.

    Examples
    --------
    >>> len(code())
    12
    """
    home = Path(__file__).parents[1]
    places = [home / name for name in deciding or DECIDING]
    files = [file for place in places for file in (sorted(place.rglob("*")) if place.is_dir() else [place])]
    sources = [file for file in files if file.suffix in {".py", ".npy"}]
    return digest_of(*sources, text="\n".join(file.relative_to(home).as_posix() for file in sources))


def rule_described(rule: Demonstrator) -> str:
    """Describe a rule: its text and, for one from outside this package, a digest of the file that it stands in.

    Examples
    --------
    >>> from unbandit import UCB
    >>> rule_described(UCB(alpha=0.5, scale=1.0))
    'ucb:alpha=0.5,scale=1.0'
    """
    if type(rule).__module__.split(".")[0] == __name__.split(".")[0]:
        return str(rule)
    try:
        file = Path(inspect.getfile(type(rule)))
    except (TypeError, OSError):  # made in a shell: there is no file
        return str(rule)
    return f"{rule} (source {digest_of(file)})" if file.is_file() else str(rule)


def pretty(value: Any, indent: str = "") -> str:
    """Write JSON for people: a key a line, and lists of plain values in one line.

    Examples
    --------
    >>> print(pretty({"runs": 2, "horizons": [10, 20]}))
    {
      "runs": 2,
      "horizons": [10, 20]
    }
    """
    inner = indent + "  "
    if isinstance(value, Mapping) and value:
        lines = [f"{inner}{json.dumps(key)}: {pretty(part, inner)}" for key, part in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(part, list | Mapping) for part in value):
        return "[\n" + ",\n".join(inner + pretty(part, inner) for part in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


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
