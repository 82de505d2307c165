"""Draw from the tape at many places at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import compiled
from unbandit.kernels.scalar import normal_from_word, normal_quantile, philox, uniform_from_word

__all__ = ["normals", "quantiles", "uniforms", "words"]

ONE = np.uint64(1)


@compiled
def words(
    key_low: np.uint64,
    key_high: np.uint64,
    run: NDArray[np.uint64],
    arm: NDArray[np.uint64],
    pull: NDArray[np.uint64],
    stream: np.uint64,
    out: NDArray[np.uint64],
) -> None:
    """Fill `out` with the 64 bits at each (run, arm, pull); pulls are counted from 0, two to a block."""
    for at in range(out.size):
        first, second = philox(pull[at] >> ONE, arm[at], run[at], stream, key_low, key_high)
        out[at] = second if pull[at] & ONE else first


@compiled
def uniforms(bits: NDArray[np.uint64], out: NDArray[np.float64]) -> None:
    """Turn words into numbers in (0, 1)."""
    for at in range(out.size):
        out[at] = uniform_from_word(bits[at])


@compiled
def normals(bits: NDArray[np.uint64], table: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Turn words into standard normals."""
    for at in range(out.size):
        out[at] = normal_from_word(bits[at], table)


@compiled
def quantiles(probability: NDArray[np.float64], table: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Turn probabilities into standard normal quantiles."""
    for at in range(out.size):
        out[at] = normal_quantile(probability[at], table)
