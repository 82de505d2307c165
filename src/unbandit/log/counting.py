"""Count how often each arm was pulled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit.log.coding import Codes

__all__ = ["count_pulls"]

# Counting widens codes to eight bytes, so it goes over a long log in parts of this many rounds.
_BLOCK = 1 << 20


def count_pulls(actions: Codes, offsets: NDArray[np.int64], arms: int) -> NDArray[np.int64]:
    """Return the pulls (`n_i`) of each arm in each demonstration: (demonstrations, arms).

    Examples
    --------
    >>> count_pulls(np.array([0, 1, 1, 0]), np.array([0, 3, 4]), 2).tolist()
    [[1, 2], [1, 0]]
    """
    pulls = np.zeros((len(offsets) - 1, arms), np.int64)
    first = 0
    while first < len(pulls):
        # As many demonstrations as fit into one part; a longer one by itself.
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _BLOCK, side="right")) - 1)
        if last == first + 1:
            for at in range(int(offsets[first]), int(offsets[last]), _BLOCK):
                pulls[first] += np.bincount(actions[at : min(at + _BLOCK, int(offsets[last]))], minlength=arms)
        else:
            rows = np.repeat(np.arange(last - first), np.diff(offsets[first : last + 1])) * arms
            cells = rows + actions[offsets[first] : offsets[last]]
            pulls[first:last] = np.bincount(cells, minlength=(last - first) * arms).reshape(last - first, arms)
        first = last
    pulls.setflags(write=False)
    return pulls
