"""Elimination rules: pull every active arm once per epoch, and drop for good those that are clearly worse."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unbandit.demonstrators.base import Demonstrator
from unbandit.demonstrators.delay import DELAY, Delay, RandomDelay
from unbandit.demonstrators.widths import width_parameters, width_table
from unbandit.kernels.bandit import Bandit
from unbandit.log.tallies import Tallies, tally

if TYPE_CHECKING:
    from unbandit.kernels.simulate_available import Spans


TAIL = 0.04  # beyond the ends of a uniform distribution, for a normal one with its deviation


class EliminationRule(Demonstrator):
    """Drop an arm at the end of epoch `e` if its sample mean is `2 width(e)` or more below the largest.

    The arm with the largest mean always stays (the first of several). A rule may test at some epochs only. With a
    `delay` of `d` rounds an epoch's test is made at the end of the first epoch that ended `d` rounds or more after it:
    until then all arms are pulled on. A delay such as `geometric:50` is drawn for every reward, and an epoch's test
    waits for all of them, in the order of epochs.
    """

    unfit: ClassVar[str] = "an elimination rule leaves one number per arm, when it was dropped, and its gap needs that"

    batch: int = Field(1, ge=1, lt=2**32, description="epochs from one test to the next")
    delay: Delay = DELAY
    opening: Literal["listed", "random"] = Field(
        "listed", description="order of the arms in the first epoch, and so in all: as listed, or drawn for every run"
    )

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

        eliminate(
            bandit, parameters, first_run, self.fixed_delay, self.delay_distribution, self.opening == "random", actions
        )

    def _simulate_available(
        self, bandit: Bandit, parameters: Any, first_run: int, spans: Spans, actions: NDArray[Any]
    ) -> None:
        from unbandit.kernels.simulate_available import eliminate_available

        eliminate_available(bandit, parameters, first_run, spans, actions)

    def _fixed_arms(self) -> str | None:
        plain = None if self._width_is_plain() else "it is not defined when a rule that tests at some epochs only tests"
        return super()._fixed_arms() or plain

    def _gpu_loop(self, arms: int) -> tuple[str, tuple[Any, ...]]:
        return "elimination", ()

    def _width_is_plain(self) -> bool:
        return self.batch == 1 and type(self).tests is EliminationRule.tests

    def _empty_evidence(self, runs: int, arms: int) -> Tallies:
        return Tallies(np.empty((runs, arms), np.int64), gone=np.empty((runs, arms), np.bool_))

    def _gather(self, bandit: Bandit, parameters: Any, first_run: int, rows: Tallies) -> None:
        from unbandit.kernels.simulate_elimination import count_eliminations

        assert rows.gone is not None
        if self.is_late:
            played = np.empty((1, bandit.horizon), np.min_scalar_type(bandit.means.size - 1))
            for run in range(len(rows.pulls)):
                self._simulate(bandit.block(run, run + 1), parameters, first_run + run, played)
                found = tally(played[0], np.array([0, bandit.horizon]), bandit.means.size, "epochs", workers=1)
                rows.pulls[run], rows.gone[run] = found.pulls[0], found.eliminated[0]
            return
        shuffled = self.opening == "random"
        count_eliminations(bandit, parameters, first_run, bandit.horizon, shuffled, rows.pulls, rows.gone)


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


def expected_tests(
    pulls: NDArray[np.int64], gone: NDArray[np.bool_], delay: RandomDelay
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the epochs between which lies the one whose test an arm failed, where delays are random; 0 for none.

    When epoch `n` ended, after `t = T(n)` rounds, the rewards of epoch `e` and before had all arrived with probability
    `prod_k F(k)` over waits `k` from `t - T(e)` to `t - 1`. The difference from epoch `n - 1` is how probable it is
    that epoch `e` was tested at that moment, often with several others, whose rewards had been awaiting one that was
    late. The arm had passed all tests before these: so the first epoch is a low quantile of where they began, and the
    last one a high quantile of the epochs tested.
    """
    first, last = np.zeros_like(pulls), np.zeros_like(pulls)
    log_waiting = delay.log_waiting
    longest = log_waiting.size - 1

    def arrived(ended: NDArray[np.int64], now: int) -> NDArray[np.float64]:
        at_all = log_waiting[min(now, longest)]
        if at_all == -np.inf:
            return np.zeros(ended.size)
        return np.where(ended > now, 0.0, np.exp(log_waiting[np.clip(now - ended, 0, longest)] - at_all))

    for d, arm in zip(*np.nonzero(gone), strict=True):
        counts, n = pulls[d], int(pulls[d, arm])
        now, before = (int(np.minimum(counts, epoch).sum()) for epoch in (n, n - 1))
        start = max(n - longest - 1, 0)  # an epoch has a round or more
        ended = np.minimum(counts[None, :], np.arange(start, n + 1)[:, None]).sum(axis=1)
        by_now, by_then = arrived(ended, now), arrived(ended, before)
        tested = np.maximum(by_now - by_then, 0.0)[1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            own_by_now, own_by_then = (np.nan_to_num(each[1:] / each[:-1]) for each in (by_now, by_then))
        begun = by_then[:-1] * np.maximum(own_by_now - own_by_then, 0.0)
        if tested.sum() > 0 and begun.sum() > 0:
            first[d, arm] = start + 1 + np.searchsorted(np.cumsum(begun), TAIL * begun.sum())
            last[d, arm] = start + 1 + np.searchsorted(np.cumsum(tested), (1 - TAIL) * tested.sum())
    return first, np.maximum(first, last)
