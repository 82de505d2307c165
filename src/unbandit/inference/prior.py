"""The prior on every mean."""

from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.errors import ParameterError, option
from unbandit.instance import Bernoulli, Gaussian, Noise
from unbandit.kernels.smc.cloud import Belief

CERTAIN = 1e14  # the number of rewards that stands for a Beta prior without width


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
        known = f"A mean that is known goes into {option('anchor')}, or {option('best_mean')}."
        _check(self, "mean")
        _check(self, "deviation", positive=True, remedy=known)

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
        _check(self, "successes", positive=True)
        _check(self, "failures", positive=True)

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
    checks.text("prior", text)
    text = text or ""  # None is refused as a text without a name is
    name, _, rest = text.strip().partition(":")
    kind = kinds.get(name.lower())
    if kind is None:
        raise ParameterError(
            f'expected normal or beta, as in normal:mean=0,deviation=1; got "{text}".', parameter="prior", value=text
        )
    known = [field.name for field in fields(kind)]
    values: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in known:
            raise ParameterError(
                f'expected {" and ".join(known)} for {name}; got "{part}".', parameter="prior", value=text
            )
        values[key] = value
        with suppress(ValueError):  # a text that is no number is refused by the prior
            values[key] = float(value)
    return kind(**values)


def usual_prior(noise: Noise, known: float | None) -> Prior:
    """Return the default prior: wide compared with the noise, around a mean that is known."""
    if isinstance(noise, Bernoulli):
        return BetaPrior()
    return NormalPrior(0.0 if known is None else known, max(1.0, 2 * noise.sigma))


def belief_of(prior: Prior, arms: int, noise: Noise, anchor: tuple[int, float] | None) -> Belief:
    """Lay a prior out for the kernels: one number per arm; an arm of known mean has no width."""
    if isinstance(prior, NormalPrior) and isinstance(noise, Gaussian):
        first, second = np.full(arms, prior.mean), np.full(arms, prior.deviation**2)
        if anchor is not None:
            first[anchor[0]], second[anchor[0]] = anchor[1], 0.0
        return Belief(False, first, second, noise.sigma)
    if isinstance(prior, BetaPrior) and isinstance(noise, Bernoulli):
        first, second = np.full(arms, prior.successes), np.full(arms, prior.failures)
        if anchor is not None:
            first[anchor[0]], second[anchor[0]] = 1 + CERTAIN * anchor[1], 1 + CERTAIN * (1 - anchor[1])
        return Belief(True, first, second, 1.0)
    needed = "normal prior for normal rewards" if isinstance(noise, Gaussian) else "beta prior for rewards of 0 and 1"
    raise ParameterError(
        f"expected a {needed}; got {prior}.",
        parameter="prior",
        value=prior,
        remedy=f"Say {option('bernoulli')}, or give {option('sigma')}, to choose.",
    )


def _check(prior: Prior, name: str, positive: bool = False, remedy: str | None = None) -> None:
    """Check a parameter, and keep it as a float; an error names the prior, as which it was given."""
    value = getattr(prior, name)
    try:
        number = checks.positive(name, checks.finite(name, value)) if positive else checks.finite(name, value)
    except ParameterError as error:
        raise ParameterError(f"{name}: {error.text}", parameter="prior", value=value, remedy=remedy) from None
    object.__setattr__(prior, name, number)
