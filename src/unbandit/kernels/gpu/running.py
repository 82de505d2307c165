"""Simulate and read runs on a GPU: arrays in, arrays out, as the CPU's kernels have them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from unbandit.kernels.bandit import Bandit
from unbandit.kernels.counts import guide_of
from unbandit.kernels.gpu.levels import COUNTS, NUMBERS, counted_by_levels
from unbandit.kernels.gpu.memory import fitting, in_batches, scratch
from unbandit.kernels.gpu.merging import MOST, merged, threads
from unbandit.kernels.gpu.porting import SIMULATED, formulas_of
from unbandit.kernels.gpu.quantile import one_sided
from unbandit.kernels.gpu.reading import arranged, moved, packed_switches, shuffled, switches
from unbandit.kernels.gpu.scene import Scene
from unbandit.kernels.gpu.threads import (
    FEW,
    by_chance,
    by_index,
    counted_eliminations,
    eliminations,
    one_a_thread,
    workspace,
)

__all__ = ["Evidence", "How", "Stage", "blocks", "eliminating", "index_by_index", "merging", "with_chance"]

THREADS = 512
"""Threads a block where each has a demonstration of its own."""

WARP, SEVERAL_WARPS, THOUSANDS = 32, 256, 2_000
"""Threads a demonstration for hundreds of arms, for thousands, and from how many arms on that is."""


class How(NamedTuple):
    """Say how a rule is played, and what is read of it.

    Attributes
    ----------
    play
        One of the functions in `threads`; None for an index rule whose arms need never be compared.
    options, columns
        What it takes.
    reads
        `switching`, `eliminations` or `pulls`.
    """

    play: Any
    options: tuple[int, ...]
    columns: int
    reads: str


def merging() -> How:
    """Play an index rule that ignores the round, with ties, opening and batches as usual."""
    return How(None, (), 0, "switching")


def index_by_index(uses_round: bool, random_ties: bool, initial: int, batch: int) -> How:
    """Play any index rule."""
    return How(by_index, (int(uses_round), int(random_ties), initial, batch), 0, "switching")


def with_chance(columns: int, needed: int, initial: int, batch: int) -> How:
    """Play a randomised rule."""
    return How(by_chance, (columns, needed, initial, batch), columns, "pulls")


def eliminating() -> How:
    """Play an elimination rule."""
    return How(eliminations, (0,), 0, "eliminations")


class Evidence(NamedTuple):
    """Hold what was read of some runs, in the GPU's memory, as (places, runs); None where it was not asked for."""

    order: Any
    pulls: Any
    own: Any = None
    of_best: Any = None
    rounds: Any = None
    gone: Any = None


