"""Choices in memory, and rewards beside them: a sequence, an array with one row per demonstration, or a list."""

import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from unbandit import checks
from unbandit.errors import LogError, ParameterError
from unbandit.log.frames import is_frame, is_missing, series_of
from unbandit.log.labels import Codes, Integers, LabelColumn, listed, numbered, smallest_type
from unbandit.log.reader import Parts, in_order, label_notices, offsets_of
from unbandit.log.rewards import Rewards
from unbandit.log.sources import ROWS, Arms, Batch

_LARGEST = sys.float_info.max


def collect_choices(actions: Any, arms: Arms, rewards: Any = None) -> Parts:
    """Check choices in memory, and the rewards beside them where some are known; see `ActionLog.from_actions`."""
    column = LabelColumn("arm", arms)
    flat, lengths = _flattened(actions)
    if not lengths.all():
        text = f"expected at least one choice in each demonstration; demonstration {lengths.argmin() + 1} has none."
        raise LogError(text, remedy="Leave it out.")
    known = check_rewards(rewards, lengths.tolist())
    offsets, names = offsets_of(lengths), numbered(len(lengths))
    is_integers = isinstance(flat, np.ndarray) and flat.dtype.kind in "iu"
    plain = _plain_arms(flat, column.expected) if is_integers else None
    if plain is not None:
        return Parts(plain, flat, offsets, names, rewards=known)
    values, parts = flat if is_integers else series_of(flat), []
    for at in range(0, len(values), ROWS):
        cells = series_of(values[at : at + ROWS])
        parts.append(column.code(Batch({}, rows_before=at).refuse, cells))
    column.check()
    codes: Codes = np.concatenate(parts, dtype=smallest_type(len(column.coder)), casting="unsafe")
    labels, codes = in_order(column, codes, LogError)
    if is_integers and labels == tuple(map(str, range(len(labels)))):
        codes = flat  # the integers 0 to K - 1 are kept, not copied
    return Parts(labels, codes, offsets, names, label_notices(labels), known)


def _plain_arms(values: Codes, expected: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the labels 0 to K - 1 if integers are quickly seen to be these, each of them pulled or listed."""
    low, high = int(values.min()), int(values.max())
    count = high + 1 if expected is None else len(expected)
    if low < 0 or high >= count or count < 2 or count > ROWS:
        return None
    labels = tuple(map(str, range(count)))
    is_plain = np.unique(values[:ROWS]).size == count if expected is None else expected == labels
    return labels if is_plain else None


def check_rewards(rewards: Any, lengths: Sequence[int]) -> Rewards | None:
    """Take rewards arranged like the choices; None and NaN are rewards not known."""
    if rewards is None:
        return None
    flat, counts = _flattened(rewards, "rewards")
    if counts.tolist() != list(lengths):
        expected, got = (listed(list(map(str, each))) for each in (lengths, counts))
        text = f"expected one for each choice ({expected}); got {got}."
        raise ParameterError(text, parameter="rewards", remedy="Put None where a reward is not known.")
    values = np.asarray(flat)
    if values.dtype.kind not in "fiu" or np.isinf(values).any():
        known = [float("nan") if is_missing(value) else value for value in np.asarray(flat, dtype=object)]
        for value in known:
            is_number = isinstance(value, int | float | Decimal | np.floating | np.integer | np.bool_)
            if not is_number or (value == value and not -_LARGEST <= value <= _LARGEST):
                text = f"expected finite numbers, None where one is not known; got {checks.brief(value)}."
                remedy = "Put None there, or leave all of them out."
                raise ParameterError(text, parameter="rewards", value=value, remedy=remedy)
        values = np.array(known, np.float64)
    return values.astype(np.float64) if np.isfinite(values).any() else None


def _flattened(actions: Any, parameter: str = "actions") -> tuple[Any, Integers]:
    """Lay demonstrations one after the other; return them with their lengths."""
    if not isinstance(actions, np.ndarray | list | tuple | str) and is_frame(actions):
        text = "expected choices; got a dataframe."
        raise ParameterError(text, parameter=parameter, remedy="Use ActionLog.from_frame.")
    if isinstance(actions, np.ndarray):
        if actions.ndim not in (1, 2):
            text = f"expected one sequence, or an array with one row per demonstration; got shape {actions.shape}."
            raise ParameterError(text, parameter=parameter)
        return actions.reshape(-1), np.full(actions.shape[0] if actions.ndim == 2 else 1, actions.shape[-1])
    if hasattr(actions, "dtype") and hasattr(actions, "__len__"):  # a column of a dataframe
        return actions, np.array([len(actions)])
    if isinstance(actions, dict) or not isinstance(actions, Iterable):
        text, remedy = (
            f"expected a sequence of choices; got {type(actions).__name__}.",
            'Write them as ["A", "B", "A"].',
        )
        raise ParameterError(text, parameter=parameter, value=actions, remedy=remedy)
    rows = list(actions)
    nested = [isinstance(row, Sequence | np.ndarray | pl.Series) and not isinstance(row, str | bytes) for row in rows]
    if not any(nested):
        return _as_array(rows), np.array([len(rows)])
    if not all(nested):
        text = "expected either choices or sequences of choices; got both (position "
        text += f"{nested.index(not nested[0]) + 1})."
        raise ParameterError(text, parameter=parameter, remedy="Put single choices in a list of their own.")
    demonstrations = [_as_array(row if isinstance(row, np.ndarray) else list(row)) for row in rows]
    lengths = np.array([len(demonstration) for demonstration in demonstrations])
    if all(isinstance(one, np.ndarray) and one.dtype.kind in "iu" and one.ndim == 1 for one in demonstrations):
        return np.concatenate(demonstrations), lengths
    plain = (one.tolist() if isinstance(one, np.ndarray) else one for one in demonstrations)
    return [label for demonstration in plain for label in demonstration], lengths


def _as_array(labels: Any) -> Any:
    """Pack integers into an array, which is coded faster; leave everything else alone."""
    if isinstance(labels, list) and all(type(label) is int for label in labels):
        try:
            return np.array(labels, dtype=np.int64)
        except OverflowError:
            pass
    return labels
