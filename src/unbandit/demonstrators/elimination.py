"""Elimination rules: pull every active arm once per epoch, and drop for good those that are clearly worse."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unbandit.demonstrators.base import Demonstrator
from unbandit.demonstrators.widths import width_parameters, width_table
from unbandit.kernels.bandit import Bandit
from unbandit.log.tallies import Tallies, tally


class EliminationRule(Demonstrator):
    """Drop an arm at the end of epoch `e` if its sample mean is `2 width(e)` or more below the largest.

    The arm with the largest mean always stays (the lowest of several). A rule may test at some epochs only. With a
    `delay` of `d` rounds an epoch's test is made at the end of the first epoch that ended `d` rounds or more after it:
    until then all arms are pulled on.
    """

    batch: int = Field(1, ge=1, lt=2**32, description="epochs from one test to the next")
    delay: int = Field(0, ge=0, lt=2**32, description="rounds by which a reward is known later than in the next round")

    @abstractmethod
    def width(self, pulls: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
        """Return `C(n)` for pull counts of 1 and more."""

    def tests(self, epochs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether arms are tested at the end of these epochs, counted from 1: by default every `batch`-th."""
        return np.asarray(np.asarray(epochs) % self.batch == 0)

    def parameters(self, horizon: int) -> Any:
        """Return the widths as a table over epochs, infinite where no test is made."""
        if self._width_is_plain():
            return width_parameters(self, horizon)
        widths = width_table(self, horizon).copy()
        widths[1:][~self.tests(np.arange(1, widths.size))] = np.inf
        return widths

    def _simulate(self, bandit: Bandit, parameters: Any, first_run: int, actions: NDArray[Any]) -> None:
        from unbandit.kernels.simulate_elimination import eliminate

        eliminate(bandit, parameters, first_run, self.delay, actions)

    def _gpu_loop(self, arms: int) -> tuple[str, tuple[Any, ...]]:
        return "elimination", ()

    def _width_is_plain(self) -> bool:
        return self.batch == 1 and type(self).tests is EliminationRule.tests

    def _empty_evidence(self, runs: int, arms: int) -> Tallies:
        return Tallies(np.empty((runs, arms), np.int64), gone=np.empty((runs, arms), np.bool_))

    def _gather(self, bandit: Bandit, parameters: Any, first_run: int, rows: Tallies) -> None:
        from unbandit.kernels.simulate_elimination import count_eliminations

        assert rows.gone is not None
        if self.delay > 0:
            played = np.empty((1, bandit.horizon), np.min_scalar_type(bandit.means.size - 1))
            for run in range(len(rows.pulls)):
                self._simulate(bandit.block(run, run + 1), parameters, first_run + run, played)
                found = tally(played[0], np.array([0, bandit.horizon]), bandit.means.size, "epochs", workers=1)
                rows.pulls[run], rows.gone[run] = found.pulls[0], found.eliminated[0]
            return
        count_eliminations(bandit, parameters, first_run, bandit.horizon, rows.pulls, rows.gone)


def tested_epochs(pulls: NDArray[np.int64], epochs: NDArray[np.int64], delay: int) -> NDArray[np.int64]:
    """Return the latest epoch all of whose rewards were known at the end of each of some epochs; 0 for none.

    Epoch `e` ended in round `T(e) = sum_i min(n_i, e)`, so it is the largest `e` with `T(e) <= T(epoch) - delay`.
    All arrays are (demonstrations, arms).
    """
    found = np.zeros_like(epochs)
    for d, (counts, asked) in enumerate(zip(pulls, epochs, strict=True)):
        ends = np.unique(np.concatenate(([0], counts)))  # between two of these, an epoch has the same arms
        rounds = np.minimum(counts[None, :], ends[:, None]).sum(axis=1)
        known = np.minimum(counts[None, :], asked[:, None]).sum(axis=1) - delay
        at = np.clip(np.searchsorted(rounds, known, side="right") - 1, 0, max(ends.size - 2, 0))
        active = np.maximum((counts[None, :] > ends[at][:, None]).sum(axis=1), 1)
        found[d] = np.where(known < 0, 0, np.minimum(ends[at] + (known - rounds[at]) // active, asked))
    return np.maximum(found, 0)
