"""Write a posterior as a netCDF file in the layout that ArviZ reads: one group for the draws, one for how they came."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from unbandit._version import __version__
from unbandit.errors import MissingExtra
from unbandit.files import written_whole

if TYPE_CHECKING:
    from unbandit.inference.result import Posterior

__all__ = ["write_netcdf"]


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
