"""A rule and an instance in a GPU's memory: simulated and counted there, arrays in, arrays out.

As many runs at a time as the memory takes, and fewer where it turns out to take less.
"""

from __future__ import annotations

import gc
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from unbandit.kernels.bandit import Bandit
from unbandit.kernels.counts import guide_of
from unbandit.kernels.gpu.port import SIMULATED, formulas_of, one_sided
from unbandit.kernels.gpu.simulate_index import (
    COUNTS,
    MOST_MERGED_ARMS,
    NUMBERS,
    counted_by_levels,
    merged,
    threads_per_block,
)
from unbandit.kernels.gpu.tally import arranged, moved, packed_switches, shuffled, switches
from unbandit.kernels.gpu.threads import (
    MOST_ARMS_IN_LOCAL_MEMORY,
    by_chance,
    by_index,
    counted_eliminations,
    eliminations,
    one_a_thread,
    workspace,
)
from unbandit.kernels.simulate_index import IndexOptions
from unbandit.kernels.simulate_randomised import RandomisedOptions


class Scene(NamedTuple):
    """An instance in the GPU's memory, as every simulating kernel takes it.

    Attributes
    ----------
    far
        The normal quantile's table (`port.one_sided`).
    listed
        The means as the instance lists them.
    sigma, bernoulli
        The noise.
    inverse
        1/n as far as the table goes; see `kernels.bandit.inverse_of`.
    key
        The seed, as two 32-bit numbers.
    order, place
        The arm at each position, and the position of each arm, (arms, runs); of no runs if all are as listed.
    first_run
        The number of the first run.
    """

    far: Any
    listed: Any
    sigma: float
    bernoulli: bool
    inverse: Any
    key: Any
    order: Any
    place: Any
    first_run: int


MEMORY_SHARE = 0.5
"""The share of the free memory to use: others may be using the GPU too."""

MOST_RUNS = 1 << 22
"""The most runs at a time: more do not make a GPU any busier."""

_kept = threading.local()


def scratch(shape: tuple[int, int], kind: Any) -> Any:
    """Return room for actions, which is used again and again: each thread of the host keeps its last."""
    size = shape[0] * shape[1] * np.dtype(kind).itemsize
    room = getattr(_kept, "room", None)
    if room is None or room.size < size:
        _kept.room = room = None  # release the old one first
        _kept.room = room = cuda.device_array(size, np.uint8)
    return room[:size].view(kind).reshape(shape)


def _free() -> int:
    """Return how much memory is available, including what is kept."""
    free, _ = cuda.current_context().get_memory_info()
    room = getattr(_kept, "room", None)
    return int(min(free, 2**62)) + (0 if room is None else int(room.size))


