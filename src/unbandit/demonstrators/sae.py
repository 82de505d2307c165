"""Algorithm 1 of the paper: successive arm elimination with O(T^alpha) regret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from unbandit.demonstrators.elimination import EliminationRule
from unbandit.demonstrators.width import RegretWidth

__all__ = ["SAE"]


class SAE(RegretWidth, EliminationRule):
    """Pull all active arms in turn, and eliminate those whose confidence interval has fallen below the best.

    Algorithm 1 of Guo et al. The test is made at the end of an epoch; an epoch cut short by the horizon makes none. The
    last arm left is pulled until the end.

    Examples
    --------
    >>> from unbandit import Instance
    >>> SAE(alpha=0.25).demonstrate(Instance([1.0, 0.5]), horizon=4, seed=1).actions.tolist()
    [0, 1, 0, 1]
    """

    name: ClassVar[str] = "sae"
    examples: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {},
        {"alpha": 0},
        {"alpha": 0.1, "scale": 0.1},
        {"alpha": 0.5, "sigma": 1e-7},
    )
