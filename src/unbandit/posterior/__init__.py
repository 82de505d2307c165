"""The posterior of every mean, given the actions alone: sequential Monte Carlo over the hidden sums of rewards."""

from unbandit.posterior.inference import infer
from unbandit.posterior.prior import BetaPrior, NormalPrior, Prior, parse_prior, usual_prior
from unbandit.posterior.result import Posterior

__all__ = ["BetaPrior", "NormalPrior", "Posterior", "Prior", "infer", "parse_prior", "usual_prior"]
