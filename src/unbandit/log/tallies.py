"""Tallies: the counts of a record that closed forms need, whether it is in memory, in batches, growing or simulated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from unbandit.checks import in_threads, threads
from unbandit.errors import Notice, NotIdentifiable, ParameterError
from unbandit.log.rewards import Rewards

if TYPE_CHECKING:
    import polars

Need = Literal["counts", "switching", "epochs"]
"""How much is read: pulls with the first and last round of each; besides, switching rounds; or instead, epochs."""

BLOCK = 1 << 18  # rounds of a block: few enough to be in a core's own memory when they are read for the second time

LOOKS = 10  # numbers of `kernels.bracket.Looks`

Counts = NDArray[np.int64]

Runs = Iterable[tuple[NDArray[Any], Counts, Counts]]
"""Pieces of demonstrations, as `kernels.tally.tally_runs` takes them: codes, starts, and whose each run is."""


@dataclass(frozen=True, eq=False)
class Tallies:
    """Counts of demonstrations: arrays of (demonstrations, arms), None for what was not asked for or not kept.

    Attributes
    ----------
    pulls, first, last
        `n_i`, and the round (from 1; 0 for none) of each arm's first pull, and of its last.
    own, of_best, rounds
        At each arm's switching round: its own pulls, those of the most-pulled arm (the first of several), both 0 where
        the latter had not been pulled by then; and the round itself, 0 where there is none, and in simulations of rules
        whose index ignores it. The most-pulled arm itself has no pulls there (0), and the round of its last pull.
    passed, gone
        The round in which it showed that an elimination rule's arm was gone: its turn came and another was pulled;
        0 for an arm still active at the end. In simulations instead whether the actions show that it was eliminated.
    broken, broken_arm
        For each demonstration the first round whose arm had been passed over before, 0 if there is none, and that arm
        (0 if there is none).
    looks
        For an index rule whose rewards are late, what it knew at its last decisions: the numbers of
        `kernels.bracket.Looks`, along a third axis.
    """

    pulls: Counts
    first: Any = None
    last: Any = None
    own: Any = None
    of_best: Any = None
    rounds: Any = None
    passed: Any = None
    broken: Any = None
    broken_arm: Any = None
    gone: Any = None
    looks: Any = None

    @classmethod
    def zeros(cls, shape: tuple[int, int], *names: str) -> Tallies:
        """Return room for pulls, and for what else is named."""
        return cls(np.zeros(shape, np.int64), **{name: np.zeros(shape, np.int64) for name in names})

    def at(self, places: int | slice | Counts) -> Tallies:
        """Return the counts of one demonstration, one place per arm; or of some."""
        return replace(self, **{name: array[places] for name, array in self.arrays.items()})

    def part(self, start: int, stop: int) -> Tallies:
        """Return the counts of some demonstrations, as views."""
        return self.at(slice(start, stop))

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that there are, by name."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: array for name, array in named.items() if array is not None}

    def frame(self, arms: Sequence[str], demonstrations: Sequence[str]) -> polars.DataFrame:
        """Return one row per arm (and demonstration): pulls, their share, and the first and last round if counted."""
        import polars as pl

        each, share = np.arange(len(demonstrations)), self.pulls / np.maximum(self.pulls.sum(axis=1, keepdims=True), 1)
        columns = [
            pl.Series("demonstration", list(demonstrations), dtype=pl.String).gather(np.repeat(each, len(arms))),
            pl.Series("arm", arms, dtype=pl.String).gather(np.tile(np.arange(len(arms)), len(demonstrations))),
            pl.Series("pulls", self.pulls.reshape(-1)),
            pl.Series("share", share.reshape(-1)),
        ]
        for name, rounds in (("first_round", self.first), ("last_round", self.last)):
            if rounds is not None:
                columns.append(pl.select(pl.Series(name, rounds.reshape(-1)).replace(0, None)).to_series())
        return pl.DataFrame(columns[len(demonstrations) == 1 :])

    @property
    def counted(self) -> tuple[Counts, Counts, Counts]:
        """Return `pulls`, `first` and `last`, which must have been counted."""
        return self.pulls, self.first, self.last

    @property
    def at_switching(self) -> tuple[Counts, Counts, Counts]:
        """Return `own`, `of_best` and `rounds`, which must have been asked for."""
        return self.own, self.of_best, self.rounds

    @property
    def turns(self) -> tuple[Counts, Counts, Counts]:
        """Return `passed`, `broken` and `broken_arm`, which must have been asked for."""
        return self.passed, self.broken, self.broken_arm

    @property
    def eliminated(self) -> NDArray[np.bool_]:
        """Return whether the actions show that an arm was eliminated."""
        shown = self.turns[0] > 0 if self.gone is None else self.gone
        return np.asarray((self.pulls > 0) & shown)


def broken_rounds(marks: Counts, order: Counts | None = None) -> dict[str, Counts]:
    """Return `broken` and `broken_arm` from the marks of `epochs_of_runs`; `order` is the code of each arm."""
    from unbandit.kernels.tally import BROKEN, BROKEN_ARM

    arm = marks[:, BROKEN_ARM]
    place = arm if order is None else np.argsort(order)[arm]
    return {"broken": marks[:, BROKEN].copy(), "broken_arm": np.where(arm >= 0, place, 0)}


def switching_against(runs: Runs, favourites: Counts, counted: Tallies) -> tuple[Counts, Counts, Counts]:
    """Return `own`, `of_best` and `rounds` as if another arm than the most-pulled one were the best.

    Runs are as `kernels.tally.switch_runs` takes them, in one pass over all rows. Unlike in `Tallies`, an arm's own
    pulls are kept where the best had none by then.
    """
    from unbandit.kernels.tally import switch_runs

    every = np.arange(favourites.size)
    own, (of_best, rounds) = counted.pulls.copy(), np.zeros((2, *counted.pulls.shape), np.int64)
    passed, so_far = np.zeros((2, every.size), np.int64)
    end = np.ascontiguousarray(counted.last[every, favourites])
    for codes, starts, who in runs:
        switch_runs(
            codes, starts, who, np.ones(every.size, np.bool_), favourites, end, passed, so_far, own, of_best, rounds
        )
    own[every, favourites] = of_best[every, favourites] = 0
    rounds[every, favourites] = end
    return own, of_best, rounds


class Record(Protocol):
    """Demonstrations that can be counted, whether or not their rounds can be looked at one by one."""

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the label of every arm."""

    @property
    def demonstrations(self) -> Sequence[str]:
        """Return the name of each demonstration."""

    @property
    def lengths(self) -> Counts:
        """Return the number of rounds of each."""

    @property
    def ordered(self) -> bool:
        """Return whether the rounds are known, or only the counts."""

    @property
    def reading(self) -> tuple[Notice, ...]:
        """Return what the user should know about the reading."""

    @property
    def pulls(self) -> Counts:
        """Return how often each arm was pulled: (demonstrations, arms)."""

    @property
    def rewards(self) -> Rewards | None:
        """Return the rewards that are known; None, as a rule."""

    def __len__(self) -> int:
        """Return the number of demonstrations."""

    def tallied(self, need: Need) -> Tallies:
        """Read what is needed, once: the answer is kept."""


