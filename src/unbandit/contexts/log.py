"""Logs with contexts: what was offered in each round, with which features, and what was chosen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from unbandit import checks
from unbandit.contexts.table import ALL_OFFERS, LARGEST_FEATURE, NO_CHOICE, ContextParts, Features, collect_contexts
from unbandit.errors import Notice, ParameterError
from unbandit.files import write_table
from unbandit.formatting import counted
from unbandit.log.columns import noun_of, only
from unbandit.log.formats import open_bytes, sources_of
from unbandit.log.frames import FrameSource, is_frame
from unbandit.log.labels import given_arms, numbered
from unbandit.log.rewards import Rewards
from unbandit.log.sources import Arms, Columns, Layout, Paths
from unbandit.tables import Tabular


@dataclass(frozen=True, eq=False, repr=False)
class ContextLog(Tabular):
    """Demonstrations of a learner that chooses by features: offers and choices, and seldom a reward.

    Make one with `read`, `from_bytes` or `from_arrays`.

    Attributes
    ----------
    features
        The features of every offer of every round, one after the other: (offers, features).
    offsets
        Where the offers of each round begin, and the end: those of round `t` are `offsets[t]` to `offsets[t + 1]`.
    chosen
        Which of the offers of its round was chosen, for every round; the first is 0.
    arms
        The label of every arm.
    codes
        The arm (a position in `arms`) that each offer is.
    feature_names
        The name of every feature.
    starts
        The first round of each demonstration, and the end.
    demonstrations
        The name of each demonstration.
    reading
        What the user should know about how the log was read; `notices` has it in words.
    rewards
        The reward of every round, NaN where it is not known; None where none is, as a rule.

    Examples
    --------
    >>> log = ContextLog.from_arrays([[[1.0, 0.2], [0.5, 0.9]], [[0.3, 0.1], [0.8, 0.4]]], chosen=[0, 1])
    >>> log
    <ContextLog: 1 demonstration, 2 rounds, 2 arms, 2 features>
    >>> log.features[log.rows].tolist()
    [[1.0, 0.2], [0.8, 0.4]]
    """

    features: NDArray[np.float64]
    offsets: NDArray[np.int64]
    chosen: NDArray[np.int64]
    arms: tuple[str, ...]
    codes: NDArray[np.int64]
    feature_names: tuple[str, ...]
    starts: NDArray[np.int64]
    demonstrations: Sequence[str] = ("1",)
    reading: tuple[Notice, ...] = ()
    rewards: Rewards | None = None

    def __post_init__(self) -> None:
        for name in ("features", "offsets", "chosen", "codes", "starts", "rewards"):
            array = getattr(self, name)
            if array is not None and array.flags.writeable:
                view = array.view()
                view.setflags(write=False)
                object.__setattr__(self, name, view)

    @classmethod
    def read(
        cls, table: Paths | Any, *, features: Features, columns: Columns = None, arms: Arms = None,
        sheet: str | None = None, header: bool = True,
    ) -> ContextLog:  # fmt: skip
        """Read a file, several as one, or a dataframe of any library; files as `ActionLog.read` does.

        In long form a row is an offer: columns `round`, `arm`, `chosen` (1 for the chosen offer, 0 for the others) and
        the features; the offers may change from round to round. In wide form, without a column `chosen`, a row is a
        round: `arm` is the chosen one and the features are the context that all arms share, for disjoint models.

        Parameters
        ----------
        features
            The columns of features, by name.
        columns
            The column of each role that has an unusual name: ``{"chosen": "shown"}``. `demonstration` and `reward` are
            read when they are there.
        arms
            All arms there were, in order; by default those in the log. In wide form each is offered in every round.

        Examples
        --------
        >>> frame = pl.DataFrame({
        ...     "round": [1, 1, 2, 2], "arm": ["A", "B", "A", "B"], "chosen": [0, 1, 1, 0], "price": [3.0, 2, 2, 4],
        ... })
        >>> ContextLog.read(frame, features=["price"]).chosen.tolist()
        [1, 0]
        >>> wide = pl.DataFrame({"arm": ["A", "B", "A"], "age": [31, 52, 47]})
        >>> ContextLog.read(wide, features=["age"]).features.ravel().tolist()
        [31.0, 31.0, 52.0, 52.0, 47.0, 47.0]
        """
        if not isinstance(table, str | os.PathLike | list | tuple) and is_frame(table):
            return cls(*collect_contexts([FrameSource(table)], features, columns, arms))
        return cls(*collect_contexts(sources_of(table, Layout(sheet, header), unpack=True), features, columns, arms))

    @classmethod
    def from_bytes(
        cls, data: bytes, *, features: Features, name: str = "the log", columns: Columns = None, arms: Arms = None,
        sheet: str | None = None, header: bool = True,
    ) -> ContextLog:  # fmt: skip
        """Read the content of a file, in any format that `read` knows; `name` is only what messages call it."""
        checks.text("name", name)
        source = open_bytes(data, name or "the log", Layout(sheet, header))
        return cls(*collect_contexts([source], features, columns, arms))

    @classmethod
    def from_arrays(
        cls, features: ArrayLike, chosen: ArrayLike, *, offsets: ArrayLike | None = None,
        codes: ArrayLike | None = None, arms: Sequence[object] | None = None,
        feature_names: Sequence[object] | None = None, starts: ArrayLike | None = None,
        demonstrations: Sequence[object] | None = None, rewards: ArrayLike | None = None,
    ) -> ContextLog:  # fmt: skip
        """Make a log from arrays.

        Parameters
        ----------
        features
            (rounds, arms, features) where all arms are offered in every round; (offers, features) with `offsets` where
            the offers change.
        chosen
            The chosen offer of every round, a position among its offers; the first is 0.
        offsets
            Where the offers of each round begin, and the end.
        codes
            The arm that each offer is; by default its position.
        arms
            Names of the arms; by default 0, 1, ...
        feature_names
            Names of the features; by default x1, x2, ...
        demonstrations
            Names of the demonstrations; by default 1, 2, ...
        starts
            The first round of each demonstration, and the end; by default all rounds are one demonstration.
        rewards
            One per round; NaN where it is not known.
        """
        values = checks.numbers("features", features)
        if values.ndim == 3 and offsets is None:
            rounds, offered, size = values.shape
            values, ends = values.reshape(rounds * offered, size), np.arange(rounds + 1) * offered
        elif values.ndim == 2 and offsets is not None:
            ends = _integers("offsets", offsets)
        else:
            text = f"expected an array (rounds, arms, features), or (offers, features) with offsets; got {values.ndim} "
            remedy = "Give offsets with an array of two dimensions only."
            raise ParameterError(f"{text}dimensions.", parameter="features", remedy=remedy)
        if not values.size or not (np.abs(values) <= LARGEST_FEATURE).all():
            text = f"expected finite numbers up to {LARGEST_FEATURE:g}, one or more; got others."
            raise ParameterError(text, parameter="features", remedy="Fill in what is missing.")
        if ends.size < 2 or ends[0] != 0 or ends[-1] != len(values) or (np.diff(ends) < 1).any():
            text = f"expected numbers that rise from 0 to {len(values)}, one offer or more in every round."
            raise ParameterError(text, parameter="offsets")
        lengths = np.diff(ends)
        if (lengths == 1).all():
            parameter = "features" if offsets is None else "offsets"
            raise ParameterError(NO_CHOICE, parameter=parameter, remedy=ALL_OFFERS)
        choices = _integers("chosen", chosen)
        if choices.shape != lengths.shape or (choices < 0).any() or (choices >= lengths).any():
            text = f"expected {lengths.size} positions, each among the offers of its round; got others."
            raise ParameterError(text, parameter="chosen", remedy="The first offer is 0.")
        within = np.arange(len(values)) - np.repeat(ends[:-1], lengths)
        each = within if codes is None else _integers("codes", codes)
        count = max(int(each.max(initial=0)) + 1, 2) if arms is None else len(given_arms(arms))
        names = tuple(map(str, range(count))) if arms is None else given_arms(arms)
        if each.shape != within.shape or (each < 0).any() or (each >= count).any():
            text = f"expected {len(values)} positions of arms, from 0 to {count - 1}; got others."
            raise ParameterError(text, parameter="codes")
        which = np.repeat(np.arange(lengths.size), lengths) * count + each
        if np.unique(which).size < which.size:
            text = "expected each arm once among the offers of a round; one is there twice."
            raise ParameterError(text, parameter="codes", remedy="Give the offers codes of their own.")
        firsts = np.array([0, lengths.size]) if starts is None else _integers("starts", starts)
        if firsts.size < 2 or firsts[0] != 0 or firsts[-1] != lengths.size or (np.diff(firsts) < 1).any():
            text = f"expected numbers that rise from 0 to {lengths.size}, the rounds."
            raise ParameterError(text, parameter="starts")
        known = None
        if rewards is not None:
            known = checks.numbers("rewards", rewards).reshape(-1)
            if known.shape != lengths.shape or np.isinf(known).any():
                text = f"expected {lengths.size} numbers, NaN where one is not known; got others."
                raise ParameterError(text, parameter="rewards")
            known = None if np.isnan(known).all() else known
        usual = [f"x{at + 1}" for at in range(values.shape[1])]
        labels = _names("feature_names", feature_names, usual)
        people = numbered(firsts.size - 1) if demonstrations is None else _names(
            "demonstrations", demonstrations, [""] * (firsts.size - 1)
        )  # fmt: skip
        return cls(*ContextParts(values, ends, choices, names, each, labels, firsts, people, (), known))

    def __len__(self) -> int:
        return len(self.demonstrations)

    def __repr__(self) -> str:
        counts = {"round": self.rounds, "arm": len(self.arms), "feature": len(self.feature_names)}
        what = ", ".join(counted(count, name) for name, count in counts.items())
        return f"<ContextLog: {counted(len(self), noun_of(self.demonstrations))}, {what}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ContextLog):
            return NotImplemented
        names = ("arms", "feature_names")
        if any(getattr(self, name) != getattr(other, name) for name in names):
            return False
        if tuple(self.demonstrations) != tuple(other.demonstrations) or (self.rewards is None) != (
            other.rewards is None
        ):
            return False
        arrays = ("features", "offsets", "chosen", "codes", "starts")
        same = all(np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays)
        return same and (self.rewards is None or np.array_equal(self.rewards, other.rewards, equal_nan=True))  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]

    @property
    def notices(self) -> tuple[str, ...]:
        """Return what the user should know about the reading, in words."""
        return tuple(notice.message for notice in self.reading)

    @property
    def rounds(self) -> int:
        """Return the number of rounds of all demonstrations."""
        return self.chosen.size

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of rounds (`T`) of each demonstration."""
        return np.diff(self.starts)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Return the offer that was chosen in every round: a row of `features`."""
        return np.asarray(self.offsets[:-1] + self.chosen)

    @property
    def actions(self) -> NDArray[np.int64]:
        """Return the arm that was chosen in every round."""
        return np.asarray(self.codes[self.rows])

    @property
    def pulls(self) -> NDArray[np.int64]:
        """Return how often each arm was chosen: (demonstrations, arms)."""
        who = np.repeat(np.arange(len(self)), self.lengths)
        flat = np.bincount(who * len(self.arms) + self.actions, minlength=len(self) * len(self.arms))
        return flat.reshape(len(self), len(self.arms))

    def select(self, which: int, rounds: int | None = None) -> ContextLog:
        """Return one demonstration, or its first rounds, as a log, without copying it.

        Examples
        --------
        >>> log = ContextLog.from_arrays(np.ones((5, 2, 1)), [0, 1, 0, 1, 1], starts=[0, 2, 5])
        >>> log.select(1, rounds=2).chosen.tolist()
        [0, 1]
        """
        if (place := checks.integer(which)) is None or not 0 <= place < len(self):
            text = f"expected a position from 0 to {len(self) - 1}; got {checks.brief(which)}."
            raise ParameterError(text, parameter="demonstration")
        begin, end = int(self.starts[place]), int(self.starts[place + 1])
        end = end if rounds is None else min(end, begin + checks.whole("rounds", rounds, most=2**63 - 1))
        first, last = int(self.offsets[begin]), int(self.offsets[end])
        rewards = None if self.rewards is None else self.rewards[begin:end]
        if rewards is not None and np.isnan(rewards).all():
            rewards = None
        return ContextLog(
            self.features[first:last], self.offsets[begin : end + 1] - first, self.chosen[begin:end], self.arms,
            self.codes[first:last], self.feature_names, np.array([0, end - begin]), only(self.demonstrations, place),
            (), rewards,
        )  # fmt: skip

    def to_frame(self) -> pl.DataFrame:
        """Return a table in long form that `read` understands.

        Examples
        --------
        >>> ContextLog.from_arrays([[[1.0], [2.0]]], [1]).to_frame().rows()
        [(1, '0', 0, 1.0), (1, '1', 1, 2.0)]
        """
        each = np.repeat(np.arange(len(self)), self.lengths)
        rounds = np.repeat(np.arange(1, self.rounds + 1) - self.starts[each], np.diff(self.offsets))
        marks = np.zeros(len(self.features), np.int8)
        marks[self.rows] = 1
        columns = [
            pl.Series("round", rounds),
            pl.Series("arm", self.arms, dtype=pl.String).gather(self.codes),
            pl.Series("chosen", marks),
        ]
        columns += [pl.Series(name, self.features[:, at]) for at, name in enumerate(self.feature_names)]
        if self.rewards is not None:
            known = np.full(len(self.features), np.nan)
            known[self.rows] = self.rewards
            columns.append(pl.Series("reward", known, nan_to_null=True))
        if tuple(self.demonstrations) != ("1",):
            names = pl.Series("demonstration", list(self.demonstrations), dtype=pl.String)
            columns.insert(0, names.gather(np.repeat(each, np.diff(self.offsets))))
        return pl.DataFrame(columns)

    def summary(self) -> pl.DataFrame:
        """Return one row per arm: how often it was offered and chosen, and its average features."""
        arms = np.arange(len(self.arms))
        offered, chosen = (np.bincount(codes, minlength=arms.size) for codes in (self.codes, self.codes[self.rows]))
        columns = [pl.Series("arm", self.arms, dtype=pl.String), pl.Series("offered", offered)]
        columns.append(pl.Series("chosen", chosen))
        for at, name in enumerate(self.feature_names):
            sums = np.bincount(self.codes, weights=self.features[:, at], minlength=arms.size)
            means = np.where(offered > 0, sums / np.maximum(offered, 1), np.nan)
            columns.append(pl.Series(f"mean_{name}", means, nan_to_null=True))
        return pl.DataFrame(columns)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write .csv, .tsv, .parquet, .csv.gz or .tsv.gz, depending on the name, and return the path.

        The file is written completely, or not at all.
        """
        checks.path("path", path)
        return write_table(self.to_frame, path)


def _integers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Check a row of whole numbers."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        text = f"expected whole numbers in a row; got {checks.brief(values)}."
        raise ParameterError(text, parameter=name, value=values)
    return array.astype(np.int64)


def _names(parameter: str, given: Sequence[object] | None, usual: Sequence[str]) -> tuple[str, ...]:
    """Check names, one for each thing, all different."""
    if given is None:
        return tuple(usual)
    names = tuple(str(name).strip() for name in given) if checks.is_list(given) else ()
    if len(names) != len(usual) or len(set(names)) < len(names) or "" in names:
        text = f"expected {len(usual)} different names; got {checks.brief(given)}."
        raise ParameterError(text, parameter=parameter, value=given)
    return names
