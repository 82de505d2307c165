"""Rounds of a log: rows put in order by them, and rows checked to be in order.

Rounds must be whole numbers without gaps from 0 or 1, so a row's place follows from its round by arithmetic: nothing is
sorted, and the places are right exactly when every place is taken once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import LogError, option
from unbandit.log.labels import Codes, Integers

Refuse = Callable[..., LogError]
Scalar = TypeVar("Scalar", bound=np.generic)


def counts_up(rounds: Integers, starts: Integers) -> bool:
    """Return whether rounds rise by one within each run of rows."""
    steps = rounds[1:] - rounds[:-1] == 1
    steps[starts[1:-1] - 1] = True
    return bool(steps.all())


def runs_follow(firsts: Integers, starts: Integers, who: Integers) -> bool:
    """Return whether runs follow on each other: from 0 or 1 for each demonstration, whose rows are contiguous.

    Parameters
    ----------
    firsts
        The first round of each run.
    starts, who
        Where each run begins, and the end; its demonstration.
    """
    goes_on = who[1:] == who[:-1]
    expected = firsts[:-1] + np.diff(starts)[:-1]
    begins = np.concatenate(([True], ~goes_on))
    return bool(np.isin(firsts[begins], (0, 1)).all() and (firsts[1:] == expected)[goes_on].all())


def places_by_round(
    refuse: Refuse, rounds: Integers, name: str, demonstration: Codes | None, offsets: Integers, names: Sequence[str]
) -> Integers:
    """Return the place of each row in a log; refuse rounds that are missing or occur twice.

    Parameters
    ----------
    refuse, name
        Makes an error that names a row; the column of rounds.
    rounds, demonstration
        Of each row; None when there is only one demonstration.
    offsets, names
        Where each demonstration begins, as in `ActionLog`, and what it is called.
    """
    start = np.full(len(names), rounds.min() if demonstration is None else np.iinfo(np.int64).max)
    if demonstration is not None:
        np.minimum.at(start, demonstration, rounds)
    who = 0 if demonstration is None else demonstration
    late = np.flatnonzero((start != 0) & (start != 1))
    if late.size:
        which, value = int(late[0]), int(start[late[0]])
        raise refuse(
            f"expected rounds from 0 or 1{_of(names, which)}; they begin at {value}, so the opening is missing.",
            row=int(np.argmax((rounds == value) & (who == which))) + 1,
            column=name,
            value=value,
            remedy="Add the missing rows, or leave the column out if the rows are complete and in order.",
        )
    inside = rounds - start[who] < np.diff(offsets)[who]
    places: Integers = rounds + (offsets[:-1] - start)[who]
    taken = np.zeros(rounds.size, np.bool_)
    taken[places[inside]] = True
    if not (inside.all() and taken.all()):
        raise _wrong_rounds(refuse, rounds, name, np.broadcast_to(who, rounds.shape), names)
    return places


def _wrong_rounds(refuse: Refuse, rounds: Integers, name: str, demonstration: Codes, names: Sequence[str]) -> LogError:
    """Name the first round that occurs twice, else the first that is missing."""
    order = np.lexsort((rounds, demonstration))
    same = demonstration[order][1:] == demonstration[order][:-1]
    step = np.diff(rounds[order])
    again = np.flatnonzero(same & (step == 0))
    if again.size:
        row = int(order[again + 1].min())
        value, which = int(rounds[row]), int(demonstration[row])
        before = int(np.argmax((rounds == value) & (demonstration == which))) + 1
        remedy = f"name the demonstrations with {option('columns', {'demonstration': 'NAME'})}."
        return refuse(
            f"expected each round once{_of(names, which)}; got {value} again, first in row {before}.",
            row=row + 1,
            column=name,
            value=value,
            remedy=f"Correct the round, remove the row, or {remedy}",
        )
    gap = int(np.flatnonzero(same & (step > 1))[0])
    row, last = int(order[gap + 1]), int(rounds[order[gap]])
    missing = f"{last + 1}" if step[gap] == 2 else f"{last + 1} to {last + int(step[gap]) - 1}"
    return refuse(
        f"expected round {last + 1} after round {last}{_of(names, int(demonstration[row]))}; got {int(rounds[row])}.",
        row=row + 1,
        column=name,
        value=int(rounds[row]),
        remedy=f"Add the missing rows ({missing}), or leave the column out if the rows are complete and in order.",
    )


class RoundCounter:
    """The rounds of each demonstration so far, for logs whose rows must come in order."""

    def __init__(self, state: Sequence[Sequence[int]] = ((-1,), (0,))) -> None:
        self._begins, self._counted = (np.array(each, np.int64) for each in state)

    def state(self) -> list[list[int]]:
        """Return each demonstration's first round (-1 before it came), and how many followed."""
        return [self._begins.tolist(), self._counted.tolist()]

    def check(
        self, refuse: Refuse, rounds: Integers, name: str, starts: Integers, who: Integers, names: Sequence[str]
    ) -> None:
        """Refuse the next rows if their rounds do not count up from 0 or 1 within each demonstration.

        Parameters
        ----------
        refuse, rounds, name
            Makes an error that names a row; the rounds and their column.
        starts, who
            Where each run of rows begins, and the end; the demonstration of each run.
        names
            Of all demonstrations so far.
        """
        from unbandit.kernels.tally import first_out_of_order

        count = int(who.max()) + 1
        self._begins, self._counted = grown(self._begins, count, -1), grown(self._counted, count)
        wrong = first_out_of_order(rounds, starts, who, self._begins, self._counted)
        if wrong == rounds.size:
            return
        run = int(np.searchsorted(starts, wrong, side="right")) - 1
        which, got = int(who[run]), int(rounds[wrong])
        if self._begins[which] < 0:
            text = f"expected rounds from 0 or 1{_of(names, which)}; they begin at {got}, so the opening is missing"
            text += ", or comes later."
        else:
            last = int(self._begins[which] + self._counted[which]) + wrong - int(starts[run]) - 1
            text = f"expected round {last + 1} after round {last}{_of(names, which)}; got {got}"
            text += ", so rows are missing or out of order."
        raise refuse(
            text,
            row=wrong + 1,
            column=name,
            value=got,
            remedy="A log that is scanned must be in order, also from file to file: sort it, or, if it fits in memory, "
            "read it with ActionLog.read.",
        )


def grown(array: NDArray[Scalar], count: int, fill: int = 0) -> NDArray[Scalar]:
    """Return an array with room for `count` entries; the same one if it has that."""
    if array.shape[0] >= count:
        return array
    larger = np.full(max(count, 2 * array.shape[0]), fill, array.dtype)
    larger[: array.shape[0]] = array
    return larger


def _of(names: Sequence[str], which: int) -> str:
    return f' in demonstration "{names[which]}"' if len(names) > 1 else ""
