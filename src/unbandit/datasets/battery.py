"""Fast charging of batteries as a bandit: 224 protocols, each worth the number of cycles the cell lives.

A protocol charges the first 80% of a lithium-ion cell in ten minutes, in four steps of 20% at a constant current each.
Current heats the cell, heat flows out through its side and wears the cell. This is the simulator behind Attia et al.,
"Closed-loop optimization of fast-charging protocols for batteries with machine learning" (Nature, 2020), and Grover et
al., "Best arm identification in multi-armed bandits with delayed feedback" (AISTATS, 2018), with its shortcuts: the
crude centre of the cylinder, temperatures in Celsius. The lifetimes it computes are the data set.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.checks import one_of
from unbandit.datasets.choice import Arms, chosen_numbers, random_order
from unbandit.instance import Gaussian, Instance

if TYPE_CHECKING:
    import polars

Array = NDArray[np.float64]

LONGEST_LIFETIME = 1208  # cycles, over all regimes: what the paper divides by
LIFETIME_SIGMA = 164.0  # cycles

FIRST_RATES = (3.6, 4.0, 4.4, 4.8, 5.2, 5.6, 6.0, 7.0, 8.0)
SECOND_RATES = FIRST_RATES[:8]
THIRD_RATES = FIRST_RATES[:6]
BASELINE = (4.8, 4.8, 4.8)  # left out of the original's list

STEP_CHARGE = 0.2  # share of the capacity that one step fills
CHARGING_HOURS = 1 / 6  # for all four steps together

CAPACITY = 1.1  # ampere hours
RESISTANCE = 0.017  # ohm
RADIUS = 0.009  # m
LENGTH = 0.065  # m
CONDUCTIVITY = 0.20  # W / (m K)
HEAT_CAPACITY = 1000.0  # J / (kg K)
DENSITY = 2362.0  # kg / m^3
HEAT_TRANSFER = 10.0  # W / (m^2 K), through the side
AMBIENT = 30.0  # degrees Celsius, and where the cell starts
DIFFUSIVITY = CONDUCTIVITY / (DENSITY * HEAT_CAPACITY)

NODES = 12  # node j lies at radius (j - 1) dr: nodes 0 and 11 are ghosts outside the cylinder
RADIAL_STEP = 0.001  # m (dr)
TIME_STEP = 20.0  # s (dt)

BOLTZMANN = 8.617e-5  # eV / K


class Regime(NamedTuple):
    """How fast heat wears the cell, and how wear becomes a lifetime."""

    prefactor: float
    activation_energy: float
    damage_unit: float
    shortest: int


REGIMES = {
    "low": Regime(5e21, 0.25, 1e10, 900),
    "medium": Regime(4.0, 0.10, 4e9, 900),
    "high": Regime(136.0, 0.122, 2e10, 500),
}


@cache
def charging_rates() -> Array:
    """Return CC1 to CC4 of every protocol, in multiples of the capacity per hour; shape (224, 4).

    The fourth rate follows from the first three: its step takes what is left of the ten minutes.
    """
    protocols = []
    for rates in product(FIRST_RATES, SECOND_RATES, THIRD_RATES):
        hours_left = CHARGING_HOURS - STEP_CHARGE * (1 / rates[0] + 1 / rates[1] + 1 / rates[2])
        last_rate = STEP_CHARGE / hours_left
        if 0.1 <= last_rate <= 4.81 and rates != BASELINE:
            protocols.append((*rates, last_rate))
    table = np.array(protocols)
    table.setflags(write=False)
    return table


def conduction_matrix() -> Array:
    """Return the matrix that one implicit step of radial heat conduction solves with; shape (12, 12)."""
    dr, dt = RADIAL_STEP, TIME_STEP
    matrix = np.zeros((NODES, NODES))
    matrix[0, [0, 2]] = 1.0, -1.0  # the centre is a mirror
    matrix[1, [1, 2]] = 4 * dt, dr**2 - 4 * dt
    for node in range(2, NODES - 1):
        radius = (node - 1) * dr
        matrix[node, node - 1] = -(1 / dr**2 - 1 / (2 * radius * dr))
        matrix[node, node] = 1 / (DIFFUSIVITY * dt) + 2 / dr**2
        matrix[node, node + 1] = -(1 / dr**2 + 1 / (2 * radius * dr))
    slope = CONDUCTIVITY / (2 * dr)
    matrix[11, [9, 10, 11]] = slope, -HEAT_TRANSFER, -slope  # heat that reaches the side leaves through it
    return matrix


def heat_step(matrix: Array, before: Array, heat: Array) -> Array:
    """Return the temperatures one time step later, in degrees Celsius, shape (12, protocols); heat (`q`) in W / m^3."""
    known = np.zeros_like(before)
    known[1] = RADIAL_STEP**2 * (before[1] + TIME_STEP * heat / CONDUCTIVITY)
    known[2:11] = before[2:11] / (DIFFUSIVITY * TIME_STEP) + heat / CONDUCTIVITY
    known[11] = -AMBIENT * HEAT_TRANSFER
    return np.linalg.solve(matrix, known).astype(np.float64, copy=False)


def temperatures() -> Array:
    """Return the temperature at every node after every time step; shape (30, 12, 224)."""
    currents = CAPACITY * charging_rates()
    heats = currents**2 * RESISTANCE / (math.pi * RADIUS**2 * LENGTH)
    ends = np.cumsum(3600 * STEP_CHARGE * CAPACITY / currents, axis=1)
    # Many steps end exactly on the time grid, whichever way the last bit was rounded.
    ends = np.round(ends, 6)
    protocols = np.arange(len(currents))
    matrix = conduction_matrix()
    now = np.full((NODES, len(currents)), AMBIENT)
    history = []
    for clock in np.arange(0.0, 3600 * CHARGING_HOURS, TIME_STEP):
        step = (clock >= ends).sum(axis=1)
        now = heat_step(matrix, now, heats[protocols, step])
        history.append(now)
    return np.array(history)


@cache
def lifetimes_by_regime() -> dict[str, NDArray[np.int64]]:
    """Return the lifetime in cycles of all 224 protocols, for each regime.

    Each node adds `A exp(-Ea / (k T))` to the damage after each time step (Arrhenius' law), and the lifetime is
    `floor(1 / damage / c) + o`.
    """
    warmth = BOLTZMANN * temperatures()
    table = {}
    for name, regime in REGIMES.items():
        damage = (regime.prefactor * np.exp(-regime.activation_energy / warmth)).sum(axis=(0, 1))
        cycles = np.floor(1 / damage / regime.damage_unit).astype(np.int64) + regime.shortest
        cycles.setflags(write=False)
        table[name] = cycles
    return table


def battery(regime: str = "high", arms: Arms = None, seed: int = 1) -> Instance:
    """Return charging protocols as arms, worth their lifetime as a share of the longest one, 1208 cycles.

    Parameters
    ----------
    regime
        `"low"`, `"medium"` or `"high"`: three laws of how heat wears a cell. The high one separates protocols best.
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
    return lifetimes_by_regime()[one_of("regime", regime, REGIMES)]


def protocols() -> polars.DataFrame:
    """Return a table of the 224 protocols and their charging rates, in multiples of the capacity per hour.

    Examples
    --------
    >>> protocols().columns
    ['protocol', 'cc1', 'cc2', 'cc3', 'cc4']
    """
    import polars  # here: it is slow to load, and only tables need it

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
