"""Random numbers as pure functions of counters: nothing is stored, nothing depends on the order of drawing.

These are the paper's reward tapes: cell `n` of arm `i`'s tape in run `r` is fixed before anyone pulls. The same seed
gives the same demonstration on one thread, on sixteen, or on another machine, and a run can be replayed.

The generator is Philox4x32-10 with counter `(pull, arm, run, stream)` and the seed as key; one block serves two pulls.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbandit import checks
from unbandit.errors import ParameterError
from unbandit.instance import Gaussian, Instance, checked_instance
from unbandit.kernels import rng
from unbandit.kernels.rng import QUANTILE_TABLE


class Stream(IntEnum):
    """The purposes of draws: streams never overlap."""

    REWARDS = 0
    DECISIONS = 1
    TIES = 2
    ORDERS = 3
    BRIDGES = 16
    DELAYS = 24
    OPENINGS = 25
    CONTEXTS = 26


@dataclass(frozen=True)
class Tape:
    """The random numbers of a seed.

    Parameters
    ----------
    seed
        A whole number from 0 to 2^64 - 1.

    Examples
    --------
    >>> tape = Tape(seed=7)
    >>> (tape.normal(run=0, arm=1, pull=[1, 2, 3]) == tape.normal(run=0, arm=1, pull=[3, 2, 1])[::-1]).all()
    np.True_
    """

    seed: int = 0

    def __post_init__(self) -> None:
        checks.seed(self.seed)

    @property
    def key(self) -> tuple[np.uint64, np.uint64]:
        """Return the seed as the generator's two 32-bit keys."""
        return np.uint64(int(self.seed) & 0xFFFFFFFF), np.uint64(int(self.seed) >> 32)

    def words(
        self, run: ArrayLike, arm: ArrayLike, pull: ArrayLike, stream: Stream = Stream.REWARDS
    ) -> NDArray[np.uint64]:
        """Return 64 random bits for each run, arm and pull (counted from 1); arguments are broadcast.

        Draws for decisions, ties and delays have the round in place of the pull.
        """
        places = [_positions(name, place) for name, place in (("run", run), ("arm", arm), ("pull", pull))]
        places[2] = places[2] - 1
        limits = (2**32, 2**32, 2**33)
        ends = [(place.min(initial=0), place.max(initial=0)) for place in places]
        if any(low < 0 or high >= limit for (low, high), limit in zip(ends, limits, strict=True)):
            raise ParameterError("expected numbers from 0 to 2^32 - 1; pull: from 1 to 2^33.", parameter="run, arm")
        broadcast = np.broadcast_arrays(*places)
        flat = [np.ascontiguousarray(place, dtype=np.uint64).reshape(-1) for place in broadcast]
        return rng.words(*self.key, flat[0], flat[1], flat[2], np.uint64(stream)).reshape(broadcast[0].shape)

    def uniform(
        self, run: ArrayLike, arm: ArrayLike, pull: ArrayLike, stream: Stream = Stream.DECISIONS
    ) -> NDArray[np.float64]:
        """Return numbers in (0, 1)."""
        bits = self.words(run, arm, pull, stream)
        return rng.uniforms(bits.reshape(-1)).reshape(bits.shape)

    def normal(
        self, run: ArrayLike, arm: ArrayLike, pull: ArrayLike, stream: Stream = Stream.REWARDS
    ) -> NDArray[np.float64]:
        """Return standard normals."""
        bits = self.words(run, arm, pull, stream)
        return rng.normals(bits.reshape(-1), QUANTILE_TABLE).reshape(bits.shape)

    def orders(self, runs: ArrayLike, arms: int) -> NDArray[np.int64]:
        """Return a random order of the arms for each run, all equally likely; shape (runs, arms).

        Examples
        --------
        >>> sorted(Tape(3).orders([7], arms=4)[0].tolist())
        [0, 1, 2, 3]
        """
        arms = checks.whole("arms", arms)
        bits = self.words(_positions("runs", runs).reshape(-1, 1), np.arange(arms), 1, Stream.ORDERS)
        return np.argsort(bits, axis=1, kind="stable")

    def reward(self, instance: Instance, run: ArrayLike, arm: ArrayLike, pull: ArrayLike) -> NDArray[np.float64]:
        """Return the reward of the `pull`-th pull of `arm` in `run`.

        Examples
        --------
        >>> Tape(3).reward(Instance([1.0, 0.5], noise=1e-9), run=0, arm=[0, 1], pull=1).round(6).tolist()
        [1.0, 0.5]
        """
        places = _positions("arm", arm)
        if places.size and not 0 <= places.min() <= places.max() < len(checked_instance(instance)):
            raise ParameterError(f"expected positions from 0 to {len(instance) - 1}.", parameter="arm", value=arm)
        means = instance.means[places]
        if isinstance(instance.noise, Gaussian):
            return np.asarray(means + instance.noise.sigma * self.normal(run, arm, pull))
        return np.asarray(self.uniform(run, arm, pull, Stream.REWARDS) < means, dtype=np.float64)


def _positions(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Check whole numbers in any arrangement: the generator counts with them."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and array.size:
        text = f"expected whole numbers; got {checks.brief(values)}."
        raise ParameterError(text, parameter=name, value=values, remedy="Write them as 0 or as [0, 1, 2].")
    return array.astype(np.int64)


def normal_quantile(probability: ArrayLike) -> NDArray[np.float64]:
    """Return the standard normal quantile, with a relative error below 1e-14 everywhere in (0, 1).

    Examples
    --------
    >>> normal_quantile([0.5, 0.975, 1e-300]).round(6).tolist()
    [0.0, 1.959964, -37.047096]
    """
    values = checks.numbers("probability", probability)
    return rng.quantiles(values.reshape(-1), QUANTILE_TABLE).reshape(values.shape)
