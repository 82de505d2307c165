"""What is played: every rule that gives values away, on few and many arms, in short and long records."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.inference import BetaPrior, NormalPrior, Prior
from unbandit.instance import Bernoulli, Gaussian, Noise
from unbandit.study.taskgrid import rule_described

SIGMA = 0.5
"""Noise of Gaussian rewards, where means have a standard deviation of 1."""

NORMAL, BETA = NormalPrior(), BetaPrior()
"""What means of Gaussian and of Bernoulli rewards are drawn from."""

GAUSSIAN = (
    "ucb:alpha=0.25",
    "ucb1",
    f"klucb:noise=gaussian,sigma={SIGMA}",
    f"klucb:noise=gaussian,sigma={SIGMA},level=round",
    "lilucb",
    "moss",
    "sae:alpha=0.25",
    "phased:alpha=0.25",
    f"thompson:deviation=1,sigma={SIGMA}",
    "epsilon-greedy:epsilon=0.1",
    "softmax:temperature=0.1",
    "learning-softmax",
)
"""The rules that play Gaussian rewards."""

BERNOULLI = ("klucb", "klucb:level=round", "ucbv", "thompson:noise=bernoulli", "exp3")
"""The rules that play rewards of 0 and 1."""

CELLS = ((2, 500, 200), (2, 5_000, 200), (4, 2_000, 500), (10, 500, 200), (10, 5_000, 200))
"""Arms, horizon and runs of each cell."""

MAIN = 4
"""Arms of the main cell."""

SLOW = {"klucb": 2, "klucb:level=round": 4, "ucbv": 4, "thompson:noise=bernoulli": 5}
"""Rules whose posterior takes several times as long as others': into how many parts their runs are cut."""

CLOUDS = {
    "sae:alpha=0.25": 3,
    "phased:alpha=0.25": 10,
    f"thompson:deviation=1,sigma={SIGMA}": 4,
    "softmax:temperature=0.1": 3,
    "learning-softmax": 5,
}
"""Rules whose clouds need more particles than an index rule's, and take less time: how many times as many."""

CANDIDATES = (
    "ucb:alpha=0.25",
    "sae:alpha=0.25",
    f"thompson:deviation=1,sigma={SIGMA}",
    "epsilon-greedy:epsilon=0.1",
    "softmax:temperature=0.1",
    "uniform",
)
"""The rules among which the one that made a record is to be found."""

IDENTIFY_CELL = (4, 2_000, 100)
"""Arms, horizon and records of each of them."""


@dataclass(frozen=True)
class TrialSetting:
    """Hold one point of the grid: a rule, and the bandits that it plays.

    Parameters
    ----------
    rule
        Who plays.
    arms, horizon
        `K` and `T`.
    runs
        How many records there are, each of a bandit of its own.
    prior
        What the means are drawn from, and what the analyst believes of them.
    sigma
        Of the rewards; None for rewards of 0 and 1.
    """

    rule: Demonstrator
    arms: int
    horizon: int
    runs: int
    prior: Prior = NORMAL
    sigma: float | None = SIGMA

    @property
    def noise(self) -> Noise:
        """Return the noise of the rewards."""
        return Bernoulli() if self.sigma is None else Gaussian(self.sigma)

    @property
    def described(self) -> dict[str, object]:
        """Return all that determines what is played, as plain values."""
        return {
            "name": f"{self.rule} on {self.arms} arms, {self.horizon} rounds",
            "rule": rule_described(self.rule),
            "arms": self.arms,
            "horizon": self.horizon,
            "prior": str(self.prior),
            "noise": str(self.noise),
            "runs": self.runs,
        }

    def seed(self, seed: int, *purpose: object) -> int:
        """Derive a seed from what is played, but for the number of runs, and from the seed of all.

        Examples
        --------
        >>> few, many = (TrialSetting(parse_rule("ucb"), 2, 100, runs) for runs in (10, 20))
        >>> few.seed(1) == many.seed(1), few.seed(1) == few.seed(2), few.seed(1) == few.seed(1, "filter", 7)
        (True, False, False)
        """
        said = json.dumps([seed, str(self.rule), self.arms, self.horizon, str(self.prior), str(self.noise), *purpose])
        return int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "big")


def posterior_settings(
    text: str, runs: int | None = None, main: int | None = None, side: int | None = None
) -> tuple[TrialSetting, ...]:  # fmt: skip
    """Return the grid of one rule's posterior: every cell; with `runs`, so many instead of each cell's own.

    With `main`, so many in the main cell, and with `side` in all others. Slow rules have a part of the runs.

    Examples
    --------
    >>> [(setting.arms, setting.horizon, setting.runs) for setting in posterior_settings("exp3")][:3]
    [(2, 500, 200), (2, 5000, 200), (4, 2000, 500)]
    """
    prior, sigma = (BETA, None) if text in BERNOULLI else (NORMAL, SIGMA)
    part = SLOW.get(text, 1)

    def number(arms: int, usual: int) -> int:
        if runs is not None:
            return runs
        asked = main if arms == MAIN else side
        return max(2, (usual if asked is None else asked) // part)

    return tuple(
        TrialSetting(parse_rule(text), arms, horizon, number(arms, usual), prior, sigma)
        for arms, horizon, usual in CELLS
    )


def identify_settings(text: str, runs: int | None = None) -> tuple[TrialSetting, ...]:
    """Return the records of one rule, which is to be found."""
    arms, horizon, usual = IDENTIFY_CELL
    return (TrialSetting(parse_rule(text), arms, horizon, usual if runs is None else runs),)


def short(rule: object) -> str:
    """Write a rule's numbers to four digits, and without those that are zero.

    Examples
    --------
    >>> short("ucb:alpha=0.25,scale=1.4142135623730951"), short("klucb:double_log=0.0,level=round")
    ('ucb:alpha=0.25,scale=1.414', 'klucb:level=round')
    """
    name, _, rest = str(rule).partition(":")
    parts = [part.partition("=") for part in rest.split(",") if part]
    shown = [f"{key}={_digits(value)}" for key, _, value in parts if value != "0.0"]
    return f"{name}:{','.join(shown)}" if shown else name


def _digits(value: str) -> str:
    try:
        return f"{float(value):.4g}"
    except ValueError:
        return value
