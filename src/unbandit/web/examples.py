"""Logs that come with the page.

They are kept as files, so that looking at one compiles nothing; `tools/example_logs.py` played them, from a seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from unbandit import datasets
from unbandit.demonstrators import parse_rule
from unbandit.errors import ParameterError
from unbandit.instance import Instance
from unbandit.log import ActionLog
from unbandit.web.model import Example

__all__ = ["EXAMPLES", "example_log", "example_truth", "kept_as", "played"]


@dataclass(frozen=True)
class _Story:
    """Hold how an example is made."""

    title: str
    about: str
    instance: str
    rule: str
    horizon: int
    seed: int
    form: tuple[tuple[str, str], ...]
    counts: bool = False


def _prices() -> Instance:
    return Instance([1.0, 0.8, 0.5, 0.1], 0.5, arms=["9 euros", "12 euros", "7 euros", "19 euros"])


def _treatments() -> Instance:
    return Instance([0.9, 0.55, 0.35, 0.1], 0.5, arms=["new dose", "old dose", "half dose", "placebo"])


_INSTANCES = {
    "battery": lambda: datasets.load("battery-high", arms=20),
    "prices": _prices,
    "treatments": _treatments,
}

_BATTERY_FORM = (("ucb.scale", ""), ("best_mean", "1"), ("sigma", "{sigma}"))

_STORIES = {
    "battery": _Story(
        "Battery charging",
        "A UCB experiment tried 20 charging protocols 5,000 times, looking for the longest battery life.",
        "battery", "ucb:alpha=0.25,sigma={sigma}", 5_000, 7, _BATTERY_FORM,
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
        "battery", "ucb:alpha=0.25,sigma={sigma}", 5_000, 7, _BATTERY_FORM, counts=True,
    ),
}  # fmt: skip


@cache
def _instance(name: str) -> Instance:
    return _INSTANCES[name]()


def _filled(story: _Story, text: str) -> str:
    return text.replace("{sigma}", f"{_instance(story.instance).sigma:.4g}")


def _rule(story: _Story) -> str:
    return _filled(story, story.rule)


def _fields(story: _Story) -> tuple[tuple[str, str], ...]:
    """Return the form as it is filled in for an example: its rule's own parameters, and what is known beside."""
    name, _, parameters = _rule(story).partition(":")
    pairs = [tuple(part.split("=", 1)) for part in parameters.split(",") if part]
    known = [(key, _filled(story, value)) for key, value in story.form]
    return (("rule", name), *((f"{name}.{key}", value) for key, value in pairs), *known)


def _examples() -> tuple[Example, ...]:
    return tuple(Example(name, story.title, story.about, _fields(story)) for name, story in _STORIES.items())


EXAMPLES = _examples()


def _story(name: str) -> _Story:
    if name not in _STORIES:
        raise ParameterError(f'expected one of {", ".join(_STORIES)}; got "{name}".', parameter="example")
    return _STORIES[name]


def played(name: str) -> ActionLog:
    """Play an example anew."""
    story = _story(name)
    return parse_rule(_rule(story)).demonstrate(_instance(story.instance), story.horizon, seed=story.seed)


def kept_as(name: str) -> Path:
    """Return where the log of an example is kept."""
    return Path(__file__).parent / "static" / f"{_story(name).instance}.csv.gz"


def example_log(name: str) -> ActionLog:
    """Read an example.

    Examples
    --------
    >>> example_log("trial")
    <ActionLog: 1 demonstration, 4 arms, 3000 rounds>
    """
    story = _story(name)
    log = ActionLog.read(kept_as(name), arms=_instance(story.instance).arms)
    if story.counts:
        return ActionLog.from_counts(dict(zip(log.arms, log.pulls[0].tolist(), strict=True)))
    return log


def example_truth(name: str) -> dict[str, float]:
    """Return what was hidden from an example's log."""
    instance = _instance(_story(name).instance)
    return dict(zip(instance.arms, instance.means.tolist(), strict=True))
