"""Put rows in the order of demonstrations and rounds.

Rounds must be whole numbers without holes from 0 or 1, so a row's place follows from its round by arithmetic:
nothing is sorted, and the places are right exactly when every place is taken once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit.log.coding import Codes
from unbandit.log.table import Table

__all__ = ["grouping", "place_by_round"]

Integers = NDArray[np.int64]


def grouping(demonstration: Codes) -> Integers | None:
    """Return rows grouped by demonstration, in their own order within each; None when they already are.

    Examples
    --------
    >>> grouping(np.array([0, 1, 0])).tolist()
    [0, 2, 1]
    >>> grouping(np.array([0, 0, 1])) is None
    True
    """
    if bool((demonstration[1:] >= demonstration[:-1]).all()):
        return None
    return np.argsort(demonstration, kind="stable")


def place_by_round(
    table: Table, rounds: Integers, name: str, demonstration: Codes | None, offsets: Integers, names: tuple[str, ...]
) -> Integers | None:
    """Return the place of each row; None when the rows already stand in place.

    Parameters
    ----------
    table, name
        Where the rounds stand.
    rounds
        One a row.
    demonstration
        The demonstration of each row; None when there is only one.
    offsets
        Where each demonstration begins, as in `ActionLog`.
    names
        What the demonstrations are called.
    """
    if _stands(rounds, demonstration, offsets):
        return None
    if demonstration is None:
        start = np.array([rounds.min()])
    else:
        start = np.full(len(names), np.iinfo(np.int64).max)
        np.minimum.at(start, demonstration, rounds)
    late = np.flatnonzero((start != 0) & (start != 1))
    if late.size:
        which = int(late[0])
        rows = rounds == start[which] if demonstration is None else (rounds == start[which]) & (demonstration == which)
        value = int(start[which])
        raise table.refuse(
            f"expected rounds from 0 or 1{_of(names, which)}; they begin at {value}, so the opening is missing. "
            "Add the missing rows, or leave the column out if the rows are complete and in order.",
            row=int(np.argmax(rows)) + 1,
            column=name,
            value=value,
        )
    places: Integers
    lengths = np.diff(offsets)
    if demonstration is None:
        inside = rounds - start[0] < lengths[0]
        places = rounds - start[0]
    else:
        inside = rounds - start[demonstration] < lengths[demonstration]
        places = rounds + (offsets[:-1] - start)[demonstration]
    taken = np.zeros(rounds.size, np.bool_)
    taken[places[inside]] = True
    if not (inside.all() and taken.all()):
        _refuse_rounds(table, rounds, name, demonstration, names)
    return places


def _stands(rounds: Integers, demonstration: Codes | None, offsets: Integers) -> bool:
    """Tell whether every demonstration's rows are together and count up from 0 or 1."""
    if demonstration is not None and grouping(demonstration) is not None:
        return False
    starts = offsets[:-1]
    if not np.isin(rounds[starts], (0, 1)).all():
        return False
    steps = rounds[1:] - rounds[:-1] == 1
    steps[starts[1:] - 1] = True
    return bool(steps.all())


def _refuse_rounds(
    table: Table, rounds: Integers, name: str, demonstration: Codes | None, names: tuple[str, ...]
) -> None:
    """Name the first round that stands twice, else the first that is missing."""
    group = np.zeros(rounds.size, np.uint8) if demonstration is None else demonstration
    order = np.lexsort((rounds, group))
    same_group = group[order][1:] == group[order][:-1]
    step = np.diff(rounds[order])
    again = np.flatnonzero(same_group & (step == 0))
    if again.size:
        row = int(order[again + 1].min())
        value = int(rounds[row])
        before = int(np.argmax((rounds == value) & (group == group[row]))) + 1
        raise table.refuse(
            f"expected each round once{_of(names, int(group[row]))}; got {value} again, first in row {before}. "
            "Correct the round, remove the row, or name the demonstrations with --columns demonstration=NAME.",
            row=row + 1,
            column=name,
            value=value,
        )
    hole = int(np.flatnonzero(same_group & (step > 1))[0])
    row, last = int(order[hole + 1]), int(rounds[order[hole]])
    missing = f"{last + 1}" if step[hole] == 2 else f"{last + 1} to {last + int(step[hole]) - 1}"
    raise table.refuse(
        f"expected round {last + 1} after round {last}{_of(names, int(group[row]))}; got {int(rounds[row])}. "
        f"Add the missing rows ({missing}), or leave the column out if the rows are complete and in order.",
        row=row + 1,
        column=name,
        value=int(rounds[row]),
    )


def _of(names: tuple[str, ...], which: int) -> str:
    return f' in demonstration "{names[which]}"' if len(names) > 1 else ""
