"""Make a log out of choices in memory: one sequence, an array with one row a demonstration, or sequences in a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.errors import LogError, ParameterError
from unbandit.log.assembly import Parts, in_arm_order
from unbandit.log.cells import read_labels
from unbandit.log.coding import Coded, code_integers
from unbandit.log.frames import is_frame, series_of
from unbandit.log.labels import given_arms
from unbandit.log.rewards import check_rewards
from unbandit.log.table import ColumnTable
from unbandit.sequences import numbered

__all__ = ["from_sequences"]


def from_sequences(actions: Any, arms: Sequence[object] | None, rewards: Any = None) -> Parts:
    """Read and check choices in memory, and the rewards beside them where some are known."""
    expected = None if arms is None else given_arms(arms)
    flat, lengths = _flattened(actions)
    if not lengths.all():
        raise LogError(
            f"expected at least one choice in each demonstration; demonstration {lengths.argmin() + 1} has none. "
            "Leave it out."
        )
    table = ColumnTable(pl.Series([], dtype=pl.String))
    if isinstance(flat, np.ndarray) and flat.dtype.kind in "iu":
        coded = _as_listed(flat, expected) or code_integers(flat)
    else:
        coded = read_labels(table, series_of(flat), "arm", "arm", expected)
    labels, codes = in_arm_order(table, coded, None, expected)
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    known = None if rewards is None else check_rewards(rewards, lengths.tolist())
    return Parts(labels, codes, offsets, numbered(len(lengths)), (), known, None)


def _as_listed(values: NDArray[np.integer[Any]], expected: tuple[str, ...] | None) -> Coded | None:
    """Take integers for codes when the listed arms are 0, 1, 2, ..."""
    if expected is None or expected != tuple(map(str, range(len(expected)))):
        return None
    inside = int(values.min()) >= 0 and int(values.max()) < len(expected)
    return Coded(list(expected), values) if inside else None


def _flattened(actions: Any) -> tuple[Any, NDArray[np.int64]]:
    """Lay demonstrations one after the other; return them with their lengths."""
    if not isinstance(actions, np.ndarray | list | tuple | str) and is_frame(actions):
        raise ParameterError("expected choices; got a dataframe. Use ActionLog.from_frame.", parameter="actions")
    if isinstance(actions, np.ndarray):
        if actions.ndim not in (1, 2):
            raise ParameterError(
                f"expected one sequence, or an array with one row a demonstration; got shape {actions.shape}.",
                parameter="actions",
            )
        return actions.reshape(-1), np.full(actions.shape[0] if actions.ndim == 2 else 1, actions.shape[-1])
    if hasattr(actions, "dtype"):  # a column of a dataframe
        return actions, np.array([len(actions)])
    if isinstance(actions, dict) or not isinstance(actions, Iterable):
        raise ParameterError(f"expected a sequence of choices; got {type(actions).__name__}.", parameter="actions")
    rows = list(actions)
    nested = [_is_sequence(row) for row in rows]
    if not any(nested):
        return _as_array(rows), np.array([len(rows)])
    if not all(nested):
        raise ParameterError(
            "expected either choices or sequences of choices; "
            f"got both (position {nested.index(not nested[0]) + 1}). Put single choices in a list of their own.",
            parameter="actions",
        )
    demonstrations = [_as_array(row if isinstance(row, np.ndarray) else list(row)) for row in rows]
    lengths = np.array([len(demonstration) for demonstration in demonstrations])
    if all(isinstance(one, np.ndarray) and one.dtype.kind in "iu" and one.ndim == 1 for one in demonstrations):
        return np.concatenate(demonstrations), lengths
    return [label for demonstration in demonstrations for label in _plain(demonstration)], lengths


def _as_array(labels: Any) -> Any:
    """Pack integers into an array, which is coded faster; leave everything else alone."""
    if isinstance(labels, list) and all(type(label) is int for label in labels):
        try:
            return np.array(labels, dtype=np.int64)
        except OverflowError:
            pass
    return labels


def _plain(labels: Any) -> list[Any]:
    plain: list[Any] = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    return plain


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence | np.ndarray | pl.Series) and not isinstance(value, str | bytes)
