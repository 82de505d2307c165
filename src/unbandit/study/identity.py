"""What a study is, in words and numbers: all that determines its bytes."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unbandit.demonstrators import Demonstrator
from unbandit.instance import Gaussian, Instance
from unbandit.kernels.compiling import digest_of

__all__ = ["cell_seed", "described", "pretty", "rule_described"]

LISTED = 256
"""Of more arms than this, a digest stands for names and means."""


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


def described(name: str, instance: Instance) -> dict[str, Any]:
    """Describe an instance: every arm, or of very many their number and a digest.

    Examples
    --------
    >>> described("two", Instance([1.0, 0.5], arms="AB"))
    {'name': 'two', 'noise': 'Gaussian(sigma=1.0)', 'arms': ['A', 'B'], 'means': [1.0, 0.5]}
    """
    known: dict[str, Any] = {"name": name, "noise": str(instance.noise)}
    if len(instance) <= LISTED:
        return known | {"arms": list(instance.arms), "means": instance.means.tolist()}
    said = json.dumps([_means(instance), list(instance.arms)])
    return known | {"arms": len(instance), "sha256": hashlib.sha256(said.encode()).hexdigest()}


def rule_described(rule: Demonstrator) -> str:
    """Describe a rule: its text and, for one from outside this package, a digest of the file that it stands in.

    Examples
    --------
    >>> from unbandit import UCB
    >>> rule_described(UCB(alpha=0.5, scale=1.0))
    'ucb:alpha=0.5,scale=1.0'
    """
    if type(rule).__module__.split(".")[0] == __name__.split(".")[0]:
        return str(rule)
    try:
        file = Path(inspect.getfile(type(rule)))
    except (TypeError, OSError):  # made in a shell: there is no file
        return str(rule)
    return f"{rule} (source {digest_of(file)})" if file.is_file() else str(rule)


def pretty(value: Any, indent: str = "") -> str:
    """Write JSON for people: a key a line, and lists of plain values in one line.

    Examples
    --------
    >>> print(pretty({"runs": 2, "horizons": [10, 20]}))
    {
      "runs": 2,
      "horizons": [10, 20]
    }
    """
    inner = indent + "  "
    if isinstance(value, Mapping) and value:
        lines = [f"{inner}{json.dumps(key)}: {pretty(part, inner)}" for key, part in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(part, list | Mapping) for part in value):
        return "[\n" + ",\n".join(inner + pretty(part, inner) for part in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _means(instance: Instance) -> list[str]:
    largest = float(abs(instance.means).max()) or 1.0
    shares = (instance.means / largest).round(9) + 0.0  # there is one zero
    return [f"{largest:.9g}", *(f"{share:.9f}" for share in shares)]


def _noise(instance: Instance) -> str:
    return f"gaussian {instance.sigma:.9g}" if isinstance(instance.noise, Gaussian) else "bernoulli"
