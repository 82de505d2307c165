"""The posterior of every mean, given the actions alone: sequential Monte Carlo over the hidden sums of rewards."""

from unbandit.inference.draws import infer
from unbandit.inference.prior import BetaPrior, NormalPrior, Prior, parse_prior, usual_prior
from unbandit.inference.result import Posterior

__all__ = ["BetaPrior", "NormalPrior", "Posterior", "Prior", "infer", "parse_prior", "usual_prior"]
