"""Example logs that come with the page.

They are kept as files, so that a preview compiles nothing; `tools/example_logs.py` simulated them from a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from unbandit import datasets
from unbandit.demonstrators import parse_rule
from unbandit.errors import ParameterError
from unbandit.instance import Instance
from unbandit.log import ActionLog


@dataclass(frozen=True)
class Example:
    """Log that comes with the page: its name, what it is, and the form that fits it."""

    name: str
    title: str
    about: str
    form: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Story:
    """How an example is simulated."""

    title: str
    about: str
    instance: str
    rule: str
    horizon: int
    seed: int
    form: tuple[tuple[str, str], ...]
    counts: bool = False


_INSTANCES: dict[str, Callable[[], Instance]] = {
    "battery": lambda: datasets.load("battery-high", arms=20),
    "prices": lambda: Instance([1.0, 0.8, 0.5, 0.1], 0.5, arms=["9 euros", "12 euros", "7 euros", "19 euros"]),
    "treatments": lambda: Instance([0.9, 0.55, 0.35, 0.1], 0.5, arms=["new dose", "old dose", "half dose", "placebo"]),
}

_BATTERY_RULE = "ucb:alpha=0.25,sigma=0.1358"
_BATTERY_FORM = (("ucb.scale", ""), ("best_mean", "1"), ("sigma", "0.1358"))

_STORIES = {
    "battery": _Story(
        "Battery charging",
        "A UCB experiment tried 20 charging protocols 5,000 times, looking for the longest battery life.",
        "battery", _BATTERY_RULE, 5_000, 7, _BATTERY_FORM,
    ),
    "trial": _Story(
        "An adaptive trial",
        "Four treatments in turn for 3,000 patients; each was dropped as soon as it was clearly worse (successive "
        "elimination).",
        "treatments", "sae:alpha=0.15,scale=1.2", 3_000, 3, (("best_mean", "0.9"), ("sigma", "0.5")),
    ),
    "prices": _Story(
        "Prices in a shop",
        "Thompson sampling tried four prices on 800 customers, each price as often as it seemed the best one.",
        "prices", "thompson:sigma=0.5", 800, 5, (("sigma", "0.5"),),
    ),
    "counts": _Story(
        "Only the final counts",
        "The battery experiment again, but all that is left is how often each protocol was tried.",
        "battery", _BATTERY_RULE, 5_000, 7, _BATTERY_FORM, counts=True,
    ),
}  # fmt: skip


@cache
def _instance(name: str) -> Instance:
    return _INSTANCES[name]()


def _fields(story: _Story) -> tuple[tuple[str, str], ...]:
    """Return the form of an example: the parameters of its rule, and what else is known."""
    name, _, parameters = story.rule.partition(":")
    pairs = [tuple(part.split("=", 1)) for part in parameters.split(",") if part]
    return (("rule", name), *((f"{name}.{key}", value) for key, value in pairs), *story.form)


EXAMPLES = tuple(Example(name, story.title, story.about, _fields(story)) for name, story in _STORIES.items())


def _story(name: str) -> _Story:
    if name not in _STORIES:
        raise ParameterError(f'expected one of {", ".join(_STORIES)}; got "{name}".', parameter="example")
    return _STORIES[name]


def simulate_example(name: str) -> ActionLog:
    """Simulate an example again."""
    story = _story(name)
    return parse_rule(story.rule).demonstrate(_instance(story.instance), story.horizon, seed=story.seed)


def example_path(name: str) -> Path:
    """Return where the log of an example is kept."""
    return Path(__file__).parent / "static" / f"{_story(name).instance}.csv.gz"


def example_log(name: str) -> ActionLog:
    """Read an example."""
    story = _story(name)
    log = ActionLog.read(example_path(name), arms=_instance(story.instance).arms)
    if story.counts:
        return ActionLog.from_counts(dict(zip(log.arms, log.pulls[0].tolist(), strict=True)))
    return log


def example_truth(name: str) -> dict[str, float]:
    """Return the true means, which an example's log does not show."""
    instance = _instance(_story(name).instance)
    return dict(zip(instance.arms, instance.means.tolist(), strict=True))
