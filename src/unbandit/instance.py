"""Bandits: the mean of every arm, and the noise of its rewards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbandit import checks
from unbandit.errors import ParameterError
from unbandit.tables import Tabular

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Gaussian:
    """Noise of rewards that are normal around the arm's mean, with standard deviation `sigma`."""

    sigma: float = 1.0

    def __post_init__(self) -> None:
        sigma = checks.positive("sigma", self.sigma)
        if not isinstance(self.sigma, int | float):
            object.__setattr__(self, "sigma", sigma)

    @property
    def deviation(self) -> float:
        """Return the standard deviation of a reward."""
        return self.sigma


@dataclass(frozen=True)
class Bernoulli:
    """Noise of rewards that are 1 with the arm's mean as probability, otherwise 0."""

    @property
    def deviation(self) -> float:
        """Return 1/2, the largest standard deviation of such a reward."""
        return 0.5


Noise = Gaussian | Bernoulli


@dataclass(frozen=True, eq=False)
class Instance(Tabular):
    """A bandit: the mean of every arm, the noise, the arms' names.

    Parameters
    ----------
    means
        `mu_i`, one number per arm, two arms or more.
    noise
        `Gaussian(sigma)` or `Bernoulli()`; a plain number is taken as sigma.
    arms
        One name per arm; by default 0, 1, 2, ...
    name
        The instance's name in tables.

    Examples
    --------
    >>> instance = Instance([1.0, 0.5, 0.75], noise=0.5)
    >>> instance.best, instance.best_mean
    ('0', 1.0)
    >>> instance.gaps.tolist()
    [0.0, 0.5, 0.25]
    """

    means: NDArray[np.float64]
    noise: Noise
    arms: tuple[str, ...]
    name: str

    def __init__(
        self, means: ArrayLike, noise: Noise | float = 1.0, arms: Sequence[object] | None = None, name: str = "custom"
    ) -> None:
        values = checks.numbers("means", means)
        if values.ndim != 1 or values.size < 2:
            text = f"expected a list of two numbers or more; got shape {values.shape}."
            raise ParameterError(text, parameter="means")
        kind = noise if isinstance(noise, Gaussian | Bernoulli) else Gaussian(_number(noise))
        expected, good = "finite numbers", np.isfinite(values)
        if isinstance(kind, Bernoulli) and good.all():
            expected, good = "probabilities for Bernoulli rewards", (values >= 0) & (values <= 1)
        if not good.all():
            at = int(np.argmin(good))
            raise ParameterError(f"expected {expected}; got {values[at]:g} at position {at + 1}.", parameter="means")
        checks.text("name", name)
        if arms is not None and not checks.is_list(arms):
            text = f"expected {values.size} names, one for each mean; got {checks.brief(arms)}."
            raise ParameterError(text, parameter="arms", value=arms)
        names = tuple(str(arm).strip() for arm in (range(values.size) if arms is None else arms))
        if len(names) != values.size:
            text = f"expected {values.size} names, one for each mean; got {len(names)}."
            raise ParameterError(text, parameter="arms")
        if len(set(names)) != len(names):
            twice = next(arm for at, arm in enumerate(names) if arm in names[:at])
            raise ParameterError(f'expected different names; got "{twice}" twice.', parameter="arms")
        values.setflags(write=False)
        for field, value in (("means", values), ("noise", kind), ("arms", names), ("name", name)):
            object.__setattr__(self, field, value)

    def __len__(self) -> int:
        return len(self.arms)

    def __repr__(self) -> str:
        span = f"means {self.means.min():.4g} to {self.best_mean:.4g}"
        return f"<Instance {self.name}: {len(self)} arms, {span}, {self.noise}>"

    def to_frame(self) -> polars.DataFrame:
        """Return one row per arm: its mean, and how far that lies below the best one."""
        import polars as pl

        return pl.DataFrame({"arm": self.arms, "mean": self.means, "gap": self.gaps})

    @property
    def sigma(self) -> float:
        """Return the standard deviation of a reward; 1/2, the largest possible, for Bernoulli rewards."""
        return self.noise.deviation

    @property
    def best(self) -> str:
        """Return the name of the best arm (`i*`), the first of them if several are equal."""
        return self.arms[int(self.means.argmax())]

    @property
    def best_mean(self) -> float:
        """Return the mean of the best arm (`mu*`)."""
        return float(self.means.max())

    @property
    def gaps(self) -> NDArray[np.float64]:
        """Return how far each arm's mean lies below the best one (`Delta_i`)."""
        return np.asarray(self.means.max() - self.means)

    def reordered(self, order: ArrayLike) -> Instance:
        """Return the same bandit with its arms listed in another order.

        Examples
        --------
        >>> Instance([1.0, 0.5], arms="AB").reordered([1, 0]).arms
        ('B', 'A')
        """
        positions = np.asarray(order)
        if positions.dtype.kind not in "iu" or sorted(positions.reshape(-1).tolist()) != list(range(len(self))):
            text = f"expected each of 0 to {len(self) - 1} once; got {checks.brief(order)}."
            raise ParameterError(text, parameter="order")
        return Instance(self.means[positions], self.noise, [self.arms[at] for at in positions], self.name)


def noise_with(sigma: float | None) -> Noise:
    """Return the noise with a standard deviation; with none, that of rewards of 0 and 1."""
    return Bernoulli() if sigma is None else Gaussian(sigma)


def _number(noise: object) -> float:
    """Take any number, NumPy's too, for sigma."""
    number = checks.real(noise)
    if number is None:
        text = f"expected Gaussian(sigma), Bernoulli() or a number for sigma; got {checks.brief(noise)}."
        raise ParameterError(text, parameter="noise", value=noise)
    return number


def checked_instance(instance: object) -> Instance:
    """Refuse anything but an instance."""
    if isinstance(instance, Instance):
        return instance
    text = f"expected an Instance; got {checks.brief(instance)}."
    remedy = 'Give one such as Instance([1.0, 0.5]), or datasets.load("two-armed").'
    raise ParameterError(text, parameter="instance", value=instance, remedy=remedy)
