"""What every simulating kernel on a GPU needs to know: an instance, the tape's key, the order of arms."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Scene"]


class Scene(NamedTuple):
    """Hold an instance in the GPU's memory.

    Attributes
    ----------
    far
        The normal quantile's table (`quantile.one_sided`).
    listed
        The means as the instance lists them.
    sigma, bernoulli
        The noise.
    inverse
        1/n as far as the table goes; see `kernels.bandit.inverse_of`.
    key
        The seed, as two 32-bit numbers.
    order, place
        Which arm stands where, and where each arm stands, (arms, runs); of no runs, if all stand as listed.
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
