"""Estimators: from a record of choices to what every arm was worth."""

from unbandit.estimators.api import estimate, sensitivity
from unbandit.estimators.posterior import posterior

__all__ = ["estimate", "posterior", "sensitivity"]
