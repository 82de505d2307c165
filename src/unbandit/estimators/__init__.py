"""Estimators: from a record of choices to what every arm was worth."""

from unbandit.estimators.inferring import posterior
from unbandit.estimators.main import estimate, sensitivity

__all__ = ["estimate", "posterior", "sensitivity"]
