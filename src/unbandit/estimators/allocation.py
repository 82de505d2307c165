"""How pulls were spread over the arms: whether the counts show any sign of rewards, and what counts cannot show.

An allocation that never looked at a reward, uniform or in rotation, leaves counts that scatter no more than chance
makes them. Read as those of an adaptive rule they would give ordinary gaps, so they are refused.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, gammaincc, pdtrc

from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule
from unbandit.errors import Notice, NotIdentifiable, option
from unbandit.estimators.diagnostics import notices_of
from unbandit.estimators.procedures import Answer, Request
from unbandit.formatting import counted
from unbandit.instance import Gaussian
from unbandit.log.columns import noun_of
from unbandit.result import BOUNDED, UNSEEN

ERROR = 0.001  # the share of uniform allocations that are taken for adaptive ones
PULLS_TRIED = np.array([2.0, 20.0, 200.0])  # where it is seen whether a parameter is a factor of the width

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]
Marks = NDArray[np.bool_]


class Spread(NamedTuple):
    """Scatter of counts around their mean, over the arms that were pulled: one number for each demonstration.

    `chi_square` is `sum (n_i - n)^2 / n`; for uniform allocations it has a chi-square distribution with `degrees`, one
    less than the arms that were pulled. Their ratio, the dispersion, is 0 for a rotation and about 1 for chance.
    """

    chi_square: Numbers
    degrees: Numbers

    @classmethod
    def of(cls, pulls: Counts, least: int = 0, batch: int = 1) -> "Spread":
        """Return the spread of pulls beyond the first `least` of each arm, counted in batches."""
        pulled = pulls > 0
        arms = np.maximum(pulled.sum(axis=-1), 1)
        beyond = np.where(pulled, pulls - float(least), 0.0)
        mean = beyond.sum(axis=-1) / arms
        off = np.where(pulled, beyond - mean[..., None], 0.0)
        chi_square = np.divide(np.square(off).sum(axis=-1), mean * batch, out=np.zeros_like(mean), where=mean > 0)
        return cls(np.asarray(chi_square), np.asarray(arms - 1.0))

    @property
    def chance(self) -> Numbers:
        """Return how often a uniform allocation scatters as much or more."""
        return np.asarray(
            np.where(self.degrees > 0, gammaincc(np.maximum(self.degrees, 1) / 2, self.chi_square / 2), 0)
        )

    def together(self) -> "Spread":
        """Return the spread of all demonstrations together, each around its own mean."""
        return Spread(self.chi_square.sum(keepdims=True), self.degrees.sum(keepdims=True))


def could_be_even(pulls: Counts, initial: int = 1, batch: int = 1, *, together: bool = False) -> Marks:
    """Return which demonstrations, or whether all together, scatter no more than a uniform allocation would.

    Two such allocations are considered: one that is uniform from the first round on, and one that is uniform after an
    opening of `initial` pulls of every arm. The former is ruled out where it would hardly have reached every arm that
    often.

    >>> could_be_even(np.array([[58, 61, 79, 66], [900, 60, 25, 30], [10, 10, 9, 9]])).tolist()
    [True, False, True]
    """
    whole, beyond = Spread.of(pulls, 0, batch), Spread.of(pulls, initial, batch)
    opened = (pulls >= initial).all(axis=-1)
    mean = pulls.mean(axis=-1)
    with np.errstate(divide="ignore"):
        reached = pulls.shape[-1] * np.log(pdtrc(initial - 1, np.maximum(mean, 1e-300)))
    if together:
        whole, beyond = whole.together(), beyond.together()
        opened, reached, mean = (np.array([each]) for each in (opened.all(), reached.sum(), mean.min()))
    # With less than one decision per arm, chi-square is no longer the distribution: too short to say.
    judged = opened & (mean - initial >= 1)
    at_all = whole.chance > ERROR
    after_opening = beyond.chance > ERROR
    never_uniform = reached < np.log(ERROR)
    return np.asarray(np.where(judged & never_uniform, after_opening, at_all))


def refuse_even(request: Request, *, pool: bool = False) -> Marks:
    """Refuse counts that a uniform or round-robin allocation could have left; return which of several are so."""
    pulls, rule = request.tallies.pulls, request.rule
    index = rule if isinstance(rule, IndexRule) else None
    initial, batch = (index.initial, index.batch) if index else (1, 1)
    even = could_be_even(pulls, initial, batch, together=pool)
    if not even.all():
        return np.zeros(len(pulls), np.bool_) if pool else even
    evenly = _evenly(pulls, request.log.demonstrations)
    text = f"{evenly}: such counts do not show which arm is better. {_scatter(pulls, batch)}"
    remedy = "Bring a log with one row per round, or the counts of a longer run of a rule that follows rewards."
    raise NotIdentifiable(text, remedy=remedy)


def _evenly(pulls: Counts, names: Sequence[str] = ()) -> str:
    """Say how often arms were pulled, and what else than a rule that follows rewards would do that."""
    seen = pulls[pulls > 0]
    low, high = int(seen.min()), int(seen.max())
    often = f"{low:,} times each" if low == high else f"{low:,} to {high:,} times each"
    several = f" in {counted(len(pulls), noun_of(names))}" if len(pulls) > 1 else ""
    other = "as when arms are taken in turn" if high - low <= 1 else "as random choices would do"
    return f"The arms were pulled {often}{several}, {other}"


def _scatter(pulls: Counts, batch: int) -> str:
    """Say how much counts scatter, and how much could be chance."""
    spread = Spread.of(pulls, 0, batch).together()
    degrees = max(float(spread.degrees[0]), 1.0)
    found, chance = float(spread.chi_square[0]) / degrees, float(chdtri(degrees, ERROR)) / degrees
    return f"(They vary {found:.2g} times as much as chance usually does; up to {chance:.3g} times can be chance.)"


def leave_out_even(request: Request, answer: Answer, even: Marks) -> None:
    """Take the numbers of demonstrations that may be uniform out of an answer, and say so."""
    batch = getattr(request.rule, "batch", 1)
    for name, values in answer.numbers.items():
        values[even] = 0.0 if name == "gap_low" else np.nan
    seen = answer.pulls[even] > 0
    answer.verdict[even] = np.where(seen, BOUNDED, UNSEEN)
    answer.best[even] = seen

    def notice(which: int) -> Notice:
        pulls = answer.pulls[which : which + 1]
        return Notice("even-counts", f"{_evenly(pulls)}: no arm has an estimate. {_scatter(pulls, batch)}")

    answer.warnings += [each for _, each in notices_of(np.flatnonzero(even), answer.demonstrations, notice)]


# What counts cannot show


def factors(rule: Demonstrator, horizon: int) -> dict[str, float]:
    """Return the parameters that only multiply a rule's width, so that counts look the same whatever they are.

    >>> from unbandit import UCB, LilUCB
    >>> factors(LilUCB(reward_range=2), 1_000), sorted(factors(UCB(alpha=0.25), 1_000))
    ({'reward_range': 2.0}, ['alpha', 'scale'])
    """

    def widths(rule: Demonstrator) -> Numbers:
        if isinstance(rule, EliminationRule):
            return np.asarray(rule.width(PULLS_TRIED, horizon))
        assert isinstance(rule, IndexRule)
        return np.array([rule.index(0.0, int(pulls), horizon, horizon) for pulls in PULLS_TRIED])

    if not isinstance(rule, EliminationRule) and not (isinstance(rule, IndexRule) and rule.shifts):
        return {}
    found, before = {}, widths(rule)
    wide = before > 0  # MOSS has no width after many pulls
    for name, value in rule.model_dump().items():
        if isinstance(value, float) and value > 0:
            ratio = widths(rule.model_copy(update={name: value / 2}))[wide] / before[wide]
            if ratio.size and np.allclose(ratio, ratio[0], rtol=1e-9) and abs(ratio[0] - 1) > 1e-6:
                found[name] = value
    return found


def counts_cannot_tell(request: Request, known_means: int = 0) -> Notice:
    """Say what the numbers rest on that counts alone cannot show, given how many means are known."""
    rule, sentences = request.rule, []
    named = factors(rule, int(request.horizons[0])) if request.method != "naive" else {}
    if request.method == "naive":
        sentences.append("the constant of the naive estimator is right: twice the constant, twice every gap.")
    elif request.scale == "unknown":
        sentences.append("the rule is right; the width's factor is taken as unknown, which is why there are ratios.")
    elif named:
        written = ", ".join(f"{name}={value:.4g}" for name, value in named.items())
        several = "these parameters of the rule are" if len(named) > 1 else "this parameter of the rule is"
        sentences.append(
            f"{several} right: {written}. A width twice as large doubles every gap and leaves the same counts; "
            f"{option('scale', 'unknown')} gives ratios, which do not depend on it."
        )
    else:
        sentences.append("the rule and its parameters are right.")
    if request.method != "naive" and request.scale == "known" and isinstance(request.noise, Gaussian):
        sentences.append(f"Nor do they show how noisy rewards are (sigma = {request.noise.sigma:.4g}: intervals only).")
    if isinstance(rule, IndexRule) and request.method != "naive" and known_means < 2:
        sentences.append(
            "If the most-pulled arm was held back, say by a limit on how often it may be shown, all gaps from it are "
            f"too small by one amount; the known means of two arms or more ({option('anchor')}) would show that."
        )
    return Notice("counts-cannot-tell", f"Counts alone do not show whether {' '.join(sentences)}")
