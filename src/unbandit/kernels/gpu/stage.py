"""A rule and an instance in a GPU's memory: simulated and counted there, arrays in, arrays out.

As many runs at a time as the memory takes, and fewer where it turns out to take less.
"""

import gc
import threading
from collections import namedtuple
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from unbandit.kernels.bandit import Bandit
from unbandit.kernels.gpu import simulate_index, threads
from unbandit.kernels.gpu.port import SIMULATED, formulas_of, one_sided
from unbandit.kernels.simulate_index import level_guide

MOST_RUNS = 1 << 22  # at a time: more do not make a GPU any busier
MEMORY_SHARE = 0.5  # of the free memory to use: others may be using the GPU too
THREADS = 512  # per block, where each has its own demonstration
MANY_RUNS = 1 << 15  # of many arms: from here on each demonstration has a thread, not a group
WARP, SEVERAL_WARPS, THOUSANDS = 32, 256, 2_000  # threads per demonstration for hundreds, and for thousands of arms

LOOPS = {
    "merge": threads.by_index,  # of index rules whose arms need never be compared
    "index": threads.by_index,
    "rising": threads.by_rising_index,
    "elimination": threads.eliminations,
    "randomised": threads.by_chance,
}


class Scene(NamedTuple):
    """An instance in the GPU's memory, as every simulating kernel takes it."""

    far: Any  # the normal quantile's table (`port.one_sided`)
    listed: Any  # the means as the instance lists them
    sigma: float
    bernoulli: bool
    inverse: Any  # 1/n as far as the table goes; see `kernels.bandit.inverse_of`
    key: Any  # the seed, as two 32-bit numbers
    order: Any  # the arm at each position, (arms, runs); of no runs if all are as listed
    place: Any  # and the position of each arm
    first_run: int


class DeviceCounts(NamedTuple):
    """Counts of some runs, in the GPU's memory, as (positions, runs); None where not asked for."""

    order: Any
    pulls: Any
    own: Any = None
    of_best: Any = None
    rounds: Any = None
    gone: Any = None


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


