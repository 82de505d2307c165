"""The prior on every mean."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import ParameterError, option
from unbandit.instance import Bernoulli, Gaussian, Noise, noise_of
from unbandit.kernels.smc.cloud import Belief

CERTAIN = 1e14
"""The number of rewards that stands for a Beta prior without width."""


@dataclass(frozen=True)
class NormalPrior:
    """Means around `mean`, with standard deviation `deviation`; for rewards with normal noise.

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
                f"deviation: expected a positive number; got {self.deviation}.",
                parameter="prior",
                value=self.deviation,
                remedy=f"A mean that is known goes into {option('anchor')}, or {option('best_mean')}.",
            )

    def __str__(self) -> str:
        return f"normal:mean={self.mean},deviation={self.deviation}"

    def draw(self, generator: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Draw means."""
        return generator.normal(self.mean, self.deviation, size)


@dataclass(frozen=True)
class BetaPrior:
    """Success probabilities as after some successes and failures; for rewards of 0 and 1.

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
                raise ParameterError(
                    f"{name}: expected a positive number; got {value}.", parameter="prior", value=value
                )
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return f"beta:successes={self.successes},failures={self.failures}"

    def draw(self, generator: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Draw means."""
        return generator.beta(self.successes, self.failures, size)


Prior = NormalPrior | BetaPrior


def parse_prior(text: str) -> Prior:
    """Read `normal:mean=0,deviation=1` or `beta:successes=1,failures=1`; what is left out has its default.

    Examples
    --------
    >>> parse_prior("normal:deviation=2")
    NormalPrior(mean=0.0, deviation=2.0)
    """
    kinds: dict[str, type[NormalPrior] | type[BetaPrior]] = {"normal": NormalPrior, "beta": BetaPrior}
    name, _, rest = text.strip().partition(":")
    if name.lower() not in kinds:
        raise ParameterError(
            f'expected normal or beta, as in normal:mean=0,deviation=1; got "{text}".', parameter="prior", value=text
        )
    kind, values = kinds[name.lower()], {}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        known = [field.name for field in fields(kind)]
        if not equals or key not in known:
            raise ParameterError(
                f'expected {" and ".join(known)} for {name}; got "{part}".', parameter="prior", value=text
            )
        values[key] = _number(key, value)
    return kind(**values)


def usual_prior(noise: Noise | float | None, known: float | None) -> Prior:
    """Return the default prior: wide compared with the noise, around a mean that is known."""
    noise = noise_of(noise)
    if isinstance(noise, Bernoulli):
        return BetaPrior()
    return NormalPrior(0.0 if known is None else known, max(1.0, 2 * noise.sigma))


def belief_of(prior: Prior, arms: int, noise: Noise, anchor: tuple[int, float] | None) -> Belief:
    """Lay a prior out for the kernels: one number per arm; an arm of known mean has no width."""
    if isinstance(prior, BetaPrior) != isinstance(noise, Bernoulli):
        needed = (
            "a beta prior for rewards of 0 and 1"
            if isinstance(noise, Bernoulli)
            else "a normal prior for normal rewards"
        )
        raise ParameterError(
            f"expected {needed}; got {prior}.",
            parameter="prior",
            value=prior,
            remedy=f"Say {option('bernoulli')}, or give {option('sigma')}, to choose.",
        )
    if isinstance(prior, NormalPrior):
        first, second = np.full(arms, prior.mean), np.full(arms, prior.deviation**2)
        if anchor is not None:
            first[anchor[0]], second[anchor[0]] = anchor[1], 0.0
        return Belief(False, first, second, noise.sigma if isinstance(noise, Gaussian) else 0.0)
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
        raise ParameterError(f"{name}: expected a finite number; got {value!r}.", parameter="prior", value=value)
    return number
