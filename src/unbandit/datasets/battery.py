"""Fast charging of batteries as a bandit: 224 protocols, each worth the number of cycles the cell lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbandit.datasets.battery_physics import charging_rates, lifetimes_by_regime
from unbandit.datasets.choice import Arms, chosen_numbers, random_order
from unbandit.errors import ParameterError
from unbandit.instance import Gaussian, Instance

if TYPE_CHECKING:
    import polars

__all__ = ["battery", "lifetimes", "protocols"]

LONGEST_LIFETIME = 1208  # cycles, over all regimes: what the paper divides by
LIFETIME_SIGMA = 164.0  # cycles


def battery(regime: str = "high", arms: Arms = None, seed: int = 1) -> Instance:
    """Return charging protocols as arms, worth their lifetime as a share of the longest one, 1208 cycles.

    Parameters
    ----------
    regime
        `"low"`, `"medium"` or `"high"`: three laws of how warmth wears a cell. The high one tells protocols apart best.
    arms
        `None` for all 224. A count `n` for the paper's choice: one protocol at random from each of `n` equal
        bins between the shortest and the longest lifetime of the *high* regime, so that the same seed gives the
        same protocols in every regime. From 45 bins on some can be empty; their places go to protocols drawn at
        random from those not yet chosen, so that there are always `n`. Or a list of protocol numbers.
    seed
        Decides which protocols a count picks, nothing else.

    Returns
    -------
    Instance
        Chosen protocols stand in the order of their numbers, listed ones in the order of the list. An arm is named by
        its first three rates, as in `6.0-4.4-4.4`; the fourth follows from them.

    Notes
    -----
    The longest-lived protocol of all is one of several in the last bin, so a choice need not hold it: read `best_mean`
    rather than taking it to be 1. Protocols can tie for the best in the low and medium regimes, whose lifetimes
    are whole numbers in a narrow range.

    Examples
    --------
    >>> battery("high")
    <Instance battery-high: 224 arms, means 0.4743 to 1, Gaussian(sigma=0.1357615894039735)>
    >>> battery("low", arms=20, seed=1).arms == battery("high", arms=20, seed=1).arms
    True
    >>> battery("high", arms=[0, 109]).arms
    ('3.6-6.0-5.6', '6.0-4.4-4.4')
    """
    cycles = lifetimes(regime)
    numbers = chosen_numbers(arms, range(len(cycles)), "protocol", draw=lambda count: _one_from_each_bin(count, seed))
    return Instance(
        cycles[numbers] / LONGEST_LIFETIME,
        Gaussian(LIFETIME_SIGMA / LONGEST_LIFETIME),
        arms=["-".join(f"{rate:.1f}" for rate in rates[:3]) for rates in charging_rates()[numbers]],
        name=f"battery-{regime}",
    )


def lifetimes(regime: str) -> NDArray[np.int64]:
    """Return the mean lifetime of every protocol in cycles; shape (224,), in the order of protocol numbers.

    Examples
    --------
    >>> int(lifetimes("high").max()), int(lifetimes("high").argmax())
    (1208, 109)
    """
    table = lifetimes_by_regime()
    if regime not in table:
        raise ParameterError(
            f'expected "low", "medium" or "high"; got {regime!r}. Choose one of the three.', parameter="regime"
        )
    return table[regime]


def protocols() -> polars.DataFrame:
    """Return a table of the 224 protocols and their charging rates, in multiples of the capacity an hour.

    Examples
    --------
    >>> protocols().columns
    ['protocol', 'cc1', 'cc2', 'cc3', 'cc4']
    """
    import polars  # here, because it is slow to load and only tables need it

    rates = charging_rates()
    columns = {f"cc{step + 1}": rates[:, step] for step in range(4)}
    return polars.DataFrame({"protocol": np.arange(len(rates)), **columns})


def _one_from_each_bin(count: int, seed: int) -> NDArray[np.int64]:
    cycles = lifetimes("high")
    shortest, longest = int(cycles.min()), int(cycles.max())
    # Whole numbers throughout, so that no lifetime falls on the wrong side of an edge; the last bin has both its edges.
    bins = np.minimum((cycles - shortest) * count // (longest - shortest), count - 1)
    order = random_order(len(cycles), seed)
    firsts = np.unique(bins[order], return_index=True)[1]  # where each bin that is not empty first comes up
    others = np.delete(order, firsts)
    return np.sort(np.concatenate([order[firsts], others[: count - len(firsts)]]))
