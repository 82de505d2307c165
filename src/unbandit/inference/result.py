"""The posterior of every mean: draws, and what they answer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit._version import __version__
from unbandit.errors import MissingExtra, Notice, ParameterError
from unbandit.files import written_whole
from unbandit.fit import UNCHECKED, Check, FittedNumber
from unbandit.inference.prior import Prior
from unbandit.instance import Gaussian, Noise

if TYPE_CHECKING:
    import polars
    from matplotlib.figure import Figure


def gaps_of(means: NDArray[np.float64], rivals: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Return gaps to the best arm; of each arm to the best of its `rivals` (arms x arms), if not of all."""
    if rivals is None:
        return np.asarray(means.max(axis=-1, keepdims=True) - means)
    return np.stack([means[..., own].max(axis=-1) - means[..., arm] for arm, own in enumerate(rivals)], axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Draws from the posterior of every arm's mean, given which arms were pulled.

    Attributes
    ----------
    rule, prior, noise, horizon
        The assumptions.
    arms, pulls
        The arms' names, and how often each was pulled.
    means
        Draws of every mean: (clouds, draws, arms). Clouds of particles are independent of each other, so they can be
        read as Markov chains.
    log_evidence, log_evidence_error
        Natural logarithm of the record's probability under the rule and the prior, and its Monte-Carlo standard error.
    evidences
        The log evidence by each cloud.
    effective_size, particles
        The smallest effective sample size that any cloud fell to before it was resampled, and the size of a cloud.
    surprise
        The log probability of each round given those before it; NaN if its approximation misses the log's evidence.
        For an index rule, whose filter looks ahead, it stands in the round whose reward was constrained.
    path_rounds, path
        At some rounds of the first demonstration, and given it alone, the hidden sample mean of each arm: (rounds,
        arms, 3), the ends of a 95% band and the median between them; NaN before an arm's first pull. Empty where values
        are averaged over several rules or sets of parameters (`identify`); numbers of single clouds are NaN there.
    warnings
        What may be wrong.
    check
        Whether the assumed rule fits the log.
    fitted
        The rule's numbers that were fitted from the log (`FIT`), each with an interval. The draws are averaged over
        them; evidence, path and surprise are those at their medians.
    rivals
        For each arm the arms that its gap is to the best of: those that could be pulled in its last round. None for all
        arms, if all could be pulled in all rounds.
    """

    rule: str
    prior: Prior
    noise: Noise
    horizon: int
    arms: tuple[str, ...]
    pulls: NDArray[np.int64]
    means: NDArray[np.float64]
    log_evidence: float
    log_evidence_error: float
    evidences: NDArray[np.float64]
    effective_size: float
    particles: int
    surprise: NDArray[np.float64]
    path_rounds: NDArray[np.int64]
    path: NDArray[np.float64]
    warnings: tuple[Notice, ...] = ()
    check: Check = UNCHECKED
    fitted: tuple[FittedNumber, ...] = ()
    rivals: NDArray[np.bool_] | None = None

    def __repr__(self) -> str:
        best = int(self.probability_best.argmax())
        return (
            f"<Posterior: {len(self.arms)} arms, {self.rule}, best {self.arms[best]} with probability "
            f"{self.probability_best[best]:.3g}, log evidence {self.log_evidence:.1f} +- {self.log_evidence_error:.1f}>"
        )

    @property
    def sigma(self) -> float | None:
        """Return the standard deviation of a reward; None for rewards of 0 and 1."""
        return self.noise.sigma if isinstance(self.noise, Gaussian) else None

    @property
    def draws(self) -> NDArray[np.float64]:
        """Return all draws of the means, (draws, arms)."""
        return self.means.reshape(-1, len(self.arms))

    @cached_property
    def gaps(self) -> NDArray[np.float64]:
        """Return draws of every gap to the best arm of the draw, or of an arm's `rivals`: (clouds, draws, arms)."""
        return gaps_of(self.means, self.rivals)

    @cached_property
    def probability_best(self) -> NDArray[np.float64]:
        """Return for each arm the probability that it is the best."""
        winners = np.bincount(self.draws.argmax(axis=1), minlength=len(self.arms))
        return np.asarray(winners / winners.sum())

    def beats(self, arm: object, other: object, by: float = 0.0) -> float:
        """Return the probability that an arm is better than another by at least `by`."""
        first, second = (checks.position("arm", str(label), self.arms) for label in (arm, other))
        return float((self.draws[:, first] - self.draws[:, second] >= checks.finite("by", by)).mean())

    def interval(self, level: float = 0.95, *, gaps: bool = False) -> NDArray[np.float64]:
        """Return the central interval of every mean, or gap: (2, arms)."""
        level = checks.level(level)
        checks.flag("gaps", gaps)
        values = self.gaps.reshape(-1, len(self.arms)) if gaps else self.draws
        return np.asarray(np.quantile(values, [0.5 - level / 2, 0.5 + level / 2], axis=0))

    def summary(self, level: float = 0.95) -> dict[str, NDArray[np.float64]]:
        """Return expectation and central interval of every mean and every gap, by name."""
        values: dict[str, NDArray[np.float64]] = {}
        for name, draws in (("mean", self.draws), ("gap", self.gaps.reshape(-1, len(self.arms)))):
            low, high = self.interval(level, gaps=name == "gap")
            values |= {name: draws.mean(axis=0), f"{name}_low": low, f"{name}_high": high}
        return values

    def frame(self, level: float = 0.95) -> polars.DataFrame:
        """Return a table, one row per arm, best first."""
        import polars as pl

        about = {"arm": self.arms, "pulls": self.pulls, "probability_best": self.probability_best}
        return pl.DataFrame(about | self.summary(level)).sort("gap", maintain_order=True)

    def to_netcdf(self, path: str | os.PathLike[str]) -> None:
        """Write a netCDF file that ArviZ reads, with dimensions chain, draw and arm; needs the extra `posterior`."""
        try:
            import h5netcdf  # noqa: F401
            import xarray
        except ImportError:
            raise MissingExtra("netCDF", "posterior") from None
        checks.path("path", path)
        clouds, draws, _ = self.means.shape
        coordinates = {"chain": np.arange(clouds), "draw": np.arange(draws), "arm": list(self.arms)}
        dimensions = ("chain", "draw", "arm")
        about = {
            "created_by": f"unbandit {__version__}", "rule": self.rule, "prior": str(self.prior),
            "horizon": self.horizon, "sigma": self.noise.sigma if isinstance(self.noise, Gaussian) else "bernoulli",
            "log_evidence": self.log_evidence, "log_evidence_error": self.log_evidence_error,
        }  # fmt: skip
        values = {"mean": (dimensions, self.means), "gap": (dimensions, self.gaps)}
        chains = {"chain": coordinates["chain"]}
        groups = {
            "posterior": xarray.Dataset(values, coordinates, about),
            "sample_stats": xarray.Dataset({"log_evidence": (("chain",), self.evidences)}, chains),
            "observed_data": xarray.Dataset({"pulls": (("arm",), self.pulls)}, {"arm": coordinates["arm"]}),
        }
        with written_whole(path) as temporary:
            for name, group in groups.items():
                group.to_netcdf(temporary, mode="w" if name == "posterior" else "a", group=name, engine="h5netcdf")

    def plot(
        self,
        kind: Literal["paths", "densities"] = "paths",
        *,
        gaps: bool = True,
        truth: Mapping[str, float] | None = None,
    ) -> Figure:
        """Draw the hidden sample means round by round, or the posterior density of every arm.

        Parameters
        ----------
        kind
            `paths`: the hidden sample mean of every arm with its 95% band; or `densities` (`plots.densities`).
        gaps, truth
            Of the densities: whether of gaps or of means, and the true ones where they are known.
        """
        from unbandit import plots

        if checks.one_of("kind", kind, ("paths", "densities")) == "densities":
            checks.flag("gaps", gaps)
            return plots.densities(self, gaps=gaps, truth=truth)
        if not self.path_rounds.size:
            raise ParameterError(
                "expected densities, since no hidden path is of several rules or sets of parameters; got paths.",
                parameter="kind", value=kind, remedy='Use plot("densities").',
            )  # fmt: skip
        return plots.hidden_paths(self.path_rounds, self.path, self.arms, self.rule)
