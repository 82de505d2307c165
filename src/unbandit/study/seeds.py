"""Where a cell's randomness comes from: a seed that depends on the cell and on the study's seed alone."""

from __future__ import annotations

import hashlib
import json

from unbandit.demonstrators import Demonstrator
from unbandit.instance import Gaussian, Instance

__all__ = ["cell_seed"]


def cell_seed(seed: int, name: str, instance: Instance, rule: Demonstrator, horizon: int) -> int:
    """Derive the seed of a cell, from 0 to 2^64 - 1: it depends on the cell and the study's seed, on nothing else.

    Means count to nine digits of the largest, so that a library which rounds the last bit differently changes nothing.

    Examples
    --------
    >>> from unbandit import UCB
    >>> cell_seed(1, "two", Instance([1.0, 0.5]), UCB(), 500) == cell_seed(1, "two", Instance([1.0, 0.5]), UCB(), 501)
    False
    """
    said = json.dumps([seed, name, _means(instance), _noise(instance), str(rule), horizon])
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "big")


def _means(instance: Instance) -> list[str]:
    largest = float(abs(instance.means).max()) or 1.0
    shares = (instance.means / largest).round(9) + 0.0  # there is one zero
    return [f"{largest:.9g}", *(f"{share:.9f}" for share in shares)]


def _noise(instance: Instance) -> str:
    return f"gaussian {instance.sigma:.9g}" if isinstance(instance.noise, Gaussian) else "bernoulli"
