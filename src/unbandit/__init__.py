"""Recover what every arm of a bandit was worth from the record of which arm was pulled, and nothing else."""

from unbandit._version import __version__
from unbandit.instance import Bernoulli, Gaussian, Instance
__all__=["Bernoulli","Gaussian","Instance","__version__"]
