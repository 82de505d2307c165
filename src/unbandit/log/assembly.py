"""Make a log out of a table: find the columns, check the cells, number the arms, put the rows in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import LogError
from unbandit.log.cells import read_labels, read_whole_numbers
from unbandit.log.coding import Coded, Codes, first_appearances, recoded
from unbandit.log.columns import Refuse, check_roles, find_columns, reward_notices, unread_notice
from unbandit.log.labels import given_arms, is_number, label_of, listed, natural_order, same_but_capitals, typed
from unbandit.log.ordering import grouping, place_by_round
from unbandit.log.rewards import Rewards, known_notice, read_rewards
from unbandit.log.table import Table

__all__ = ["Parts", "assemble", "in_arm_order", "lone_arm", "unknown_arm", "without_point"]

Integers = NDArray[np.int64]


class Parts(NamedTuple):
    """What a log is made of; see `ActionLog`."""

    arms: tuple[str, ...]
    actions: Codes | None
    offsets: Integers
    demonstrations: Sequence[str]
    notices: tuple[str, ...]
    rewards: Rewards | None
    counts: Integers | None


def assemble(table: Table, columns: Mapping[str, str] | None, arms: Sequence[object] | None) -> Parts:
    """Read and check a table.

    Parameters
    ----------
    table
        An opened file or a dataframe.
    columns
        Which column plays which role, where the names do not say it.
    arms
        All arms there were, in order, pulled or not.
    """
    named = check_roles(columns)
    expected = None if arms is None else given_arms(arms)
    found = find_columns(table.names, columns, table.refuse)
    cells = dict(zip(found, table.take(list(found.values())), strict=True))
    name = {role: table.names[at] for role, at in found.items()}
    notices = () if named.get("reward") == "" else reward_notices(table.names, found)
    notices += unread_notice(table.names, found, named)

    arm = read_labels(table, cells["arm"], name["arm"], "arm", expected)
    notices += same_but_capitals(arm.labels)
    demonstration: Codes | None = None
    names: tuple[str, ...] = ("1",)
    if "demonstration" in found:
        coded = read_labels(table, cells["demonstration"], name["demonstration"], "demonstration")
        order = first_appearances(coded.codes, len(coded.labels))
        names = tuple(coded.labels[code] for code in order)
        if len(names) > 1:
            demonstration = _renumbered(coded.codes, order)

    if "pulls" in found:
        pulls = read_whole_numbers(table, cells["pulls"], name["pulls"], "pulls")
        labels, codes = in_arm_order(table, arm, name["arm"], expected)
        counts = _count_table(table, codes, demonstration, pulls, labels, names, name)
        if "reward" in found:
            notices += (f'column "{name["reward"]}" is ignored: a table of counts has no rounds to give rewards to.',)
        return Parts(labels, None, _offsets(counts.sum(axis=1)), names, notices, None, counts)

    lengths = np.array([len(arm.codes)]) if demonstration is None else np.bincount(demonstration)
    offsets = _offsets(lengths)
    if len(names) > 1 and lengths.max() == 1:
        notices += each_row_its_own(name["demonstration"])
    codes, rewards = arm.codes, None
    if "reward" in found:
        rewards = read_rewards(table, cells["reward"], name["reward"], named="reward" in named)
        notices += (known_notice(rewards, name["reward"]),)
    if "round" in found:
        rounds = read_whole_numbers(table, cells["round"], name["round"], "round")
        places = place_by_round(table, rounds, name["round"], demonstration, offsets, names)
        if places is not None:
            codes = np.empty_like(codes)
            codes[places] = arm.codes
            if rewards is not None:
                moved = np.empty_like(rewards)
                moved[places] = rewards
                rewards = moved
    elif demonstration is not None:
        rows = grouping(demonstration)
        codes = codes if rows is None else codes[rows]
        rewards = rewards if rows is None or rewards is None else rewards[rows]
    if codes is not arm.codes and expected is not None:
        in_arm_order(table, arm, name["arm"], expected)  # a refusal must name the row in the file
    labels, codes = in_arm_order(table, Coded(arm.labels, codes), name["arm"], expected)
    return Parts(labels, codes, offsets, names, notices, rewards, None)


def in_arm_order(
    table: Table, coded: Coded, column: str | None, expected: tuple[str, ...] | None
) -> tuple[tuple[str, ...], Codes]:
    """Number the arms as listed by the user, else by value if all are numbers, else as they first appear."""
    if expected is None:
        if all(map(is_number, coded.labels)):
            order = natural_order(coded.labels)
        else:
            order = [coded.labels[code] for code in first_appearances(coded.codes, len(coded.labels))]
        if len(order) < 2:
            raise lone_arm(table.refuse, order[0], column)
    else:
        order = list(expected)
        coded = _matched(table, coded, column, expected)
    place = {label: at for at, label in enumerate(order)}
    places = [place[label] for label in coded.labels]
    return tuple(order), coded.codes if places == list(range(len(places))) else recoded(coded.codes, places)


def _matched(table: Table, coded: Coded, column: str | None, expected: tuple[str, ...]) -> Coded:
    """Check every label against the arms that were listed; "3.0" in a file is the arm 3 of the list."""
    known = set(expected)
    labels = [label if label in known else without_point(label) for label in coded.labels]
    unknown = [code for code, label in enumerate(labels) if label not in known]
    if unknown:
        row = int(np.argmax(np.isin(coded.codes, unknown)))
        raise unknown_arm(table, coded.labels[int(coded.codes[row])], row + 1, column, expected)
    return Coded(labels, coded.codes)


def unknown_arm(table: Table, value: str, row: int, column: str | None, expected: tuple[str, ...]) -> LogError:
    """Make the error that refuses an arm which was not listed."""
    return table.refuse(
        f'expected an arm among {listed(expected, ", ")}; got "{value}". '
        f"Add it with --arms {typed([*expected, value])}.",
        row=row,
        column=column,
        value=value,
    )


def lone_arm(refuse: Refuse, arm: str, column: str | None) -> LogError:
    """Make the error that refuses a log of one arm."""
    return refuse(
        f'expected two arms or more; got only "{arm}". '
        f"List every arm there was, pulled or not, with --arms {typed([arm])},OTHER.",
        column=column,
        value=arm,
    )


def without_point(label: str) -> str:
    """Write a whole number as one: "3.0" as "3"."""
    return label_of(float(label)) if is_number(label) and label.rstrip("0").endswith(".") else label


def each_row_its_own(column: str) -> tuple[str, ...]:
    """Say that the column of demonstrations tells every row apart."""
    return (f'column "{column}" is different in every row: each row is read as a demonstration of its own.',)


def _renumbered(codes: Codes, order: list[int]) -> Codes:
    """Number codes by their place in `order`."""
    if order == list(range(len(order))):
        return codes
    return recoded(codes, np.argsort(order))


def _offsets(lengths: NDArray[np.integer]) -> Integers:
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def _count_table(
    table: Table,
    arm: Codes,
    demonstration: Codes | None,
    pulls: Integers,
    arms: tuple[str, ...],
    names: tuple[str, ...],
    name: Mapping[str, str],
) -> Integers:
    """Lay pulls out as (demonstrations, arms); refuse what no counting gives."""
    if (pulls < 0).any():
        row = int(np.argmax(pulls < 0))
        raise table.refuse(
            f"expected a count of 0 or more for pulls; got {pulls[row]}. Correct it.",
            row=row + 1,
            column=name["pulls"],
            value=int(pulls[row]),
        )
    group = np.zeros(arm.size, np.int64) if demonstration is None else demonstration.astype(np.int64)
    cell = group * len(arms) + arm
    distinct, first = np.unique(cell, return_index=True)
    if distinct.size < cell.size:
        row = int(np.setdiff1d(np.arange(cell.size), first)[0])
        value = arms[int(arm[row])]
        raise table.refuse(
            f'expected each arm once in a table of pulls; got "{value}" again. Add its counts up, '
            "or, if every row is one choice, name the column of rounds with --columns round=NAME.",
            row=row + 1,
            column=name["arm"],
            value=value,
        )
    counts = np.zeros((len(names), len(arms)), np.int64)
    counts.reshape(-1)[cell] = pulls
    if counts.sum(dtype=np.float64) >= 2**62:
        raise table.refuse(
            "expected counts that add up to less than 2^62; got more. Correct them.", column=name["pulls"]
        )
    for which in np.flatnonzero(counts.sum(axis=1) == 0).tolist():
        raise table.refuse(
            "expected at least one pull"
            + (f' in demonstration "{names[which]}"' if len(names) > 1 else "")
            + "; got 0 for every arm. Check that this is the column of counts, or name it with --columns pulls=NAME.",
            column=name["pulls"],
            value=0,
        )
    return counts
