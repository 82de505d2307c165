"""The data sets by name: those of the paper's simulations, defined here, and battery and gene from their own files."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from unbandit.checks import LARGEST_COUNT, brief, integer, one_of, real
from unbandit.datasets.battery import battery
from unbandit.datasets.choice import Arms
from unbandit.datasets.gene import gene
from unbandit.errors import ParameterError
from unbandit.instance import Gaussian, Instance


def two_armed() -> Instance:
    """Return two arms worth 1 and 1/2, with unit variance.

    Examples
    --------
    >>> two_armed()
    <Instance two-armed: 2 arms, means 0.5 to 1, Gaussian(sigma=1.0)>
    """
    return Instance([1.0, 0.5], Gaussian(1.0), name="two-armed")


def linear(arms: int = 4) -> Instance:
    """Return `arms` (`K`) arms whose means fall evenly from 1 to 0, with variance 1/4.

    Examples
    --------
    >>> linear(5).means.tolist()
    [1.0, 0.75, 0.5, 0.25, 0.0]
    """
    count = integer(arms)
    if count is None or not 2 <= count <= LARGEST_COUNT:
        raise ParameterError(
            f"expected a count of 2 or more; got {brief(arms)}. Two arms are the smallest bandit.", parameter="arms"
        )
    return Instance(np.linspace(1.0, 0.0, count), Gaussian(0.5), name="linear")


def shrinking_gap(horizon: float, beta: float) -> Instance:
    """Return two arms whose gap is `Delta_T = T^-beta`, with unit variance; the better one is worth 1.

    Examples
    --------
    >>> shrinking_gap(horizon=10_000, beta=0.5).gaps.round(12).tolist()
    [0.0, 0.01]
    """
    rounds, exponent = real(horizon), real(beta)
    if rounds is None or not (math.isfinite(rounds) and rounds >= 1):
        raise ParameterError(f"expected a number of rounds, 1 or more; got {brief(horizon)}.", parameter="horizon")
    if exponent is None or not (math.isfinite(exponent) and exponent >= 0):
        raise ParameterError(
            f"expected a number from 0 up; got {brief(beta)}. The paper takes 0.05 and 0.5.", parameter="beta"
        )
    gap = rounds**-exponent
    if 1.0 - gap == 1.0:
        text = f"expected a gap that a mean near 1 can show; got {gap:.3g} at horizon {rounds:g}. Take a smaller beta."
        raise ParameterError(text, parameter="beta")
    return Instance([1.0, 1.0 - gap], Gaussian(1.0), name="shrinking-gap")


class Entry(NamedTuple):
    """A data set: what it is, in one line, and how it is built from `arms` and `seed`."""

    description: str
    build: Callable[[Arms, int], Instance]


def _two_armed(arms: Arms, seed: int) -> Instance:
    if arms is not None and integer(arms) != 2:
        raise ParameterError(
            f'expected none or 2 for "two-armed"; got {brief(arms)}. Take "linear" for more arms.', parameter="arms"
        )
    return two_armed()


def _linear(arms: Arms, seed: int) -> Instance:
    return linear(4 if arms is None else arms)  # type: ignore[arg-type]  # it checks its argument itself


ENTRIES = {
    "two-armed": Entry("two arms, means 1 and 1/2, sigma 1 (the paper's simulations)", _two_armed),
    "linear": Entry("K arms (by default 4), means from 1 down to 0 in equal steps, sigma 1/2", _linear),
    **{
        f"battery-{regime}": Entry(
            f"224 battery charging protocols, lifetimes {lifetimes} cycles, divided by 1208", partial(battery, regime)
        )
        for regime, lifetimes in (("low", "901 to 962"), ("medium", "912 to 982"), ("high", "573 to 1208"))
    },
    "gene": Entry("12,979 knocked-down genes by rank, means scaled to [0, 1]", gene),
}


def names() -> dict[str, str]:
    """Return the name of each data set with a line that describes it.

    Examples
    --------
    >>> list(names())
    ['two-armed', 'linear', 'battery-low', 'battery-medium', 'battery-high', 'gene']
    """
    return {name: entry.description for name, entry in ENTRIES.items()}


def load(name: str, arms: Arms = None, seed: int = 1) -> Instance:
    """Build a data set by its name.

    Parameters
    ----------
    name
        One of `names()`.
    arms
        `None` for the whole data set, a count, or (battery and gene) a list of protocol numbers or ranks.
    seed
        Decides which arms a count picks, where that is random.

    Examples
    --------
    >>> load("battery-high", arms=20)  # doctest: +ELLIPSIS
    <Instance battery-high: 20 arms, ...>
    >>> load("batery-high")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    unbandit.errors.ParameterError: data set: expected one of ...; got "batery-high". Did you mean "battery-high"?
    """
    return ENTRIES[one_of(None, name, ENTRIES, owner="data set")].build(arms, seed)