class LookRule(NamedTuple):
    """When an index rule whose rewards are late looks at what it knows."""

    initial: int  # rewards of each arm that are known before the rule decides
    batch: int
    delay: int
    delays: NDArray[np.float64] | None = None  # the distribution of a random delay (`kernels.arrivals`)
    has_order: bool = True  # whether all turns of the opening have the same order

    def among(self, arms: int) -> tuple[int, int, int]:
        """Return what the kernels take: the rounds in turn at the beginning, the batch and the delay."""
        return self.initial * arms + self.delay, self.batch, self.delay

    def check_fixed(self) -> None:
        """Refuse random delays where rounds are not kept."""
        if self.delays is not None:
            raise NotIdentifiable(
                "with random delays, what a rule is expected to have known is summed over the rounds before each "
                "decision, and a log that is scanned or followed does not keep them.",
                remedy="Read the log whole.",
            )

    @property
    def memory(self) -> int:
        """Return how many of the last rounds decide what becomes known next."""
        return self.batch + self.delay


def with_looks(tallies: Tallies, actions: NDArray[Any], offsets: Counts, rule: LookRule) -> Tallies:
    """Add what an index rule whose rewards are late knew at its last decisions."""
    codes = np.ascontiguousarray(actions).view(f"u{actions.itemsize}")
    count, looks = len(tallies.pulls), np.zeros((*tallies.pulls.shape, LOOKS), np.int64)
    if rule.delays is not None:
        from unbandit.kernels.looks import expected_looks

        pulls, last = np.ascontiguousarray(tallies.pulls), np.ascontiguousarray(tallies.last)
        expected_looks(codes, offsets, rule.delays, rule.has_order, pulls, last, looks)
        return replace(tallies, looks=looks)
    few = max(1, BLOCK // rule.memory)
    for start in range(0, count, few):
        part = tallies.part(start, min(start + few, count))
        starts = np.ascontiguousarray(offsets[start : start + few + 1])
        run = codes[starts[0] : starts[-1]], starts - starts[0], np.arange(starts.size - 1)
        looks[start : start + few] = looks_at([run], part, part.pulls.argmax(axis=1), int(np.diff(starts).max()), rule)
    return replace(tallies, looks=looks)


def looks_at(runs: Runs, counted: Tallies, best: Counts, longest: int, rule: LookRule) -> Counts:
    """Return what was known at the last decisions, from one pass over all rows; arms are codes, one `best` each."""
    from unbandit.kernels.looks import looks_of_runs

    count, arms = counted.pulls.shape
    end, lengths = np.ascontiguousarray(counted.last[np.arange(count), best]), np.zeros(count, np.int64)
    recent, known = np.zeros((count, max(min(rule.memory, longest), 1)), np.int64), np.zeros((count, arms), np.int64)
    looks = np.zeros((count, arms, LOOKS), np.int64)
    for codes, starts, who in runs:
        looks_of_runs(codes, starts, who, lengths, *rule.among(arms), best, end, recent, known, looks)
    return looks


def is_record(given: Any) -> TypeGuard[Record]:
    """Return whether something is a record, without reading it."""
    return callable(getattr(type(given), "tallied", None))


def tally(
    actions: NDArray[Any], offsets: Counts, arms: int, need: Need, counted: Tallies | None = None, *,
    workers: int | None = None,
) -> Tallies:  # fmt: skip
    """Count demonstrations, one after the other in `actions`, on threads; what was `counted` is not counted again."""
    from unbandit.kernels.tally import epochs_of_runs, no_marks, tally_runs

    shape = offsets.size - 1, arms
    codes = actions.view(f"u{actions.itemsize}")
    known = counted is not None
    found = counted or Tallies.zeros(shape, "first", "last", "own", "of_best", "rounds")
    if need == "epochs":
        single = {name: np.zeros(shape[0], np.int64) for name in ("broken", "broken_arm")}
        found = replace(found, passed=np.zeros(shape, np.int64), **single)

    def fill(start: int, stop: int) -> bool:
        part, count = found.part(start, stop), stop - start
        runs = codes[offsets[start] : offsets[stop]], offsets[start : stop + 1] - offsets[start], np.arange(count)
        if not known:
            torn, grids = np.zeros(count, np.bool_), (*part.counted, *part.at_switching)
            if not tally_runs.for_work(runs[0].size)(*runs, np.zeros(count, np.int64), torn, *grids):
                return False
        if need == "epochs":
            (passed, broken, broken_arm), marks = part.turns, no_marks(count)
            following, preceding = np.full((2, count, arms), -1)
            epochs_of_runs(*runs, np.zeros(count, np.int64), following, preceding, passed, marks)
            broken[:], broken_arm[:] = broken_rounds(marks).values()
        return True

    if not all(in_threads(fill, _blocks(offsets), threads(workers))):
        text = f"expected codes from 0 to {arms - 1}, one for each arm; got others."
        remedy = "Use ActionLog.from_actions for labels, and do not change an array that a log was made of."
        raise ParameterError(text, parameter="actions", remedy=remedy)
    return found


def _blocks(offsets: Counts) -> list[tuple[int, int]]:
    """Cut demonstrations into blocks of about as many rounds; a long one is a block by itself."""
    count, total = offsets.size - 1, int(offsets[-1])
    cuts = np.searchsorted(offsets, np.arange(BLOCK, total, BLOCK), side="left")
    return list(pairwise(np.unique(np.concatenate(([0], cuts, [count]))).tolist()))