def fitting(bytes_a_run: int, *, whole: int = 1) -> int:
    """Return how many runs the free memory takes, in multiples of `whole`, and at least that many."""
    runs = min(int(_free() * MEMORY_SHARE) // max(bytes_a_run, 1), MOST_RUNS)
    return max(runs // whole, 1) * whole


def in_batches(work: Callable[[int, int], None], runs: int, bytes_a_run: int, *, whole: int = 1) -> None:
    """Call `work(first, last)` over all runs, as many at a time as fit; after a refusal of memory, half as many."""
    size, first = fitting(bytes_a_run, whole=whole), 0
    while first < runs:
        last = min(first + size, runs)
        try:
            work(first, last)
        except Exception as error:  # drivers refuse memory with various exceptions; others are raised again
            if not _out_of_memory(error):
                raise
            if size <= whole:
                raise MemoryError(
                    f"the GPU's memory does not take {whole:,} runs of {bytes_a_run:,} bytes each"
                ) from error
            _kept.room = None
            gc.collect()  # release what the failed attempt took
            size = max(size // 2 // whole, 1) * whole
            continue
        first = last


def _out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "OUT_OF_MEMORY" in str(error).upper().replace(" ", "_")


THREADS = 512
"""Threads per block where each has its own demonstration."""

WARP, SEVERAL_WARPS, THOUSANDS = 32, 256, 2_000
"""Threads per demonstration for hundreds of arms and for thousands, and the number of arms in between."""


class How(NamedTuple):
    """How a rule is played, and what is read from its actions.

    Attributes
    ----------
    play
        One of the functions in `threads`; None for an index rule whose arms need never be compared.
    options
        What it takes: `IndexOptions`, `RandomisedOptions` or none.
    columns
        How many numbers an arm of a randomised rule remembers.
    reads
        `switching`, `eliminations` or `pulls`.
    """

    play: Any
    options: tuple[Any, ...]
    columns: int
    reads: str


def merging() -> How:
    """Play an index rule that ignores the round, with the default ties, opening and batches."""
    return How(None, (), 0, "switching")


def index_by_index(options: IndexOptions) -> How:
    """Play any index rule."""
    return How(by_index, options, 0, "switching")


def with_chance(options: RandomisedOptions) -> How:
    """Play a randomised rule."""
    return How(by_chance, options, options.columns, "pulls")


def eliminating() -> How:
    """Play an elimination rule."""
    return How(eliminations, (0,), 0, "eliminations")


class DeviceCounts(NamedTuple):
    """Counts of some runs, in the GPU's memory, as (positions, runs); None where not asked for."""

    order: Any
    pulls: Any
    own: Any = None
    of_best: Any = None
    rounds: Any = None
    gone: Any = None


class Stage:
    """An instance and a rule in the GPU's memory, ready to be played.

    Parameters
    ----------
    bandit
        The instance as the CPU's kernels take it.
    parameters
        The rule's, likewise.
    how
        How the rule is played.
    drawn
        Whether each run draws the order of its arms; otherwise it is that of `bandit.orders`.
    """

    def __init__(self, bandit: Bandit, parameters: Any, how: How, *, drawn: bool = False) -> None:
        self.bandit, self.how, self.drawn = bandit, how, drawn
        self.arms, self.horizon = bandit.means.size, int(bandit.horizon)
        self.formulas, self.parameters = formulas_of(parameters), _numbers(parameters)
        self._host_parameters = parameters
        self._kind = np.uint8 if self.arms <= 256 else np.uint16 if self.arms <= 65536 else np.uint32
        self._far, self._listed = cuda.to_device(one_sided()), cuda.to_device(np.array(bandit.listed))
        self._inverse = cuda.to_device(np.ones(1))  # dividing is as fast here as looking up

    def bytes_a_run(self, *, actions: bool) -> int:
        """Return about how much memory a run takes, in bytes."""
        numbers, counts = workspace(self.how.play, self.arms, self.how.columns) if self.how.play else (0, 0)
        room = 8 * (numbers + counts) if self.arms > MOST_ARMS_IN_LOCAL_MEMORY else 0
        return (self.horizon * np.dtype(self._kind).itemsize if actions else 0) + 40 * self.arms + room + 64

    def counts_alone(self) -> bool:
        """Return whether the counts are simulated without the actions."""
        return self.how.reads == "eliminations" or self._by_levels()

    def _merged(self) -> bool:
        return self.how.play is None and self.arms <= MOST_MERGED_ARMS

    def _by_levels(self) -> bool:
        return self.how.play is None and self.arms > MOST_MERGED_ARMS

    def scene(self, first_run: int, first: int, last: int) -> Scene:
        """Return the scene of the runs from `first_run + first` to `first_run + last`."""
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
        """Fill `out` (runs x horizon) with the actions."""

        def work(first: int, last: int) -> None:
            played, _ = self._played(self.scene(first_run, first, last), last - first)
            host = np.ascontiguousarray(played.copy_to_host().T)
            out[first:last] = host.view(np.uint8)[:, : self.horizon] if self._merged() else host

        in_batches(work, runs, self.bytes_a_run(actions=True))

    def evidence(self, first_run: int, first: int, last: int) -> DeviceCounts:
        """Play some runs and count them; the counts stay in the GPU's memory."""
        scene, runs = self.scene(first_run, first, last), last - first
        if self.how.reads == "eliminations":
            pulls, gone = self._room(runs, np.int32), self._room(runs, np.bool_)
            self._launch(counted_eliminations, scene, runs, (self.horizon,), pulls, gone)
            return DeviceCounts(scene.order, pulls, gone=gone)
        if self._by_levels():
            return self._leveled(scene, runs)
        actions, pulls = self._played(scene, runs)
        if self.how.reads == "pulls":
            return DeviceCounts(scene.order, pulls)
        own, of_best, rounds = (self._room(runs, np.int32) for _ in range(3))
        if not self._merged():
            switches()[blocks(runs)](actions, pulls, own, of_best, rounds)
            return DeviceCounts(scene.order, pulls, own, of_best, rounds)
        packed_switches()[blocks(runs)](actions, self.horizon, scene.place, pulls, own, of_best, rounds)
        if scene.place.shape[1] > 0:  # so far by arm, not by position
            into = cuda.device_array((4, self.arms, runs), np.int32)
            moved()[blocks(pulls.size)](scene.place, pulls, own, of_best, rounds, into)
            pulls, own, of_best, rounds = into[0], into[1], into[2], into[3]
        return DeviceCounts(scene.order, pulls, own, of_best, rounds)

    def gathered(self, first_run: int, runs: int) -> Iterator[tuple[int, int, DeviceCounts]]:
        """Play all runs, and yield their counts batch by batch, copied to the host as (runs, arms)."""
        found: list[tuple[int, int, DeviceCounts]] = []

        def work(first: int, last: int) -> None:
            read = self.evidence(first_run, first, last)
            host = [None if part is None else part.copy_to_host().T for part in read]
            found.append((first, last, DeviceCounts(*host)))

        in_batches(work, runs, self.bytes_a_run(actions=not self.counts_alone()))
        yield from found

    def _room(self, runs: int, kind: Any) -> Any:
        return cuda.device_array((self.arms, runs), kind)

    def _played(self, scene: Scene, runs: int) -> tuple[Any, Any]:
        """Return actions (rounds, runs) and pulls (arms, runs) by position; merged arms: words, and by arm."""
        pulls = self._room(runs, np.int32)
        if self._merged():
            words = scratch((-(-self.horizon // 4), runs), np.uint32)
            start = merged(self.formulas, self.arms, scene.bernoulli)[blocks(runs, threads_per_block(self.arms))]
            start(scene, self.parameters, self.horizon, words, pulls)
            return words, pulls
        actions = scratch((self.horizon, runs), self._kind)
        if self.how.play is None:
            self._launch(by_index, scene, runs, IndexOptions(False, False, 1, 1), actions, pulls)
        else:
            self._launch(self.how.play, scene, runs, self.how.options, actions, pulls)
        return actions, pulls

    def _launch(self, play: Any, scene: Scene, runs: int, options: tuple[Any, ...], first: Any, second: Any) -> None:
        """Start one thread per run."""
        rows, numbers, counts = 1, 1, 1
        if self.arms > MOST_ARMS_IN_LOCAL_MEMORY:
            rows, (numbers, counts) = runs, workspace(play, self.arms, self.how.columns)
        room, tally = cuda.device_array((rows, numbers), np.float64), cuda.device_array((rows, counts), np.int64)
        start = one_a_thread(play, self.formulas, self.arms, self.how.columns)[blocks(runs)]
        start(scene, self.parameters, options, first, second, room, tally)

    def _leveled(self, scene: Scene, runs: int) -> DeviceCounts:
        """Count by levels, with a group of threads per run."""
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
        return DeviceCounts(scene.order, pulls, own, of_best, rounds)


def blocks(wanted: int, block: int = THREADS) -> tuple[int, int]:
    """Return the numbers of blocks, and of threads per block, for at least `wanted` threads."""
    block = 4 if SIMULATED else block
    return -(-wanted // block), block


def _groups_at_once(group: int) -> int:
    """Return how many groups keep the GPU busy."""
    if SIMULATED:
        return 2
    return cuda.get_current_device().MULTIPROCESSOR_COUNT * (2048 // group)


def _numbers(parameters: Any) -> Any:
    """Convert a rule's parameters for the GPU: tables into its memory, records into named numbers."""
    if isinstance(parameters, np.ndarray):
        return cuda.to_device(parameters)
    if isinstance(parameters, tuple):
        return parameters
    names = parameters.dtype.names[:-1]  # the last is the marker by which the CPU's compiler knows the rule
    return _record(names)(*(float(parameters[name]) for name in names))


@lru_cache(maxsize=64)
def _record(names: tuple[str, ...]) -> Any:
    """Return a type of named numbers, the same for the same names, so that a kernel is compiled once."""
    return namedtuple("Numbers", names)
