"""An estimate that is kept up to date while the log grows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from unbandit import checks
from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import ParameterError, ResumeError
from unbandit.estimators.api import estimate
from unbandit.estimators.arguments import check_numbers, check_types, draws
from unbandit.estimators.procedures import needed
from unbandit.formatting import counted, short_numbers
from unbandit.log.growth import GrowingLog
from unbandit.log.snapshot import read_snapshot, write_snapshot
from unbandit.log.tallies import Need
from unbandit.result import Estimate
from unbandit.tables import Tabular

if TYPE_CHECKING:
    import polars

_BEGIN_ANEW = "Remove it to start over, or name another file."


class StreamingEstimate(Tabular):
    """An estimate from rounds as they come: at any moment the same as from all of them read at once.

    The rounds are not kept: only pull counts, and for every pair of arms the switching round of the one as if the other
    were the best (or, for rules that eliminate, whose turn it is); of a rule with a delay, also the rounds of rewards
    that it does not know yet. So memory does not grow with the log. Closed forms only: methods bracket, switching,
    counts and naive.

    Parameters
    ----------
    rule
        The demonstrator, or its text such as ``"ucb:alpha=0.25"``.
    arms
        All arms there can be, in order; by default those pulled so far.
    snapshot
        A file to resume from, if it exists; `save` writes it.
    **options
        As `estimate` takes them.

    Examples
    --------
    >>> from unbandit import UCB, Instance, estimate
    >>> log = UCB(alpha=0.25).demonstrate(Instance([1.0, 0.5]), horizon=2_000, seed=1)
    >>> streaming = StreamingEstimate("ucb:alpha=0.25", arms=log.arms, sigma=1.0)
    >>> for start in range(0, 2_000, 500):
    ...     streaming.update(log.actions[start : start + 500])
    >>> streaming.estimate()["1"].gap == estimate(log, "ucb:alpha=0.25", sigma=1.0)["1"].gap
    True
    """

    def __init__(
        self, rule: Demonstrator | RuleFamily | str, *, arms: Sequence[object] | None = None,
        snapshot: str | os.PathLike[str] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.rule = parse_rule(rule)
        options = {name: _plain(value) for name, value in options.items()}
        self.options, self.snapshot = options, snapshot
        if snapshot is not None:
            checks.path("snapshot", snapshot)
        method = options.get("method")
        check_types(method, options.get("pool", False), options.get("check"), options.get("seed"))
        numbers = {name: options[name] for name in signature(check_numbers).parameters if name in options}
        check_numbers(**numbers, rule=self.rule)
        if draws(method, self.rule):
            raise ParameterError(
                f"{method or 'posterior'} looks at rounds one by one, and those of a growing log are not kept. "
                "Use method bracket, switching, counts or naive, or estimate the whole log.",
                parameter="method",
            )
        self.position: dict[str, Any] = {}
        looks = self.rule.look_rule() if method in (None, "bracket") else None
        # of a log that misses rounds, the switching rounds are counted whatever the rule
        need: Need = needed(self.rule, method or "bracket") if self.options.get("kept") is None else "switching"
        self.log = GrowingLog(arms, need=need, looks=looks)
        if snapshot is not None and os.path.exists(snapshot):  # noqa: PTH110 (false for names that cannot be)
            self._resume(snapshot)

    def __repr__(self) -> str:
        held = f"{counted(int(self.log.lengths.sum()), 'round')}, {len(self.log.arms)} arms"
        return f"<StreamingEstimate: {held}, {short_numbers(str(self.rule))}>"

    def update(self, actions: Any, demonstration: object = None) -> None:
        """Take the next rounds of a demonstration, any number of them.

        Parameters
        ----------
        actions
            A sequence of labels, such as ``["A"]``; integers are positions in the arms where these were given and have
            no number among their names.
        demonstration
            Its name, where there are several.
        """
        self.log.update(actions, demonstration)

    def estimate(self) -> Estimate:
        """Return what `unbandit.estimate` would of everything taken so far."""
        return estimate(self.log, self.rule, **self.options)

    def to_frame(self) -> polars.DataFrame:
        """Return the estimate of everything taken so far as a table, one row per arm (and demonstration)."""
        return self.estimate().to_frame()

    def summary(self) -> polars.DataFrame:
        """Return the estimate of everything taken so far, briefly."""
        return self.estimate().summary()

    def save(self, path: str | os.PathLike[str] | None = None) -> None:
        """Write a snapshot, whole or not at all; by default to the file that was named at the beginning."""
        target = self.snapshot if path is None else path
        if path is not None:
            checks.path("path", path)
        if target is None:
            raise ParameterError("expected a file to write the snapshot to; got none.", parameter="path")
        said, arrays = self.log.state()
        anchor = self.options.get("anchor")
        options = self.options | ({} if anchor is None else {"anchor": {str(arm): v for arm, v in anchor.items()}})
        words = {"rule": str(self.rule), "options": options, "log": said, "position": self.position}
        write_snapshot(target, words, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StreamingEstimate:
        """Resume from a snapshot, with its rule and options."""
        checks.path("path", path)
        said, _ = read_snapshot(path)
        unknown = set(said["options"]) - (set(signature(estimate).parameters) - {"log", "rule"})
        if unknown:
            raise ResumeError(f"{os.fspath(path)}: expected options of estimate; got {min(unknown)!r}. {_BEGIN_ANEW}")
        return cls(said["rule"], arms=said["log"]["expected"], snapshot=path, **said["options"])

    def _resume(self, path: str | os.PathLike[str]) -> None:
        """Take over the counts of a snapshot, if they are what this rule reads."""
        said, arrays = read_snapshot(path)
        held, arms = said["log"], self.log.expected
        looks, listed = (None if each is None else list(each) for each in (self.log.look_rule, arms))
        looks = looks and looks[:3]
        if (held["need"], held.get("looks"), held["expected"]) != (self.log.need, looks, listed):
            raise ResumeError(
                f"{os.fspath(path)}: expected a snapshot for {_described(self.log.need, looks, listed)}; got one for "
                f"{_described(held['need'], held.get('looks'), held['expected'])}. {_BEGIN_ANEW}"
            )
        log = GrowingLog.restored(held, arrays)
        if log.state()[0] != held:
            raise ResumeError(f"{os.fspath(path)}: expected labels as unbandit writes them; got others. {_BEGIN_ANEW}")
        self.log, self.position = log, said["position"]


def _plain(value: Any) -> Any:
    """Turn paths, and numbers of other kinds, into Python's text and numbers, which a snapshot can hold."""
    if isinstance(value, Mapping):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item()
    return float(value) if isinstance(value, Decimal) and checks.real(value) is not None else value


def _described(need: str, looks: Sequence[Any] | None, arms: Sequence[Any] | None) -> str:
    kind = {"counts": "counts alone", "epochs": "a rule that eliminates"}.get(need, "an index rule")
    kind += "" if looks is None else " with initial={}, batch={}, delay={}".format(*looks)
    return f"{kind} and " + ("arms as they come" if arms is None else f"{len(arms):,} arms listed")
