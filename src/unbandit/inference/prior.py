"""What is believed about every mean before the record is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import ParameterError
from unbandit.kernels.smc.cloud import Belief

__all__ = ["CERTAIN", "BetaPrior", "NormalPrior", "Prior", "belief_of", "parse_prior", "usual_prior"]

CERTAIN = 1e14
"""Stands for a Beta prior without width: so many rewards as good as seen."""


@dataclass(frozen=True)
class NormalPrior:
    """Expect means around `mean`, with standard deviation `deviation`; for rewards with normal noise.

    Examples
    --------
    >>> str(NormalPrior(deviation=2))
    'normal:mean=0.0,deviation=2.0'
    """

    mean: float = 0.0
    deviation: float = 1.0

    def __post_init__(self) -> None:
        for name in ("mean", "deviation"):
            object.__setattr__(self, name, _number(name, getattr(self, name)))
        if not self.deviation > 0:
            raise ParameterError(
                f"deviation: expected a positive number; got {self.deviation}. A mean that is known goes into "
                "anchor, or best_mean.",
                parameter="prior",
            )

    def __str__(self) -> str:
        return f"normal:mean={self.mean},deviation={self.deviation}"

    def draw(self, generator: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Draw means."""
        return generator.normal(self.mean, self.deviation, size)


@dataclass(frozen=True)
class BetaPrior:
    """Expect probabilities as after so many successes and failures; for rewards of 0 and 1.

    Examples
    --------
    >>> str(BetaPrior(2, 1))
    'beta:successes=2.0,failures=1.0'
    """

    successes: float = 1.0
    failures: float = 1.0

    def __post_init__(self) -> None:
        for name in ("successes", "failures"):
            value = _number(name, getattr(self, name))
            if not value > 0:
                raise ParameterError(f"{name}: expected a positive number; got {value}.", parameter="prior")
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return f"beta:successes={self.successes},failures={self.failures}"

    def draw(self, generator: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Draw means."""
        return generator.beta(self.successes, self.failures, size)


Prior = NormalPrior | BetaPrior


def parse_prior(text: str) -> Prior:
    """Read `normal:mean=0,deviation=1` or `beta:successes=1,failures=1`; what is left out is as usual.

    Examples
    --------
    >>> parse_prior("normal:deviation=2")
    NormalPrior(mean=0.0, deviation=2.0)
    """
    kinds: dict[str, type[NormalPrior] | type[BetaPrior]] = {"normal": NormalPrior, "beta": BetaPrior}
    name, _, rest = text.strip().partition(":")
    if name.lower() not in kinds:
        raise ParameterError(
            f'expected normal or beta, as in normal:mean=0,deviation=1; got "{text}".', parameter="prior"
        )
    kind, values = kinds[name.lower()], {}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        known = [field.name for field in fields(kind)]
        if not equals or key not in known:
            raise ParameterError(f'expected {" and ".join(known)} for {name}; got "{part}".', parameter="prior")
        values[key] = _number(key, value)
    return kind(**values)


def usual_prior(sigma: float | None, known: float | None) -> Prior:
    """Return the prior where none is given: wide beside the noise, around a mean that is known.

    Sigma None stands for rewards of 0 and 1.
    """
    if sigma is None:
        return BetaPrior()
    return NormalPrior(0.0 if known is None else known, max(1.0, 2 * sigma))


def belief_of(prior: Prior, arms: int, sigma: float | None, anchor: tuple[int, float] | None) -> Belief:
    """Lay a prior out for the kernels: one number an arm, an arm of known mean having no width."""
    if isinstance(prior, BetaPrior) != (sigma is None):
        wanted = "a beta prior for rewards of 0 and 1" if sigma is None else "a normal prior for normal rewards"
        raise ParameterError(
            f"expected {wanted}; got {prior}. Say bernoulli, or give sigma, to choose.", parameter="prior"
        )
    if isinstance(prior, NormalPrior):
        first, second = np.full(arms, prior.mean), np.full(arms, prior.deviation**2)
        if anchor is not None:
            first[anchor[0]], second[anchor[0]] = anchor[1], 0.0
        return Belief(False, first, second, float(sigma or 0.0))
    first, second = np.full(arms, prior.successes), np.full(arms, prior.failures)
    if anchor is not None:
        first[anchor[0]], second[anchor[0]] = 1 + CERTAIN * anchor[1], 1 + CERTAIN * (1 - anchor[1])
    return Belief(True, first, second, 1.0)


def _number(name: str, value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(f"{name}: expected a finite number; got {value!r}.", parameter="prior")
    return number
