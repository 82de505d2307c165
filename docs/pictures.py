"""Draw the pictures of the rules' pages, each from the example that stands on its page; and those of the tutorial.

A rule's page has Python blocks. They are run, and must leave `log`, `rule` and `instance` behind, and `answer` where
the record has one. So a picture shows just what the block above it gives. `python docs/pictures.py FOLDER` draws
them all.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import unbandit as ub
from unbandit.demonstrators import RandomisedRule, RecentIndexRule

PAGES = Path(__file__).parent / "rules"

PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


Figures = dict[str, tuple[Any, str, str]]
"""Pictures by kind: each with its alternative text and its caption."""


@dataclass(frozen=True)
class Drawn:
    """Hold where a picture is, what it shows for those who cannot see it, and the line below it."""

    path: Path
    alt: str
    caption: str


def draw(folder: Path, rules: Iterable[str]) -> dict[tuple[str, str], Drawn]:
    """Draw the pictures of the tutorial and of the pages of some rules; keys are page and kind of picture."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    examples = {name: PAGES / f"{name}.md" for name in rules}
    made = {name: of_a_rule(run(page)) for name, page in examples.items() if page.exists()}
    for name, figures in (made | {"tutorial": of_the_tutorial()}).items():
        for kind, (figure, alt, caption) in figures.items():
            path = folder / f"{name}-{kind}.svg"
            ub.plots.save(figure, path)
            found[name, kind] = Drawn(path, alt, caption)
    return found


def run(page: Path) -> dict[str, Any]:
    """Run the Python blocks of a page, and return the names that they leave behind."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore", ub.AssumptionWarning)
        for block in PYTHON.findall(page.read_text(encoding="utf-8")):
            exec(compile(block, str(page), "exec"), names)
    return names


def of_the_tutorial() -> Figures:
    """Draw the tutorial's record as its commands make it, and what it tells."""
    instance = ub.datasets.load("battery-high", arms=20)
    rule = ub.UCB(alpha=0.25, sigma=0.13576)
    log = rule.demonstrate(instance, horizon=5_000, seed=7)
    answer = ub.estimate(log, rule, best_mean=1.0)
    truth = dict(zip(instance.arms, instance.means.tolist(), strict=True))
    return {
        "pulls": (
            ub.plots.cumulative_pulls(log, switching=ub.switching_rounds(log, rule)),
            "How often each of 20 protocols had been tested after each of 5,000 tests: the best one 1,427 times in the "
            "end, the worst one 38 times.",
            "How often each protocol had been tested. Marks: where the algorithm last turned away from it.",
        ),
        "arms": (
            ub.plots.arms_with_intervals(answer, truth=truth),
            f"What each protocol is worth with its 95% interval, beside the truth: {told(answer, truth, 'mean')}.",
            "What every protocol was worth, as a share of the best, beside the truth, which comes below.",
        ),
    }


def of_a_rule(names: dict[str, Any]) -> Figures:
    """Draw what an example shows: the record, the answer beside the truth, and the moment of hesitation."""
    log, rule, instance, answer = names["log"], names["rule"], names["instance"], names.get("answer")
    pulls = ", ".join(f"arm {arm} {count:,} times" for arm, count in zip(log.arms, log.pulls[0].tolist(), strict=True))
    found = {
        "timeline": (
            ub.plots.timeline(log),
            f"Which arm {rule.name} pulled when, in {int(log.lengths[0]):,} rounds: {pulls}.",
            f"Which arm was pulled when: {pulls}.",
        )
    }
    if answer is None:
        return found
    quantity, what = ("mean", instance.means) if answer.ranked()[0].mean is not None else ("gap", instance.gaps)
    truth = dict(zip(instance.arms, what.tolist(), strict=True))
    found["arms"] = (
        ub.plots.arms_with_intervals(answer, truth=truth),
        f"The {quantity} of every arm with its interval, beside the truth: {told(answer, truth, quantity)}.",
        f"The {quantity} of every arm as the log shows it, beside the truth, which was hidden.",
    )
    if not isinstance(rule, RandomisedRule | RecentIndexRule):
        moment = ub.switching_moment(log, rule, estimate=answer)
        found["hesitation"] = (
            moment.plot(),
            f"The decision values of arms {moment.arm} and {moment.best}, which meet around round {moment.round:,}.",
            f"The moment of hesitation: in round {moment.round:,} the rule last turned away from arm {moment.arm}.",
        )
    return found


def told(answer: ub.Estimate, truth: dict[str, float], quantity: str) -> str:
    """Write every arm's value beside the truth."""
    rows = answer.ranked()
    return "; ".join(f"arm {row.arm} {in_words(row, quantity)}, truly {truth[row.arm]:.3g}" for row in rows)


def in_words(row: Any, quantity: str) -> str:
    """Write an arm's value and interval."""
    point, low, high = (getattr(row, f"{quantity}{end}") for end in ("", "_low", "_high"))
    written = row.verdict if point is None else f"{point:.3g}"
    if low is None and high is None:
        return written
    ends = ["" if low is None else f"from {low:.3g}", "" if high is None else f"to {high:.3g}"]
    return f"{written} ({' '.join(filter(None, ends))})"


if __name__ == "__main__":
    for drawn in draw(Path(sys.argv[1]), ub.rules()).values():
        print(drawn.path)
