"""Many people, one population: the parameters of a rule by participant, with partial pooling over participants."""

from unbandit.hierarchy.api import population
from unbandit.hierarchy.result import Population

__all__ = ["Population", "population"]