def fitting(bytes_per_run: int, *, whole: int = 1) -> int:
    """Return how many runs the free memory takes, in multiples of `whole`, and at least that many."""
    runs = min(int(_free() * MEMORY_SHARE) // max(bytes_per_run, 1), MOST_RUNS)
    return max(runs // whole, 1) * whole


def in_batches(work: Callable[[int, int], None], runs: int, bytes_per_run: int, *, whole: int = 1) -> None:
    """Call `work(first, last)` over all runs, as many at a time as fit; after a refusal of memory, half as many."""
    size, first = fitting(bytes_per_run, whole=whole), 0
    while first < runs:
        last = min(first + size, runs)
        try:
            work(first, last)
        except Exception as error:  # drivers refuse memory with various exceptions; others are raised again
            if not (isinstance(error, MemoryError) or "OUT_OF_MEMORY" in str(error).upper().replace(" ", "_")):
                raise
            if size <= whole:
                raise MemoryError(
                    f"the GPU's memory does not take {whole:,} runs of {bytes_per_run:,} bytes each"
                ) from error
            _kept.room = None
            gc.collect()  # release what the failed attempt took
            size = max(size // 2 // whole, 1) * whole
            continue
        first = last


class Stage:
    """An instance and a rule in the GPU's memory, ready to be played by one of the `LOOPS` with its options.

    `bandit` and `parameters` are as the CPU's kernels take them. If `drawn`, each run draws the order of its arms;
    otherwise it is that of `bandit.orders`.
    """

    def __init__(
        self, bandit: Bandit, parameters: Any, loop: str, options: tuple[Any, ...] = (), *, drawn: bool = False
    ) -> None:
        self.arms, self.horizon = bandit.means.size, int(bandit.horizon)
        loop = "index" if loop == "rising" and not _is_plain(options, self.arms) else loop
        self.bandit, self.loop, self.drawn = bandit, loop, drawn
        self.formulas, self.parameters = formulas_of(parameters), _numbers(parameters)
        self._options, self._columns = options or (self.horizon,), getattr(options, "columns", 0)
        self._host_parameters = parameters
        self._merged = loop == "merge" and self.arms <= simulate_index.MOST_MERGED_ARMS
        self._by_levels = loop == "merge" and not self._merged
        self.counts_alone = loop == "elimination" or self._by_levels  # counts are simulated without the actions
        self._kind = np.uint8 if self.arms <= 256 else np.uint16 if self.arms <= 65536 else np.uint32
        self._far, self._listed = cuda.to_device(one_sided()), cuda.to_device(np.array(bandit.listed))
        self._inverse = cuda.to_device(np.ones(1))  # dividing is as fast here as looking up

    def bytes_per_run(self, *, actions: bool) -> int:
        """Return about how much memory a run takes, in bytes."""
        size = 40 * self.arms + 64
        if actions:
            size += self.horizon * np.dtype(self._kind).itemsize
        if self.arms > threads.MOST_ARMS_IN_LOCAL_MEMORY and self.loop != "merge":
            size += 8 * sum(threads.workspace(LOOPS[self.loop], self.arms, self._columns))
        return size

    def scene(self, first_run: int, first: int, last: int) -> Scene:
        """Return the scene of the runs from `first_run + first` to `first_run + last`."""
        shape = self.arms, last - first
        order = place = cuda.device_array((self.arms, 0), np.uint32)
        if self.drawn:
            bits = cuda.device_array(shape, np.uint64)
            order, place = cuda.device_array(shape, np.uint32), cuda.device_array(shape, np.uint32)
            threads.shuffled()[blocks(bits.size)](self.bandit.key, first_run + first, bits)
            threads.arranged()[blocks(bits.size)](bits, order, place)
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
            out[first:last] = host.view(np.uint8)[:, : self.horizon] if self._merged else host

        in_batches(work, runs, self.bytes_per_run(actions=True))

    def evidence(self, first_run: int, first: int, last: int) -> DeviceCounts:
        """Play some runs and count them; the counts stay in the GPU's memory."""
        scene, runs = self.scene(first_run, first, last), last - first
        if self.loop == "elimination":
            pulls, gone = self._room(runs, np.int32), self._room(runs, np.bool_)
            self._launch(threads.counted_eliminations, scene, runs, pulls, gone)
            return DeviceCounts(scene.order, pulls, gone=gone)
        if self._by_levels:
            return self._leveled(scene, runs)
        actions, pulls = self._played(scene, runs)
        if self.loop == "randomised":
            return DeviceCounts(scene.order, pulls)
        tables = [self._room(runs, np.int32) for _ in range(3)]
        if not self._merged:
            threads.switches()[blocks(runs)](actions, pulls, *tables)
            return DeviceCounts(scene.order, pulls, *tables)
        into = cuda.device_array((4, self.arms, runs), np.int32)
        threads.packed_switches()[blocks(runs)](actions, self.horizon, scene.place, pulls, *tables, into)
        return DeviceCounts(scene.order, into[0], into[1], into[2], into[3])

    def gathered(self, first_run: int, runs: int) -> list[tuple[int, int, DeviceCounts]]:
        """Play all runs, and return their counts batch by batch, copied to the host as (runs, arms)."""
        found: list[tuple[int, int, DeviceCounts]] = []

        def work(first: int, last: int) -> None:
            read = self.evidence(first_run, first, last)
            host = [None if part is None else part.copy_to_host().T for part in read]
            found.append((first, last, DeviceCounts(*host)))

        in_batches(work, runs, self.bytes_per_run(actions=not self.counts_alone))
        return found

    def _room(self, runs: int, kind: Any) -> Any:
        return cuda.device_array((self.arms, runs), kind)

    def _played(self, scene: Scene, runs: int) -> tuple[Any, Any]:
        """Return actions (rounds, runs) and pulls (arms, runs) by position; of merged arms: words, and by arm."""
        pulls = self._room(runs, np.int32)
        if self._merged:
            words = scratch((-(-self.horizon // 4), runs), np.uint32)
            play = simulate_index.merged(self.formulas, self.arms, scene.bernoulli)
            size = blocks(runs, simulate_index.threads_per_block(self.arms))
            play[size](scene, self.parameters, self.horizon, words, pulls)
            return words, pulls
        actions = scratch((self.horizon, runs), self._kind)
        self._launch(LOOPS[self.loop], scene, runs, actions, pulls)
        return actions, pulls

    def _launch(self, play: Any, scene: Scene, runs: int, first: Any, second: Any) -> None:
        """Start one thread per run."""
        rows, numbers, counts = 1, 1, 1
        if self.arms > threads.MOST_ARMS_IN_LOCAL_MEMORY:
            rows, (numbers, counts) = runs, threads.workspace(play, self.arms, self._columns)
        room, tally = cuda.device_array((rows, numbers), np.float64), cuda.device_array((rows, counts), np.int64)
        start = threads.one_per_thread(play, self.formulas, self.arms, self._columns)[blocks(runs)]
        start(scene, self.parameters, self._options, first, second, room, tally)

    def _leveled(self, scene: Scene, runs: int) -> DeviceCounts:
        """Count by levels: each of many runs has a thread, and each of few a group of threads."""
        alone = runs >= MANY_RUNS
        few = 4 if SIMULATED else WARP if self.arms < THOUSANDS else SEVERAL_WARPS
        size, each = (blocks(runs)[1],) * 2 if alone else (few, 1)  # threads of a block, and its runs at a time
        at_once = 2 if SIMULATED else cuda.get_current_device().MULTIPROCESSOR_COUNT * (2048 // size)
        rows = simulate_index.ROOM_ALONE if alone else simulate_index.ROOM_IN_A_GROUP
        count = min(-(-runs // each), at_once, fitting(8 * self.arms * each * sum(rows)))
        shapes = [(row, self.arms, count * size) if alone else (count, row, self.arms) for row in rows]
        kinds = np.float64, np.int32 if alone else np.int64
        room = [cuda.device_array(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
        guide = cuda.to_device(level_guide(self._host_parameters, self.bandit.sample, self.arms, self.horizon))
        pulls, own, of_best = (self._room(runs, np.int32) for _ in range(3))
        rounds = cuda.to_device(np.zeros((self.arms, runs), np.int32))
        play = simulate_index.counted_alone if alone else simulate_index.counted_by_levels
        start = play(self.formulas, *(() if alone else (size,)))[count, size]
        start(scene, self.parameters, guide, self.horizon, pulls, own, of_best, *room)
        return DeviceCounts(scene.order, pulls, own, of_best, rounds)


def _is_plain(options: Any, arms: int) -> bool:
    """Return whether few arms are pulled once at first, and then one in every round by indices known at once."""
    at_once = options.initial == options.batch == 1 and options.delay == 0 and not options.random_ties
    return at_once and arms <= threads.MOST_ARMS_IN_LOCAL_MEMORY


def blocks(wanted: int, block: int = THREADS) -> tuple[int, int]:
    """Return the numbers of blocks, and of threads per block, for at least `wanted` threads."""
    block = 4 if SIMULATED else block
    return -(-wanted // block), block


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
