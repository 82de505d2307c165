"""What a study is, in words and numbers: all that determines its bytes."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from unbandit._version import __version__
from unbandit.demonstrators import Demonstrator
from unbandit.instance import Instance
from unbandit.kernels.compiling import digest_of
from unbandit.study.families import Family, ShrinkingGap
from unbandit.study.tasks import GPU_ROUNDS, ROUNDS, ROWS

if TYPE_CHECKING:
    from unbandit.study.grid import Study

__all__ = ["SCHEMA", "code", "described", "identity", "pretty", "rule_described"]

SCHEMA = "unbandit.study/1"

LISTED = 256
"""Of more arms than this, a digest stands for names and means."""

DECIDING = (
    *("kernels", "demonstrators", "estimators", "tape.py", "instance.py", "result.py", "datasets/synthetic.py"),
    *("study/grid.py", "study/estimator.py", "study/rows.py", "study/seeds.py", "study/tasks.py", "study/families.py"),
    *("study/sums.py", "study/folding.py"),
)
"""The files, and folders of files, that decide a study's numbers; instances are described by their own."""


def identity(study: Study) -> dict[str, Any]:
    """Return all that determines a study's bytes, as plain values."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "code": code(),
        "polars": pl.__version__,
        "instances": [
            described(given.name, given) if isinstance(given, Instance) else _family(given, study)
            for given in study.instances
        ],
        "rules": [rule_described(rule) for rule in study.rules],
        "horizons": list(study.horizons),
        "runs": study.runs,
        "seed": study.seed,
        "estimators": [str(estimator) for estimator in study.estimators],
        "level": study.level,
        "device": study.device,
        "keep": study.keep,
        "tasks": {"rounds": GPU_ROUNDS if study.device == "cuda" else ROUNDS, "rows": ROWS, "count": len(study.tasks)},
    }


@cache
def code(*deciding: str) -> str:
    """Return a digest of the sources that decide a study's numbers: parts of edited code must not be mixed.

    A study of another kind names the files, and folders of files, that decide its own.

    Examples
    --------
    >>> len(code())
    12
    """
    home = Path(__file__).parents[1]
    places = [home / name for name in deciding or DECIDING]
    files = [file for place in places for file in (sorted(place.rglob("*")) if place.is_dir() else [place])]
    sources = [file for file in files if file.suffix in {".py", ".npy"}]
    return digest_of(*sources, text="\n".join(file.relative_to(home).as_posix() for file in sources))


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
    said = json.dumps([instance.means.tolist(), list(instance.arms)])
    return known | {"arms": len(instance), "sha256": hashlib.sha256(said.encode()).hexdigest()}


def _family(given: Family, study: Study) -> dict[str, Any]:
    """Describe a family: ours by its parameters, any other by what it gives."""
    if type(given) is ShrinkingGap:  # a subclass may give anything
        return {"name": given.name, "family": "shrinking-gap", "beta": given.beta, "bernoulli": given.bernoulli}
    members = {cell.horizon: cell.instance for cell in study.cells if cell.instance_name == given.name}
    return {
        "name": given.name,
        "family": type(given).__qualname__,
        "members": [described(str(horizon), instance) for horizon, instance in members.items()],
    }


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
