"""Logs that still grow: what closed forms read of them is carried on, and the rounds are dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unbandit.errors import LogError, Notice, ParameterError, UnbanditError
from unbandit.formatting import counted
from unbandit.log.frames import series_of
from unbandit.log.labels import Integers, LabelColumn, checked_label, is_number
from unbandit.log.reader import Rows, arm_order
from unbandit.log.scan import grown, order_of_appearance
from unbandit.log.snapshot import COUNTS, LOOK_PAIRS, LOOK_ROWS, MARKS, PAIRS, RING
from unbandit.log.sources import Arms
from unbandit.log.tallies import LOOKS, LookRule, Need, Tallies, broken_rounds

MOST_ARMS = 2_000  # the switching round of every arm against every other is kept: four million pairs
MOST_BYTES = 2**30  # of the pairs of all demonstrations together, and of rounds whose rewards are not known yet


class GrowingLog:
    """What closed forms read of demonstrations so far, to which further rounds are added.

    `arms` are all there can be, in order; by default those pulled so far, by value if all are numbers, else as they
    appear. `need` says how much is carried on: `counts`, `switching` (the switching round of every arm against every
    other, since the most-pulled one may change: so at most 2,000 arms) or `epochs`, for rules that eliminate. With
    `looks`, also what an index rule whose rewards are late knew at its decisions.

    >>> log = GrowingLog()
    >>> log.update(["B", "A", "A"])
    >>> log.update(["B", "A"])
    >>> log.arms, log.pulls.tolist(), log.tallied("switching").of_best.tolist()
    (('B', 'A'), [[2, 3]], [[2, 0]])
    """

    rewards = None
    ordered = True
    notices: tuple[str, ...] = ()
    reading: tuple[Notice, ...] = ()

    def __init__(self, arms: Arms = None, *, need: Need = "switching", looks: LookRule | None = None) -> None:
        self.need: Need = need
        self.look_rule = looks
        self.arm_column, self.demonstration_column = LabelColumn("arm", arms), LabelColumn("demonstration")
        self.expected = self.arm_column.expected
        self._lengths = np.zeros(0, np.int64)
        self._grids = {name: np.zeros((0, 0), np.int64) for name in COUNTS}
        if need == "switching":
            self._grids |= {name: np.zeros((0, 0, 0), np.int64) for name in PAIRS}
        elif need == "epochs":
            self._grids |= {name: np.zeros((0, 0), np.int64) for name in RING} | {
                "marks": np.zeros((0, MARKS), np.int64)
            }
        if looks is not None:
            looks.check_fixed()
            self._grids |= {name: np.zeros((0, 0), np.int64) for name in LOOK_ROWS}
            self._grids |= {name: np.zeros((0, 0, 0), np.int64) for name in LOOK_PAIRS}
            self._grids["recent"] = np.zeros((0, looks.memory), np.int64)
        self._count = self._known_arms = 0
        self._order: Integers | None = None

    def update(self, actions: Any, demonstration: object = None) -> None:
        """Take the next rounds of one demonstration, which is named where there are several.

        Integers are positions in the arms where these were given and have no number among their names.
        """
        column = series_of(actions)
        if not len(column):
            return
        name = "1" if demonstration is None else checked_label(demonstration, ParameterError, parameter="demonstration")
        if self.expected is not None and column.dtype.is_integer() and not any(map(is_number, self.expected)):
            codes = column.to_numpy()
            outside = np.flatnonzero((codes < 0) | (codes >= len(self.expected)))
            if outside.size:
                text = f"expected names of arms, or positions from 0 to {len(self.expected) - 1}; got "
                text += f"{codes[outside[0]]} in place {outside[0] + 1}."
                raise ParameterError(text, parameter="actions")
            column = series_of([self.expected[code] for code in codes.tolist()])
        arms, names = self.arm_column.coder, self.demonstration_column.coder
        known = len(arms), len(names)
        try:
            codes = self.arm_column.code(LogError, column)
            self.add(Rows(codes, np.array([0, codes.size]), np.array([names.add(name)])))
        except UnbanditError:  # what is refused leaves nothing behind
            self.arm_column.forget(known[0])
            self.demonstration_column.forget(known[1])
            raise

    def add(self, rows: Rows) -> None:
        """Take rounds of several demonstrations, coded by this log's own columns."""
        from unbandit.kernels import tally

        self._fit(max(len(self.demonstration_column.coder), int(rows.who.max()) + 1))
        counts = [self._grids[name] for name in COUNTS]
        if self.look_rule is not None:
            self._look(rows, self.look_rule)
        if self.need == "switching":
            tally.switching_of_runs(*rows, self._lengths, *counts, *(self._grids[name] for name in PAIRS))
        else:
            if self.need == "epochs":
                ring = [self._grids[name] for name in (*RING, "marks")]
                tally.epochs_of_runs(*rows, self._lengths.copy(), *ring)
            tally.count_runs(*rows, self._lengths, *counts)
        self._order = None

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        held = f"{counted(len(self), 'demonstration')}, {len(self.arm_column.coder):,} arms"
        return f"<GrowingLog: {held}, {self.lengths.sum():,} rounds so far>"

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the label of every arm so far."""
        labels = self.arm_column.coder.labels
        return tuple(labels[code] for code in self._ordered())

    @property
    def demonstrations(self) -> tuple[str, ...]:
        """Return the name of each demonstration."""
        return tuple(self.demonstration_column.coder.labels) or ("1",)

    @property
    def lengths(self) -> Integers:
        """Return the number of rounds of each so far."""
        return self._lengths[: self._count].copy()

    @property
    def pulls(self) -> Integers:
        """Return how often each arm was pulled so far: (demonstrations, arms)."""
        return self._grids["pulls"][: self._count, self._ordered()]

    def _look(self, rows: Rows, rule: LookRule) -> None:
        """Carry on what was known at the last decisions; see `kernels.looks.pairs_of_looks`."""
        from unbandit.kernels.looks import pairs_of_looks

        names = ("recent", "known", "turn", "turn_round", "own_known", "other_known", "decided", "ended", "end_round")
        state = (self._grids[name] for name in names)
        last = self._grids["last"].copy()
        pairs_of_looks(*rows, self._lengths.copy(), *rule.among(len(self.arm_column.coder)), last, *state)

    def tallied(self, need: Need) -> Tallies:
        """Return what closed forms need of the rounds so far; see `ActionLog.tallied`."""
        if need not in ("counts", self.need):
            text = f"expected counts or {self.need}, which are carried on here; got {need}. Make the log with "
            raise ParameterError(f"{text}need={need!r}.", parameter="need")
        order, (_, grids) = self._ordered(), self.state()
        pulls, first, last = (grids[name][:, order] for name in COUNTS)
        if need == "switching":
            own, of_best, rounds = self.switching_against(pulls.argmax(axis=1))
            return Tallies(pulls, first, last, np.where(of_best > 0, own, 0), of_best, rounds)
        if need == "epochs":
            broken = broken_rounds(grids["marks"], order)
            return Tallies(pulls, first, last, passed=grids["passed"][:, order], **broken)
        return Tallies(pulls, first, last)

    def switching_against(self, favourites: Integers) -> tuple[Integers, ...]:
        """Return what was carried on of every arm and an arm given; see `ActionLog.switching_against`."""
        order, (_, grids), which = self._ordered(), self.state(), np.arange(self._count)
        rounds, own, of_best = (grids[name][which, :, order[favourites]][:, order] for name in PAIRS)
        rounds[which, favourites] = grids["last"][which, order[favourites]]
        return own, of_best, rounds

    def with_looks(self, tallies: Tallies, rule: LookRule) -> Tallies:
        """Return what was carried on of every arm and the most-pulled one; see `ActionLog.with_looks`."""
        rule.check_fixed()
        if rule != self.look_rule:
            text = f"expected what was carried on here ({self.look_rule}); got {rule}. Make the log with looks={rule}."
            raise ParameterError(text, parameter="looks")
        order, (_, grids), which = self._ordered(), self.state(), np.arange(self._count)
        best = order[tallies.pulls.argmax(axis=1)]
        looks = np.zeros((*tallies.pulls.shape, LOOKS), np.int64)
        for at, name in enumerate(("own_known", "other_known", "decided", "ended")):
            looks[..., at] = grids[name][which, :, best][:, order]
        looks[..., 4] = grids["ended"][which, best, best][:, None]
        looks[..., 5] = grids["end_round"][which, best][:, None]
        return replace(tallies, looks=looks)

    def state(self) -> tuple[dict[str, Any], dict[str, Integers]]:
        """Return all there is to it, as something for JSON and as arrays."""
        described: dict[str, Any] = {
            "need": self.need,
            "expected": None if self.expected is None else list(self.expected),
            "arms": self.arm_column.coder.labels,
            "demonstrations": self.demonstration_column.coder.labels,
        }
        described |= {} if self.look_rule is None else {"looks": list(self.look_rule[:3])}
        arms = len(self.arm_column.coder)
        arrays = {"lengths": self._lengths[: self._count]}
        for name, grid in self._grids.items():
            arrays[name] = grid[(slice(self._count), *([slice(self._width(name, arms))] * (grid.ndim - 1)))]
        return described, arrays

    def _width(self, name: str, arms: int) -> int:
        """Return how many places a row of an array has: one per arm, unless it is one of two."""
        if name == "recent" and self.look_rule is not None:
            return self.look_rule.memory
        return MARKS if name == "marks" else arms

    @classmethod
    def restored(cls, described: dict[str, Any], arrays: dict[str, Integers]) -> GrowingLog:
        """Make a log again from its state."""
        looks = described.get("looks")
        log = cls(described["expected"], need=described["need"], looks=looks and LookRule(*looks))
        for label in described["arms"]:
            log.arm_column.coder.add(label)
        for name in described["demonstrations"]:
            log.demonstration_column.coder.add(name)
        log._lengths, log._count = arrays["lengths"], arrays["lengths"].size
        log._known_arms = len(described["arms"])
        log._grids = {name: arrays[name] for name in log._grids}
        return log

    def _ordered(self) -> Integers:
        if not len(self):
            raise LogError("expected one row per choice; got none yet.", remedy="Wait for the first rounds.")
        if self._order is None:
            self.arm_column.check()
            first = self._grids["first"][: self._count, : len(self.arm_column.coder)]
            self._order = arm_order(self.arm_column, lambda: order_of_appearance(first), LogError)
        return self._order

    def _fit(self, demonstrations: int) -> None:
        """Make room for as many demonstrations and arms as there are, and for some more."""
        from unbandit.kernels.tally import no_marks

        arms, (rows, columns) = len(self.arm_column.coder), self._grids["pulls"].shape
        is_larger, numbers = demonstrations > rows or arms > columns, 3 if self.look_rule is None else 8
        is_large = arms > MOST_ARMS or 8 * numbers * demonstrations * arms**2 > MOST_BYTES
        if is_larger and self.need == "switching" and is_large:
            text = f"expected at most {MOST_ARMS:,}, or fewer where there are many demonstrations, since every pair is "
            text += f"kept; got {arms:,} in {demonstrations:,} demonstrations."
            remedy = "Estimate from the files without following them, or follow them by method counts."
            raise ParameterError(text, parameter="arms", remedy=remedy)
        if self.look_rule is not None:
            self._check_looks(self.look_rule, demonstrations, arms)
        columns = columns if arms <= columns else arms + arms // 4
        fill = {"following": -1, "preceding": -1, "marks": no_marks(1)}
        for name, grid in self._grids.items():
            shape = (self._width(name, columns),) * (grid.ndim - 1)
            self._grids[name] = grown(grid, (demonstrations, *shape), fill.get(name, 0))
        self._lengths = grown(self._lengths, (demonstrations,))
        self._count, self._known_arms = demonstrations, arms

    def _check_looks(self, rule: LookRule, demonstrations: int, arms: int) -> None:
        """Refuse an arm that comes after the opening, whose length depends on how many there are, and too long delays.

        What was known at decisions so far was counted with fewer arms, and the rounds are gone.
        """
        opening = rule.among(self._known_arms)[0]
        if arms > self._known_arms and (self._lengths[: self._count] > opening).any():
            text = "expected all arms in the opening, which a rule with a delay pulls in turn; got another one later."
            remedy = "List all arms at the beginning, or read the log whole."
            raise LogError(text, value=self.arm_column.coder.labels[self._known_arms], remedy=remedy)
        if 8 * demonstrations * rule.memory > MOST_BYTES:
            text = (
                f"expected a shorter delay or fewer demonstrations where a log is followed, since rounds are kept "
                f"until their rewards are known; got {rule.delay:,} rounds of {demonstrations:,} demonstrations."
            )
            raise ParameterError(text, parameter="delay", remedy="Read the log whole.")
