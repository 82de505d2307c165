"""Example logs that come with the page.

They are kept as files, so that a preview compiles nothing; `tools/example_logs.py` simulated them from a seed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from unbandit import datasets
from unbandit.demonstrators import parse_rule
from unbandit.instance import Instance
from unbandit.log import ActionLog


@dataclass(frozen=True)
class Example:
    """Log that comes with the page: what it is, how it was simulated, and what is known about it."""

    name: str
    title: str
    about: str
    instance: str = ""  # by its name below, which is also that of the log's file
    rule: str = ""
    horizon: int = 0
    seed: int = 0
    known: Mapping[str, str] = field(default_factory=dict)  # fields of the form besides the rule's
    counts: bool = False  # whether only the final counts are left

    @property
    def form(self) -> dict[str, str]:
        """Return the form that fits it."""
        name, _, parameters = self.rule.partition(":")
        pairs = (part.split("=", 1) for part in parameters.split(",") if part)
        filled = {f"{name}.{key}": value for key, value in pairs}
        return {"rule": name, f"{name}.preset": "usual", **filled, **self.known}

    @property
    def path(self) -> Path:
        """Return where the log is kept."""
        return Path(__file__).parent / "static" / f"{self.instance}.csv.gz"

    def simulate(self) -> ActionLog:
        """Simulate the log again."""
        return parse_rule(self.rule).demonstrate(_instance(self.instance), self.horizon, seed=self.seed)

    def log(self) -> ActionLog:
        """Read the log."""
        log = ActionLog.read(self.path, arms=_instance(self.instance).arms)
        return ActionLog.from_counts(dict(zip(log.arms, log.pulls[0].tolist(), strict=True))) if self.counts else log

    def truth(self) -> dict[str, float]:
        """Return the true means, which the log does not show."""
        instance = _instance(self.instance)
        return dict(zip(instance.arms, instance.means.tolist(), strict=True))


_INSTANCES: dict[str, Callable[[], Instance]] = {
    "battery": lambda: datasets.load("battery-high", arms=20),
    "prices": lambda: Instance([1.0, 0.8, 0.5, 0.1], 0.5, arms=["9 euros", "12 euros", "7 euros", "19 euros"]),
    "decks": lambda: Instance([1.0, 0.6, 0.3, 0.0], 0.5, arms=["deck A", "deck B", "deck C", "deck D"]),
    "treatments": lambda: Instance([0.9, 0.55, 0.35, 0.1], 0.5, arms=["new dose", "old dose", "half dose", "placebo"]),
}


@cache
def _instance(name: str) -> Instance:
    return _INSTANCES[name]()


_BATTERY = Example(
    "battery",
    "Battery charging",
    "A UCB experiment tried 20 charging protocols 5,000 times, looking for the longest battery life.",
    "battery", "ucb:alpha=0.25,sigma=0.1358", 5_000, 7, {"ucb.scale": "", "best_mean": "1", "sigma": "0.1358"},
)  # fmt: skip
_TRIAL = Example(
    "trial",
    "An adaptive trial",
    "Four treatments in turn for 3,000 patients; each was dropped as soon as it was clearly worse (successive "
    "elimination).",
    "treatments", "sae:alpha=0.15,scale=1.2", 3_000, 3, {"best_mean": "0.9", "sigma": "0.5"},
)  # fmt: skip
_PRICES = Example(
    "prices",
    "Prices in a shop",
    "Thompson sampling tried four prices on 800 customers, each price as often as it seemed the best one.",
    "prices", "thompson:sigma=0.5", 800, 5, {"sigma": "0.5"},
)  # fmt: skip
_DECKS = Example(
    "people",
    "A person choosing cards",
    "Someone drew 200 cards from four decks, learning from the points on each card (Q-learning with softmax).",
    "decks", "learning-softmax:rate=0.3,temperature=0.25", 200, 4, {"sigma": "0.5"},
)  # fmt: skip
_COUNTS = replace(
    _BATTERY,
    name="counts",
    title="Only the final counts",
    about="The battery experiment again, but all that is left is how often each protocol was tried.",
    counts=True,
)
EXAMPLES = {example.name: example for example in (_BATTERY, _TRIAL, _PRICES, _DECKS, _COUNTS)}
