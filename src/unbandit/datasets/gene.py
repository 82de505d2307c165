"""Gene knock-down as a bandit: 12,979 genes, each worth how strongly a virus still replicates without it.

Hao et al., "Drosophila RNAi screen identifies host genes important for influenza virus replication" (Nature, 2008),
measured them; the table gene by gene is not public. What is known is the curve of the sorted means, read off a
published figure, so an arm here is a rank on that curve (1 the highest), not a gene by name.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from unbandit.datasets.choice import Arms, chosen_numbers, random_order
from unbandit.instance import Gaussian, Instance

GENES = 12_979
TRACKED_RANK = 12_979  # the rank that every random choice holds: the lowest one, whose error the paper follows
REWARD_VARIANCE = 0.1  # on the scale of the curve

# fmt: off
CURVE = {
    1: 2.0013, 2: 1.8543, 3: 1.7072, 4: 1.6831, 6: 1.5577, 8: 1.4588, 11: 1.3504, 16: 1.2674, 23: 1.1553,
    32: 1.0665, 45: 0.9633, 64: 0.8834, 91: 0.7731, 128: 0.6971, 181: 0.6096, 256: 0.5273, 362: 0.4537,
    512: 0.4030, 724: 0.3536, 1024: 0.3042, 1448: 0.2510, 2048: 0.1990, 2896: 0.1407, 4096: 0.0837,
    5200: 0.0380, 6490: -0.0076, 7800: -0.0520, 8900: -0.0925, 9900: -0.1305, 10700: -0.1698,
    11300: -0.2091, 11800: -0.2510, 12200: -0.2978, 12500: -0.3523, 12700: -0.4106, 12800: -0.4499,
    12870: -0.4981, 12920: -0.5729, 12950: -0.7059, 12965: -0.8555, 12973: -0.9303, 12977: -1.0951,
    12979: -1.2915,
}
"""Points of the curve: rank and mean."""
# fmt: on


@cache
def means_by_rank() -> NDArray[np.float64]:
    """Return the mean at every rank on the scale of the original curve; position 0 is rank 1.

    The points are joined by monotone cubics in `log(rank / (12980 - rank))`, which stretches both steep ends of the
    curve; so the order of the ranks is kept.
    """
    from scipy.interpolate import PchipInterpolator  # here: it takes half a second to load

    def stretched(rank: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.log(rank / (GENES + 1 - rank))

    known = np.array(list(CURVE), dtype=np.float64)
    through = PchipInterpolator(stretched(known), list(CURVE.values()))
    means: NDArray[np.float64] = through(stretched(np.arange(1.0, GENES + 1)))
    means.setflags(write=False)
    return means


def gene(arms: Arms = None, seed: int = 1) -> Instance:
    """Return genes as arms, their means scaled so that rank 1 is worth 1 and rank 12,979 is worth 0.

    The reward's variance, 0.1 on the original scale, becomes 0.0092.

    Parameters
    ----------
    arms
        `None` for all 12,979. A count `n` for rank 12,979, which the paper follows, and `n - 1` others at random:
        rank 1 is *not* forced in, so read `best_mean` rather than taking it to be 1. Or a list of ranks.
    seed
        Decides which ranks a count picks. With one seed a smaller choice is part of every larger one.

    Returns
    -------
    Instance
        Chosen ranks ascend, so the best arm stands first; listed ones keep the order of the list. An arm is
        named by its rank.

    Examples
    --------
    >>> gene()  # doctest: +ELLIPSIS
    <Instance gene: 12979 arms, means 0 to 1, Gaussian(sigma=0.09603612...)>
    >>> gene(arms=[1, 6490, 12979]).means.round(4).tolist()
    [1.0, 0.3899, 0.0]
    """

    def tracked_and_others(count: int) -> NDArray[np.int64]:
        others = random_order(GENES - 1, seed)[: count - 1] + 1  # ranks 1 to 12,978
        return np.sort(np.append(others, TRACKED_RANK))

    ranks = chosen_numbers(arms, range(1, GENES + 1), "rank", draw=tracked_and_others)
    means = means_by_rank()
    lowest, spread = means[-1], means[0] - means[-1]
    return Instance(
        (means[ranks - 1] - lowest) / spread,
        Gaussian(math.sqrt(REWARD_VARIANCE) / float(spread)),
        arms=ranks.tolist(),
        name="gene",
    )
