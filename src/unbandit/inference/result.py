"""The posterior of every mean: draws, and what they answer."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit._version import __version__
from unbandit.errors import Audience, MissingExtra, Notice, ParameterError, python_option
from unbandit.files import written_whole
from unbandit.fit import UNCHECKED, Check, FittedNumber
from unbandit.formatting import json_number, short_numbers
from unbandit.inference.prior import Prior, parse_prior
from unbandit.instance import Gaussian, Noise, noise_with
from unbandit.tables import Finding, as_written_by, read_notices, read_number, read_whole, renamed, with_draws

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes


SCHEMA = "unbandit.posterior/1"


def gaps_of(means: NDArray[np.float64], rivals: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Return gaps to the best arm; of each arm to the best of its `rivals` (arms x arms), if not of all."""
    if rivals is None:
        return np.asarray(means.max(axis=-1, keepdims=True) - means)
    return np.stack([means[..., own].max(axis=-1) - means[..., arm] for arm, own in enumerate(rivals)], axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Finding):
    """Draws from the posterior of every arm's mean, given which arms were pulled.

    Attributes
    ----------
    rule, prior, horizon
        As for `posterior`.
    noise
        What was assumed about rewards.
    arms
        The arms' names.
    pulls
        How often each arm was pulled.
    means
        Draws of every mean: (clouds, draws, arms). Clouds of particles are independent of each other, so they can be
        read as Markov chains.
    log_evidence
        Natural logarithm of the record's probability under the rule and the prior.
    log_evidence_error
        Its Monte-Carlo standard error.
    evidences
        The log evidence by each cloud.
    effective_size
        The smallest effective sample size that any cloud fell to before it was resampled.
    particles
        The size of a cloud.
    judged
        How to compute `surprise`, which may take another filter; so that is done when it is first read.
    path_rounds
        The rounds of the first demonstration for which `path` has numbers.
    path
        Given the first demonstration alone, the hidden sample mean of each arm then: (rounds, arms, 3), the ends of a
        95% band and the median between them; NaN before an arm's first pull. Empty where values are averaged over
        several rules or sets of parameters (`identify`); numbers of single clouds are NaN there.
    warnings
        What may be wrong.
    check
        Whether the assumed rule fits the log.
    fitted
        The rule's numbers that were fitted from the log (`FIT`), each with an interval. The draws are averaged over
        them; evidence, path and `surprise` are those at their medians.
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
    judged: Callable[[], NDArray[np.float64]]
    path_rounds: NDArray[np.int64]
    path: NDArray[np.float64]
    warnings: tuple[Notice, ...] = ()
    check: Check = UNCHECKED
    fitted: tuple[FittedNumber, ...] = ()
    rivals: NDArray[np.bool_] | None = None

    def __repr__(self) -> str:
        best = int(self.probability_best.argmax())
        return (
            f"<Posterior: {len(self.arms)} arms, {short_numbers(self.rule)}, best {self.arms[best]} with probability "
            f"{self.probability_best[best]:.3g}, log evidence {self.log_evidence:.1f} +- {self.log_evidence_error:.1f}>"
        )

    @property
    def sigma(self) -> float | None:
        """Return the standard deviation of a reward; None for rewards of 0 and 1."""
        return self.noise.sigma if isinstance(self.noise, Gaussian) else None

    @cached_property
    def surprise(self) -> NDArray[np.float64]:
        """Return the log probability of each round given those before it.

        NaN if its approximation misses the log's evidence. For an index rule, whose filter looks ahead, it stands in
        the round whose reward was constrained.
        """
        return self.judged()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"judged": partial(np.asarray, self.surprise)}  # filters are not pickled

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

    def moments(self, level: float = 0.95) -> dict[str, NDArray[np.float64]]:
        """Return expectation and central interval of every mean and every gap, by name, in the order of the arms."""
        values: dict[str, NDArray[np.float64]] = {}
        for name, draws in (("mean", self.draws), ("gap", self.gaps.reshape(-1, len(self.arms)))):
            low, high = self.interval(level, gaps=name == "gap")
            values |= {name: draws.mean(axis=0), f"{name}_low": low, f"{name}_high": high}
        return values

    def to_frame(self, level: float = 0.95) -> polars.DataFrame:
        """Return a table, one row per arm, best first."""
        import polars as pl

        about = {"arm": self.arms, "pulls": self.pulls, "probability_best": self.probability_best}
        return pl.DataFrame(about | self.moments(level)).sort("gap", maintain_order=True)

    def summary(self, level: float = 0.95) -> polars.DataFrame:
        """Return the arms in their own order: the probability to be the best, and mean and gap with intervals."""
        import polars as pl

        return pl.DataFrame({"arm": self.arms, "probability_best": self.probability_best} | self.moments(level))

    def frame(self, level: float = 0.95) -> polars.DataFrame:
        """Return `to_frame()`, by its name before version 0.7."""
        renamed("Posterior.frame()", "Posterior.to_frame()")
        return self.to_frame(level)

    def to_dict(self, audience: Audience = python_option, level: float = 0.95) -> dict[str, Any]:
        """Return the answer in the form that `--json` prints, without the draws."""
        about = ("rule", "sigma", "horizon", "log_evidence", "log_evidence_error", "particles", "effective_size")
        answer = {"schema": SCHEMA} | {name: getattr(self, name) for name in about}
        for name in ("log_evidence_error", "effective_size"):  # of one cloud, or averaged over rules: not known
            answer[name] = json_number(getattr(self, name))
        answer |= {"prior": str(self.prior), "level": level, "check": self.check.to_dict()}
        answer["warnings"] = [notice.to_dict(audience) for notice in self.warnings]
        answer["arms"] = self.to_frame(level).to_dicts()
        fitted = [each.to_dict() for each in self.fitted]
        return answer | ({"fitted": fitted} if fitted else {})

    def to_json(self, level: float = 0.95) -> str:
        """Return the answer as JSON text, with the draws of every mean, from which `from_json` makes it again."""
        draws = {arm: self.means[:, :, at].tolist() for at, arm in enumerate(self.arms)}
        more: dict[str, Any] = {"evidences": list(map(json_number, self.evidences.tolist())), "draws": draws}
        if self.rivals is not None:
            more["rivals"] = self.rivals.tolist()
        return with_draws(self.to_dict(level=level), **more)

    @classmethod
    @as_written_by("Posterior")
    def from_json(cls, text: str | bytes) -> Posterior:
        """Return the posterior that `to_json` wrote, without the hidden path and the surprise of rounds.

        Refuses JSON of the command line, which has no draws.
        """
        return cls.from_dict(read_whole(text, SCHEMA, "draws", "Posterior"))

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Posterior:
        """Return the posterior that the JSON of `to_json` holds."""
        arms, rows = tuple(said["draws"]), {row["arm"]: row for row in said["arms"]}
        evidences = said["evidences"]
        no_evidence = math.nan if all(each is None for each in evidences) else -math.inf  # that of a collapsed cloud
        return cls(
            said["rule"], parse_prior(said["prior"]), noise_with(said["sigma"]),
            said["horizon"], arms, np.array([rows[arm]["pulls"] for arm in arms], np.int64),
            np.stack([np.array(each, np.float64) for each in said["draws"].values()], axis=-1),
            said["log_evidence"], read_number(said["log_evidence_error"]),
            np.array([read_number(each, no_evidence) for each in evidences], np.float64),
            read_number(said["effective_size"]), said["particles"], partial(np.empty, 0),
            np.empty(0, np.int64), np.empty((0, len(arms), 3)),
            read_notices(said["warnings"]), Check.from_dict(said["check"]),
            tuple(FittedNumber(**each) for each in said.get("fitted", ())),
            np.array(said["rivals"], np.bool_) if "rivals" in said else None,
        )  # fmt: skip

    def to_arviz(self) -> Any:
        """Return what ArviZ reads, with dimensions chain, draw and arm; needs the extra `arviz`.

        An `InferenceData`, or from ArviZ 1 on a `DataTree` of xarray.
        Clouds of particles are independent of each other, so they are the chains.
        """
        try:
            import arviz
            import xarray  # noqa: F401
        except ImportError:
            raise MissingExtra("InferenceData", "arviz") from None
        groups = self._groups()
        if hasattr(arviz, "InferenceData"):
            return arviz.InferenceData(**groups)
        from xarray import DataTree  # what ArviZ 1.0 has in its place

        return DataTree.from_dict(dict(groups))

    def to_netcdf(self, path: str | os.PathLike[str]) -> Path:
        """Write a netCDF file that ArviZ reads, with dimensions chain, draw and arm, and return the path.

        Needs the extra `posterior`.
        """
        try:
            import h5netcdf  # noqa: F401
            import xarray  # noqa: F401
        except ImportError:
            raise MissingExtra("netCDF", "posterior") from None
        checks.path("path", path)
        with written_whole(path) as temporary:
            for name, group in self._groups().items():
                group.to_netcdf(temporary, mode="w" if name == "posterior" else "a", group=name, engine="h5netcdf")
        return Path(path)

    def _groups(self) -> dict[str, Any]:
        """Return the groups of ArviZ's format, as datasets of xarray."""
        import xarray

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
        return {
            "posterior": xarray.Dataset(values, coordinates, about),
            "sample_stats": xarray.Dataset({"log_evidence": (("chain",), self.evidences)}, chains),
            "observed_data": xarray.Dataset({"pulls": (("arm",), self.pulls)}, {"arm": coordinates["arm"]}),
        }

    def plot(
        self,
        kind: Literal["paths", "densities"] | None = None,
        *,
        gaps: bool = True,
        truth: Mapping[str, float] | None = None,
        ax: Axes | None = None,
    ) -> Any:
        """Draw the hidden sample means round by round, or the posterior density of every arm.

        Parameters
        ----------
        kind
            `paths`: the hidden sample mean of every arm with its 95% band; or `densities` (`plots.densities`). By
            default paths where there are any.
        gaps
            Whether densities are of gaps rather than of means.
        truth
            The true means, where they are known, to mark among densities; as gaps to the best of them where gaps are
            drawn.
        ax
            Axes to draw into, which are then returned; default a new figure, which is returned.
        """
        from unbandit import plots

        if kind is None:
            kind = "paths" if self.path_rounds.size else "densities"
        if checks.one_of("kind", kind, ("paths", "densities")) == "densities":
            checks.flag("gaps", gaps)
            checks.by_arm("truth", truth, self.arms if gaps else (), "gaps are drawn")
            if truth and gaps:
                truth = {arm: max(truth.values()) - mean for arm, mean in truth.items()}
            return plots.densities(self, gaps=gaps, truth=truth, ax=ax)
        if not self.path_rounds.size:
            raise ParameterError(
                "expected densities: where rounds are missing, or several rules or sets of parameters are averaged, "
                "there is no hidden path.",
                parameter="kind", value=kind, remedy='Use plot("densities").',
            )  # fmt: skip
        return plots.hidden_paths(self.path_rounds, self.path, self.arms, self.rule, ax=ax)
