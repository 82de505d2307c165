"""The posterior of every mean, given the actions alone: sequential Monte Carlo over the hidden sums of rewards."""

from unbandit.inference.conventions import infer_by_conventions
from unbandit.inference.draws import infer
from unbandit.inference.prior import BetaPrior, NormalPrior, Prior, parse_prior, usual_prior
from unbandit.inference.result import Posterior

__all__ = [
    "BetaPrior", "NormalPrior", "Posterior", "Prior", "infer", "infer_by_conventions", "parse_prior", "usual_prior",
]  # fmt: skip
