"""Reports for the tests: small logs of every kind, made once."""

from __future__ import annotations

import warnings
from functools import cache
from html.parser import HTMLParser

import numpy as np

import unbandit as ub
from unbandit.reporting import Report

FOUR = ub.Instance([1.0, 0.7, 0.4, 0.0], noise=0.5, arms=list("ABCD"))
TRUTH = dict(zip(FOUR.arms, FOUR.means.tolist(), strict=True))
UCB = "ucb:alpha=0.25"
NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "الذراع الأول",
    "זרוע ב",
    "🔋🔋",
    "x" * 100_000,
    "tab\tand\nnew line\x00\x1b",
    "{{ 7 * 7 }} {% raw %} & 'quotes'",
]


def log_of(rule: str, horizon: int, runs: int = 1) -> ub.ActionLog:
    """Simulate the four arms."""
    return ub.parse_rule(rule).demonstrate(FOUR, horizon, runs=runs, seed=1)


def nasty_log() -> ub.ActionLog:
    """Give arms names that break what is not careful."""
    instance = ub.Instance(np.linspace(1, 0, len(NASTY)), noise=0.5)
    actions = ub.UCB(alpha=0.25).demonstrate(instance, 1_000, seed=1).actions
    return ub.ActionLog.from_codes(actions, NASTY)


def with_rewards() -> ub.ActionLog:
    """Let the first three rewards of a record be known."""
    log = log_of("thompson:sigma=0.5", 150)
    return ub.ActionLog.from_codes(log.actions, log.arms, rewards=[1.0, 0.5, 0.2] + [None] * 147)


def with_all_rewards() -> ub.ActionLog:
    """Let every reward of a record be known."""
    log = log_of("softmax", 60)
    return ub.ActionLog.from_codes(log.actions, log.arms, rewards=np.linspace(0.0, 1.0, 60).round(2).tolist())


def counts_of(log: ub.ActionLog) -> ub.ActionLog:
    """Forget the order."""
    return ub.ActionLog.from_counts(dict(zip(log.arms, log.pulls[0].tolist(), strict=True)))


KINDS = {
    "gaps": lambda: ub.report(log_of(UCB, 1_000), UCB, sigma=0.5),
    "means": lambda: ub.report(log_of(UCB, 1_000), UCB, best_mean=1.0, sigma=0.5, truth=TRUTH),
    "ratios": lambda: ub.report(log_of(UCB, 1_000), UCB, scale="unknown", truth=TRUTH),
    "counts": lambda: ub.report(counts_of(log_of(UCB, 1_000)), UCB, sigma=0.5, truth=TRUTH),
    "naive": lambda: ub.report(log_of(UCB, 1_000), UCB, method="naive", sigma=0.5),
    "bootstrap": lambda: ub.report(log_of(UCB, 1_000), UCB, method="bootstrap", sigma=0.5, resamples=100, seed=3),
    "elimination, open": lambda: ub.report(log_of("sae:alpha=0.25", 1_000), "sae:alpha=0.25", sigma=0.5, truth=TRUTH),
    "elimination, settled": lambda: ub.report(log_of("sae:alpha=0.25", 20_000), "sae:alpha=0.25", sigma=0.5),
    "randomised": lambda: ub.report(
        log_of("thompson:sigma=0.5", 200), "thompson:sigma=0.5", sigma=0.5, particles=200, seed=1, truth=TRUTH
    ),
    "level believed": lambda: ub.report(log_of("softmax", 200), "softmax", sigma=0.5, particles=200, truth=TRUTH),
    "some rewards": lambda: ub.report(with_rewards(), "thompson:sigma=0.5", sigma=0.5, particles=200),
    "all rewards": lambda: ub.report(with_all_rewards(), "softmax", sigma=0.5, particles=200),
    "rewards unused": lambda: ub.report(with_rewards(), UCB, sigma=0.5),
    "several": lambda: ub.report(log_of(UCB, 500, runs=7), UCB, sigma=0.5, truth=TRUTH),
    "pooled": lambda: ub.report(log_of(UCB, 500, runs=3), UCB, sigma=0.5, pool=True),
    "pooled elimination": lambda: ub.report(
        log_of("sae:alpha=0.25", 1_000, runs=3), "sae:alpha=0.25", sigma=0.5, pool=True
    ),
    "wrong rule": lambda: ub.report(log_of("uniform", 400), UCB),
    "wrong kind": lambda: ub.report(log_of(UCB, 500), "sae:alpha=0.25", sigma=0.5),
    "unseen": lambda: ub.report(ub.ActionLog.from_actions("ABABAAAABAAAAAA", arms=list("ABC")), "ucb", sigma=1.0),
    "shortest": lambda: ub.report(ub.ActionLog.from_actions("AB"), "ucb", sigma=1.0),
    "one round": lambda: ub.report(ub.ActionLog.from_actions("A", arms=["A", "B"]), "ucb", sigma=1.0),
    "nasty names": lambda: ub.report(nasty_log(), UCB, sigma=0.5, anchor={NASTY[0]: 1.0}),
}


@cache
def report_of(kind: str) -> Report:
    """Make a report, once; it says what it warns of itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return KINDS[kind]()


class Outline(HTMLParser):
    """Walk over a page and keep what a test asks about: tags with attributes, headings, text."""

    VOID = frozenset({"meta", "img", "source", "br", "path", "circle", "link"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text.append(data)

    def all(self, *names: str) -> list[dict[str, str | None]]:
        """Return the attributes of all tags of these names."""
        return [attributes for tag, attributes in self.tags if tag in names]
