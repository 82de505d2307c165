"""Whether a rule fits a log: the verdict of a check, and what it compared."""

from dataclasses import dataclass
from typing import Any, Literal

FitVerdict = Literal["fits", "does not fit", "not checked"]


@dataclass(frozen=True)
class Statistic:
    """One statistic of the record beside the simulated ones."""

    name: str
    observed: float
    low: float  # the middle 95% of the simulated ones
    median: float
    high: float
    tail: float  # two-sided probability of a value as far out, or further
    distance: float = 0.0  # from the centre of the simulated ones, in their standard deviations


@dataclass(frozen=True)
class Check:
    """Whether the assumed rule fits the record.

    Attributes
    ----------
    verdict
        `fits`, `does not fit` or `not checked`.
    p_value
        The probability that a record of the rule looks as unusual, at most; None where nothing was checked.
    simulations
        How many records were simulated for each demonstration.
    reason
        What looks different, why nothing was checked, or which part was.
    statistics
        What was compared, the furthest from the simulated ones first; of several demonstrations, the worst one's.
    instead
        Rules that make the record about as probable as any does, where the assumed one does not fit.
    """

    verdict: FitVerdict
    p_value: float | None = None
    simulations: int = 0
    reason: str | None = None
    statistics: tuple[Statistic, ...] = ()
    instead: tuple[str, ...] = ()
    checked: int = 0  # demonstrations
    failed: tuple[str, ...] = ()  # the names of those that do not fit

    def to_dict(self) -> dict[str, Any]:
        """Return the check in the form that `--json` prints."""
        listed = [
            {"name": each.name, "observed": each.observed, "low": each.low, "high": each.high}
            for each in self.statistics
        ]
        return {
            "verdict": self.verdict,
            "p_value": self.p_value,
            "simulations": self.simulations,
            "reason": self.reason,
            "statistics": listed,
            "instead": list(self.instead),
            "checked": self.checked,
            "failed": list(self.failed),
        }


def not_checked(reason: str) -> Check:
    """Return a check that was not made."""
    return Check("not checked", reason=reason)


UNCHECKED = Check("not checked")