class Stage:
    """Hold an instance and a rule in the GPU's memory, ready to be played.

    Parameters
    ----------
    bandit
        The instance as the CPU's kernels take it.
    parameters
        The rule's, likewise.
    how
        How the rule is played.
    drawn
        Whether each run has its arms in an order of its own, drawn with it; otherwise as `bandit.orders` says.
    """

    def __init__(self, bandit: Bandit, parameters: Any, how: How, *, drawn: bool = False) -> None:
        self.bandit, self.how, self.drawn = bandit, how, drawn
        self.arms, self.horizon = bandit.means.size, int(bandit.horizon)
        self.formulas, self.parameters = formulas_of(parameters), _numbers(parameters)
        self._host_parameters = parameters
        self._kind = np.uint8 if self.arms <= 256 else np.uint16 if self.arms <= 65536 else np.uint32
        self._far, self._listed = cuda.to_device(one_sided()), cuda.to_device(np.array(bandit.listed))
        self._inverse = cuda.to_device(np.ones(1))  # dividing is as quick here as looking up

    def bytes_a_run(self, *, actions: bool) -> int:
        """Return about how much memory a run takes."""
        numbers, counts = workspace(self.how.play, self.arms, self.how.columns) if self.how.play else (0, 0)
        room = 8 * (numbers + counts) if self.arms > FEW else 0
        return (self.horizon * np.dtype(self._kind).itemsize if actions else 0) + 40 * self.arms + room + 64

    def counts_alone(self) -> bool:
        """Return whether what is read follows without the actions."""
        return self.how.reads == "eliminations" or self._by_levels()

    def _merged(self) -> bool:
        return self.how.play is None and self.arms <= MOST

    def _by_levels(self) -> bool:
        return self.how.play is None and self.arms > MOST

    def scene(self, first_run: int, first: int, last: int) -> Scene:
        """Return the scene of the runs from `first` to `last`, the former being run `first_run + first`."""
        shape = self.arms, last - first
        order = place = cuda.device_array((self.arms, 0), np.uint32)
        if self.drawn:
            bits = cuda.device_array(shape, np.uint64)
            order, place = cuda.device_array(shape, np.uint32), cuda.device_array(shape, np.uint32)
            shuffled()[blocks(bits.size)](self.bandit.key, first_run + first, bits)
            arranged()[blocks(bits.size)](bits, order, place)
        elif self.bandit.orders.shape[0] > 0:
            given = self.bandit.orders[first:last]
            order, place = (
                cuda.to_device(np.ascontiguousarray(part.T, np.uint32)) for part in (given, given.argsort(axis=1))
            )
        noise = float(self.bandit.sigma), bool(self.bandit.bernoulli)
        return Scene(self._far, self._listed, *noise, self._inverse, self.bandit.key, order, place, first_run + first)

    def actions(self, first_run: int, runs: int, out: NDArray[Any]) -> None:
        """Fill `out` (runs x horizon) with what is played."""

        def work(first: int, last: int) -> None:
            played, _ = self._played(self.scene(first_run, first, last), last - first)
            host = np.ascontiguousarray(played.copy_to_host().T)
            out[first:last] = host.view(np.uint8)[:, : self.horizon] if self._merged() else host

        in_batches(work, runs, self.bytes_a_run(actions=True))

    def evidence(self, first_run: int, first: int, last: int) -> Evidence:
        """Play some runs and read them; the answer stays in the GPU's memory."""
        scene, runs = self.scene(first_run, first, last), last - first
        if self.how.reads == "eliminations":
            pulls, gone = self._room(runs, np.int32), self._room(runs, np.bool_)
            self._launch(counted_eliminations, scene, runs, (self.horizon,), pulls, gone)
            return Evidence(scene.order, pulls, gone=gone)
        if self._by_levels():
            return self._leveled(scene, runs)
        actions, pulls = self._played(scene, runs)
        if self.how.reads == "pulls":
            return Evidence(scene.order, pulls)
        own, of_best, rounds = (self._room(runs, np.int32) for _ in range(3))
        if not self._merged():
            switches()[blocks(runs)](actions, pulls, own, of_best, rounds)
            return Evidence(scene.order, pulls, own, of_best, rounds)
        packed_switches()[blocks(runs)](actions, self.horizon, scene.place, pulls, own, of_best, rounds)
        if scene.place.shape[1] > 0:  # so far by arm, and not by where arms stand
            into = cuda.device_array((4, self.arms, runs), np.int32)
            moved()[blocks(pulls.size)](scene.place, pulls, own, of_best, rounds, into)
            pulls, own, of_best, rounds = into[0], into[1], into[2], into[3]
        return Evidence(scene.order, pulls, own, of_best, rounds)

    def gathered(self, first_run: int, runs: int) -> Iterator[tuple[int, int, Evidence]]:
        """Play all runs, and give what was read of them a batch at a time, brought back to the host as (runs, arms)."""
        found: list[tuple[int, int, Evidence]] = []

        def work(first: int, last: int) -> None:
            read = self.evidence(first_run, first, last)
            host = [None if part is None else part.copy_to_host().T for part in read]
            found.append((first, last, Evidence(*host)))

        in_batches(work, runs, self.bytes_a_run(actions=not self.counts_alone()))
        yield from found

    def _room(self, runs: int, kind: Any) -> Any:
        return cuda.device_array((self.arms, runs), kind)

    def _played(self, scene: Scene, runs: int) -> tuple[Any, Any]:
        """Return actions (rounds, runs) and pulls (arms, runs): by place; where arms are merged, words, and by arm."""
        pulls = self._room(runs, np.int32)
        if self._merged():
            words = scratch((-(-self.horizon // 4), runs), np.uint32)
            start = merged(self.formulas, self.arms, scene.bernoulli)[blocks(runs, threads(self.arms))]
            start(scene, self.parameters, self.horizon, words, pulls)
            return words, pulls
        actions = scratch((self.horizon, runs), self._kind)
        if self.how.play is None:
            self._launch(by_index, scene, runs, (0, 0, 1, 1), actions, pulls)
        else:
            self._launch(self.how.play, scene, runs, self.how.options, actions, pulls)
        return actions, pulls

    def _launch(self, play: Any, scene: Scene, runs: int, options: tuple[int, ...], first: Any, second: Any) -> None:
        """Start one thread a run."""
        shape = (1, 1)
        if self.arms > FEW:
            numbers, counts = workspace(play, self.arms, self.how.columns)
            shape = (numbers, counts)
        room = cuda.device_array((runs if self.arms > FEW else 1, shape[0]), np.float64)
        tally = cuda.device_array((runs if self.arms > FEW else 1, shape[1]), np.int64)
        start = one_a_thread(play, self.formulas, self.arms, self.how.columns)[blocks(runs)]
        start(scene, self.parameters, options, first, second, room, tally)

    def _leveled(self, scene: Scene, runs: int) -> Evidence:
        """Count by levels, a group of threads a run."""
        group = 4 if SIMULATED else WARP if self.arms < THOUSANDS else SEVERAL_WARPS
        guide = cuda.to_device(guide_of(self._host_parameters, self.bandit.sample, self.arms, self.horizon))
        a_block = self.arms * (8 * NUMBERS + 8 * COUNTS)
        blocks = min(runs, _groups_at_once(group), fitting(a_block))
        numbers = cuda.device_array((blocks, NUMBERS, self.arms), np.float64)
        counts = cuda.device_array((blocks, COUNTS, self.arms), np.int64)
        pulls, own, of_best = (self._room(runs, np.int32) for _ in range(3))
        rounds = cuda.to_device(np.zeros((self.arms, runs), np.int32))
        start = counted_by_levels(self.formulas, group)[blocks, group]
        start(scene, self.parameters, guide, self.horizon, pulls, own, of_best, numbers, counts)
        return Evidence(scene.order, pulls, own, of_best, rounds)


def blocks(wanted: int, block: int = THREADS) -> tuple[int, int]:
    """Return how many blocks of how many threads each make as many as are wanted."""
    block = 4 if SIMULATED else block
    return -(-wanted // block), block


def _groups_at_once(group: int) -> int:
    """Return how many groups keep the GPU busy: as many as it can hold at a time, and some more."""
    if SIMULATED:
        return 2
    return cuda.get_current_device().MULTIPROCESSOR_COUNT * (2048 // group)


def _numbers(parameters: Any) -> Any:
    """Put a rule's parameters where a kernel can read them: tables in the GPU's memory, records as named numbers."""
    if isinstance(parameters, np.ndarray):
        return cuda.to_device(parameters)
    if isinstance(parameters, tuple):
        return parameters
    names = parameters.dtype.names[:-1]  # the last is a mark, by which the CPU's compiler knows the rule
    return _record(names)(*(float(parameters[name]) for name in names))


@lru_cache(maxsize=64)
def _record(names: tuple[str, ...]) -> Any:
    """Return a type of named numbers: always the same for the same names, so that a kernel is compiled once."""
    return namedtuple("Numbers", names)
