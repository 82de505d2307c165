"""Estimators: from a record of choices to what every arm was worth."""

from unbandit.estimators.api import estimate

__all__ = ["estimate"]
