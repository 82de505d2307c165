"""The design of a linear model: the vectors that it multiplies, and which of its parameters each offer has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unbandit.contexts.log import ContextLog
from unbandit.errors import NotIdentifiable, option
from unbandit.formatting import capitalise

INTERCEPT = "intercept"
"""The name of the coefficient that every offer has, whatever its features."""


@dataclass(frozen=True, eq=False)
class Design:
    """Offers as a linear model sees them, one after the other.

    The parameters `theta` are `count` blocks of `size` numbers, laid one after the other. Offer `o` is worth
    ``vectors[o] @ theta[blocks[o] * size : (blocks[o] + 1) * size]``. A shared model has one block. A disjoint one has
    a block per arm: its vectors have `count * size` numbers, all zero but one block, and are stored as pairs (arm,
    features). The matrix `A` of such a model is one small matrix per arm.

    Attributes
    ----------
    vectors
        The features of every offer, and 1 at the end if there is an intercept: (offers, size).
    blocks, codes
        The block of parameters of every offer, and the arm that it is.
    offsets, chosen, starts
        As in `ContextLog`.
    names
        The feature and the arm (None in a shared model) of every parameter.
    """

    vectors: NDArray[np.float64]
    blocks: NDArray[np.int64]
    codes: NDArray[np.int64]
    offsets: NDArray[np.int64]
    chosen: NDArray[np.int64]
    starts: NDArray[np.int64]
    names: tuple[tuple[str, str | None], ...]
    count: int
    arms: int

    def __post_init__(self) -> None:
        # All read-only, whether they are the log's or new: kernels are compiled once for each type of array.
        for name in ("vectors", "blocks", "codes", "offsets", "chosen", "starts"):
            array = np.ascontiguousarray(getattr(self, name)).view()
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def size(self) -> int:
        """Return how many parameters a block has."""
        return int(self.vectors.shape[1])

    @property
    def parameters(self) -> int:
        """Return how many parameters there are in all."""
        return self.count * self.size

    @property
    def rows(self) -> NDArray[np.int64]:
        """Return the offer that was chosen in every round."""
        return np.asarray(self.offsets[:-1] + self.chosen)

    def values(self, thetas: NDArray[np.float64], offers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what some offers are worth at several vectors of parameters: (offers, vectors)."""
        vectors, blocks = self.vectors[offers], self.blocks[offers]
        if self.count == 1:
            return np.asarray(vectors @ thetas.T)
        found, by_block = np.empty((len(offers), len(thetas))), thetas.reshape(-1, self.count, self.size)
        for block in np.unique(blocks):
            mine = np.flatnonzero(blocks == block)
            found[mine] = vectors[mine] @ by_block[:, block].T
        return found

    def rounding(self, thetas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by how much the values of two equal offers may differ as they are computed, for every vector."""
        largest = np.tile(np.abs(self.vectors).max(axis=0), self.count)
        return np.asarray(self.size * np.finfo(np.float64).eps * (np.abs(thetas) @ largest))


def design_of(log: ContextLog, *, intercept: bool, disjoint: bool) -> Design:
    """Return the design of a shared model, or of a disjoint one."""
    if not disjoint and has_equal_offers(log):
        doubts = [notice.text for notice in log.reading if notice.code == "rows-as-rounds"]
        own = f"take a model with parameters for each arm: disjoint=true in {option('rule')}."
        text = "in every round all offers have the same features: a shared model gives them all the same value."
        remedy = " ".join((*doubts, f"If each row is a round, {own}")) if doubts else capitalise(own)
        raise NotIdentifiable(text, remedy=remedy)
    named = [*log.feature_names, *([INTERCEPT] if intercept else [])]
    arms: tuple[str | None, ...] = log.arms if disjoint else (None,)
    vectors = log.features
    if intercept:
        vectors = np.column_stack((vectors, np.ones(len(vectors))))
    return Design(
        vectors=vectors,
        blocks=log.codes if disjoint else np.zeros(len(vectors), np.int64),
        codes=log.codes,
        offsets=log.offsets,
        chosen=log.chosen,
        starts=log.starts,
        names=tuple((feature, arm) for arm in arms for feature in named),
        count=len(arms),
        arms=len(log.arms),
    )


def has_equal_offers(log: ContextLog) -> bool:
    """Return whether the offers of every round have the same features, and some round has several."""
    first = np.repeat(log.offsets[:-1], np.diff(log.offsets))
    return bool(len(first) > log.rounds and (log.features == log.features[first]).all())
