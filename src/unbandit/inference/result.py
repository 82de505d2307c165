"""The posterior of every mean: draws, and what they answer."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit._version import __version__
from unbandit.errors import MissingExtra, Notice, ParameterError
from unbandit.files import written_whole
from unbandit.inference.prior import Prior

if TYPE_CHECKING:
    import polars
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Hold draws from the posterior of every arm's mean, given which arms were pulled.

    Attributes
    ----------
    rule, prior, sigma, horizon
        What was assumed; sigma is None for rewards of 0 and 1.
    arms, pulls
        The arms' names, and how often each was pulled.
    means
        Draws of every mean: (clouds, draws, arms). Each cloud of particles is independent of the others, so a reader
        of Markov chains may take them for chains.
    log_evidence, log_evidence_error
        Natural logarithm of the record's probability under the rule and the prior, and its Monte-Carlo standard error.
    evidences
        The same by each cloud.
    effective_size, particles
        The smallest effective sample size that any cloud fell to before it was resampled, and the size of a cloud.
    surprise
        The logarithm of each round's probability given those before it. Where an index rule is looked ahead, it stands
        in the round whose reward had to be so.
    path_rounds, path
        At some rounds the hidden sample mean of each arm: (rounds, arms, 3), the ends of a 95% band and the median
        between them; NaN before an arm's first pull.
    warnings
        What may be wrong, in words.
    """

    rule: str
    prior: Prior
    sigma: float | None
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

    def __repr__(self) -> str:
        best = int(self.probability_best.argmax())
        return (
            f"<Posterior: {len(self.arms)} arms, {self.rule}, best {self.arms[best]} with probability "
            f"{self.probability_best[best]:.3g}, log evidence {self.log_evidence:.1f} +- {self.log_evidence_error:.1f}>"
        )

    @property
    def draws(self) -> NDArray[np.float64]:
        """Return all draws of the means, (draws, arms)."""
        return self.means.reshape(-1, len(self.arms))

    @cached_property
    def gaps(self) -> NDArray[np.float64]:
        """Return draws of every gap to the best arm of the draw: (clouds, draws, arms)."""
        return np.asarray(self.means.max(axis=-1, keepdims=True) - self.means)

    @cached_property
    def probability_best(self) -> NDArray[np.float64]:
        """Return for each arm the probability that it is the best."""
        winners = np.bincount(self.draws.argmax(axis=1), minlength=len(self.arms))
        return np.asarray(winners / winners.sum())

    def beats(self, arm: object, other: object, by: float = 0.0) -> float:
        """Return the probability that an arm is better than another, by at least so much."""
        first, second = (self._position(label) for label in (arm, other))
        if not math.isfinite(by):
            raise ParameterError(f"expected a finite number; got {by}.", parameter="by")
        return float((self.draws[:, first] - self.draws[:, second] >= by).mean())

    def interval(self, level: float = 0.95, *, gaps: bool = False) -> NDArray[np.float64]:
        """Return the central interval of every mean, or gap: (2, arms)."""
        if not 0 < level < 1:
            raise ParameterError(f"expected a number between 0 and 1; got {level}.", parameter="level")
        values = self.gaps.reshape(-1, len(self.arms)) if gaps else self.draws
        return np.asarray(np.quantile(values, [0.5 - level / 2, 0.5 + level / 2], axis=0))

    def frame(self, level: float = 0.95) -> polars.DataFrame:
        """Return a table, one row an arm, best first."""
        import polars as pl

        mean_low, mean_high = self.interval(level)
        gap_low, gap_high = self.interval(level, gaps=True)
        table = pl.DataFrame(
            {
                "arm": self.arms, "pulls": self.pulls, "probability_best": self.probability_best,
                "mean": self.draws.mean(axis=0), "mean_low": mean_low, "mean_high": mean_high,
                "gap": self.gaps.reshape(-1, len(self.arms)).mean(axis=0), "gap_low": gap_low, "gap_high": gap_high,
            }
        )  # fmt: skip
        return table.sort("gap", maintain_order=True)

    def to_netcdf(self, path: str | os.PathLike[str]) -> None:
        """Write the draws as a netCDF file that ArviZ reads; needs the extra `posterior`."""

        write_netcdf(self, path)

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

        if kind == "densities":
            return plots.densities(self, gaps=gaps, truth=truth)
        if kind != "paths":
            raise ParameterError(f'expected paths or densities; got "{kind}".', parameter="kind")
        return plots.hidden_paths(self.path_rounds, self.path, self.arms, self.rule)

    def _position(self, label: object) -> int:
        if str(label) not in self.arms:
            listed = ", ".join(self.arms[:12]) + (", ..." if len(self.arms) > 12 else "")
            raise ParameterError(f'expected one of {listed}; got "{label}".', parameter="arm")
        return self.arms.index(str(label))


def write_netcdf(posterior: Posterior, path: str | os.PathLike[str]) -> None:
    """Write means and gaps with the dimensions chain, draw and arm, and the evidence of each chain."""
    try:
        import h5netcdf  # noqa: F401
        import xarray
    except ImportError:
        raise MissingExtra("netCDF", "posterior") from None
    clouds, draws, _ = posterior.means.shape
    coordinates = {"chain": np.arange(clouds), "draw": np.arange(draws), "arm": list(posterior.arms)}
    dimensions = ("chain", "draw", "arm")
    about = {
        "created_by": f"unbandit {__version__}", "rule": posterior.rule, "prior": str(posterior.prior),
        "horizon": posterior.horizon, "sigma": "bernoulli" if posterior.sigma is None else posterior.sigma,
        "log_evidence": posterior.log_evidence, "log_evidence_error": posterior.log_evidence_error,
    }  # fmt: skip
    values = {"mean": (dimensions, posterior.means), "gap": (dimensions, posterior.gaps)}
    groups = {
        "posterior": xarray.Dataset(values, coordinates, about),
        "sample_stats": xarray.Dataset(
            {"log_evidence": (("chain",), posterior.evidences)}, {"chain": coordinates["chain"]}
        ),
        "observed_data": xarray.Dataset({"pulls": (("arm",), posterior.pulls)}, {"arm": coordinates["arm"]}),
    }
    with written_whole(path) as temporary:
        for name, group in groups.items():
            group.to_netcdf(temporary, mode="w" if name == "posterior" else "a", group=name, engine="h5netcdf")
