"""Delays: by how many rounds rewards are late. A number, or drawn for every reward from a known distribution."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PlainSerializer

from unbandit import checks

LONGEST_DELAY = 2**32
LARGEST_MEAN = 10_000
"""Of a random delay: a table of its distribution is kept, and a geometric one has a long tail."""

KINDS = {
    "geometric": "geometric:MEAN",
    "poisson": "poisson:MEAN",
    "uniform": "uniform:LEAST-MOST",
}
"""The distributions that are known, and how each is written."""


@dataclass(frozen=True)
class RandomDelay:
    """A delay that is drawn for every reward, independently of everything else; written as `geometric:50`.

    Parameters
    ----------
    kind
        `geometric` on 0, 1, 2, ... and `poisson`, with a mean; `uniform` on whole numbers from `least` to `most`.
    least, most
        Of a uniform delay; of others both are the mean.

    Examples
    --------
    >>> delay = RandomDelay.read("geometric:50")
    >>> delay.mean, round(delay.deviation, 2), str(delay)
    (50.0, 50.5, 'geometric:50')
    """

    kind: str
    least: float
    most: float

    @classmethod
    def read(cls, text: str) -> RandomDelay:
        """Read a delay as it is written; a `ValueError` says what is wrong with another text."""
        kind, _, rest = text.strip().lower().partition(":")
        if kind not in KINDS:
            raise ValueError(f"expected a whole number of rounds, or one of {', '.join(KINDS.values())}")
        written = re.fullmatch(r"(\d+)-(\d+)" if kind == "uniform" else r"()(\d+(?:\.\d+)?)", rest.strip())
        if written is None:
            raise ValueError(f"expected {KINDS[kind]}, with numbers of rounds")
        most = float(written[2])
        least = float(written[1] or most)
        if kind != "uniform" and not 0 < most <= LARGEST_MEAN:
            raise ValueError(f"expected a mean above 0 and up to {LARGEST_MEAN:,}")
        if kind == "uniform" and not least <= most <= LARGEST_MEAN:
            raise ValueError(f"expected rounds in rising order, up to {LARGEST_MEAN:,}")
        return cls(kind, least, most)

    def __str__(self) -> str:
        numbers = [str(int(each)) if each.is_integer() else repr(each) for each in (self.least, self.most)]
        return f"{self.kind}:{'-'.join(numbers) if self.kind == 'uniform' else numbers[1]}"

    @property
    def mean(self) -> float:
        """Return the mean, in rounds."""
        return (self.least + self.most) / 2

    @property
    def remedy(self) -> str:
        """Say what to give instead, where a delay that varies is not read."""
        return f"Give the mean as a fixed delay (delay={round(self.mean)}); intervals then leave out how arrivals vary."

    @property
    def deviation(self) -> float:
        """Return the standard deviation, in rounds."""
        if self.kind == "uniform":
            return float(np.sqrt(((self.most - self.least + 1) ** 2 - 1) / 12))
        return float(np.sqrt(self.mean * (1 + self.mean) if self.kind == "geometric" else self.mean))

    @property
    def cumulative(self) -> NDArray[np.float64]:
        """Return the probability of every delay from 0 on and all shorter ones; the last is 1.

        The bits are the same on every machine: there is no function of a mathematics library in it.
        """
        return _cumulative(self)

    @property
    def log_waiting(self) -> NDArray[np.float64]:
        """Return for each age, from 0 rounds on, the log probability that no reward that old or older is outstanding.

        Every round has one reward, so these are sums over all longer waits; the last is 0.
        """
        with np.errstate(divide="ignore"):
            logs = np.log(self.cumulative)
        return np.append(np.cumsum(logs[::-1])[::-1], 0.0)


@cache
def _cumulative(delay: RandomDelay) -> NDArray[np.float64]:
    if delay.kind == "uniform":
        rounds = np.arange(int(delay.most) + 1)
        found = np.maximum(rounds - int(delay.least) + 1, 0) / (int(delay.most) - int(delay.least) + 1)
    elif delay.kind == "geometric":
        stays = delay.mean / (1.0 + delay.mean)
        size = int(40 * (1.0 + delay.mean)) + 2
        found = 1.0 - np.multiply.accumulate(np.full(size, stays))
    else:
        found = _poisson(delay.mean)
    found = found[: int(np.argmax(found >= 1.0 - 2.0**-53)) + 1] if (found >= 1.0 - 2.0**-53).any() else found
    found[-1] = 1.0
    found.setflags(write=False)
    return found


def _poisson(mean: float) -> NDArray[np.float64]:
    """Sum the probabilities in decimal arithmetic, whose exponential is correctly rounded."""
    size = int(mean + 12 * np.sqrt(mean)) + 40
    with localcontext() as context:
        context.prec = 30
        rate = Decimal(mean)
        term = (-rate).exp()
        total, found = term, [float(term)]
        for count in range(1, size):
            term = term * rate / count
            total += term
            found.append(float(total))
    return np.array(found)


def _delay_in(value: Any) -> Any:
    """Read what is given for a delay; a `ValueError` says what is wrong with it."""
    if isinstance(value, RandomDelay):
        return value
    is_written = isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,18}\s*", value)
    number = int(value) if is_written else None if isinstance(value, str) else checks.real(value)
    if number is not None and float(number).is_integer():
        if not 0 <= number < LONGEST_DELAY:
            raise ValueError(f"expected 0 or more and fewer than {LONGEST_DELAY:,} rounds")
        return int(number)
    if not isinstance(value, str):
        raise ValueError(f"expected a whole number of rounds, or one of {', '.join(KINDS.values())}")
    return RandomDelay.read(value)


Delay = Annotated[
    Any,
    BeforeValidator(_delay_in),
    PlainSerializer(lambda delay: str(delay) if isinstance(delay, RandomDelay) else delay),
]
"""The type of a rule's `delay`: an int, or a `RandomDelay`."""

DELAY = Field(
    0, description="rounds by which a reward is known later than in the next round: a number, or geometric:MEAN, "
    "poisson:MEAN or uniform:LEAST-MOST",
)  # fmt: skip
