"""Candidates for the rule that made a log: rules with given parameters, or with a grid of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator, IndexRule, RandomisedRule, RecentIndexRule, parse_rule, rules
from unbandit.demonstrators.base import rule_named
from unbandit.errors import InferenceError, Notice, ParameterError, option
from unbandit.inference.conventions import Convention
from unbandit.inference.steps import steps_while_there
from unbandit.instance import Bernoulli, Gaussian, Noise
from unbandit.log import ActionLog
from unbandit.log.availability import Availability

CandidateSpec = str | Demonstrator | type[Demonstrator]


@dataclass(frozen=True)
class Candidate:
    """A rule that may have made the log, with each set of parameters that is considered, and the set's probability.

    What is missing to 1 belongs to sets that cannot have made the log. A set that does not explain the log is tried by
    other conventions too (`Demonstrator.conventions`), all of them equally likely; these guesses stand at the end.
    """

    name: str  # as given: a rule's name, or a rule with its parameters
    guesses: tuple[tuple[Demonstrator, float], ...]
    conventions: Mapping[int, Convention] = field(default_factory=dict, hash=False)  # of guesses that are not as given
    axis: str | None = None  # the parameter whose values may be refined
    across: str | None = None  # a second one: lines of guesses side by side
    twins: tuple[Demonstrator, ...] = ()  # rules of other names that are this one, with some value of the axis
    forms: tuple[str, ...] = ()  # parameters that take the place of the axis in guesses that have them

    def by_conventions(self, guess: int, others: Sequence[Demonstrator]) -> Candidate:
        """Return the candidate with a guess by other conventions too, which share its probability."""
        guesses, end = list(self.guesses), len(self.guesses)
        rule, prior = guesses[guess]
        shared = prior / (1 + len(others))
        guesses[guess] = (rule, shared)
        guesses += [(other, shared) for other in others]
        added = {end + place: Convention(rule, other) for place, other in enumerate(others)}
        return replace(self, guesses=tuple(guesses), conventions={**self.conventions, **added})

    def without(self, left_out: Sequence[int]) -> Candidate:
        """Return the candidate without some of the guesses by other conventions; their guess gets the probability."""
        guesses, conventions = list[tuple[Demonstrator, float]](), dict[int, Convention]()
        back = [(self.conventions[guess].given, self.guesses[guess][1]) for guess in left_out]
        for at, (rule, prior) in enumerate(self.guesses):
            if at in left_out:
                continue
            if at in self.conventions:
                conventions[len(guesses)] = self.conventions[at]
            guesses.append((rule, prior + sum(weight for given, weight in back if given == rule)))
        return replace(self, guesses=tuple(guesses), conventions=conventions)

    def refined(self, values: Mapping[int, float], least: float, drop: float = 0.0) -> Candidate:
        """Add values of the `axis` between neighbours, around the peaks of each line of guesses that reach `least`.

        `values` has the log evidence of guesses. Guesses that differ in the axis alone are a line; each stands for the
        values nearest to it, on a scale of ratios. A peak is no lower than its neighbours: between two of the first
        values the evidence may be far larger than anywhere else. One with a neighbour that is less than `drop` behind
        is fine enough. Lines side by side get others between them in the same way, by the peak of each.
        """
        if self.axis is None or self.conventions:
            return self
        lines, added = self._lines(), dict[Demonstrator, None]()
        for line in lines:
            known = [values.get(guess, -math.inf) for guess in line]
            axis = axis_of(self.guesses[line[0]][0], self) or ""
            at = [getattr(self.guesses[guess][0], axis) for guess in line]
            for peak, between in _beside_peaks(at, known, least, drop):
                rule = self.guesses[line[peak]][0]
                with suppress(ParameterError):
                    added[type(rule)(**(rule.model_dump() | {axis: between}))] = None
        for sheet in self._sheets(lines):
            at = [getattr(self.guesses[line[0]][0], self.across or "") for line in sheet]
            known = [max(values.get(guess, -math.inf) for guess in line) for line in sheet]
            for peak, between in _beside_peaks(at, known, least, max(drop, APART)):
                for rule in (self.guesses[guess][0] for guess in sheet[peak]):
                    with suppress(ParameterError):
                        added[type(rule)(**(rule.model_dump() | {self.across or "": between}))] = None
        both = replace(self, guesses=(*self.guesses, *((rule, 0.0) for rule in added)))
        return both._weighted()

    def extended(self, value: float) -> Candidate:
        """Return the candidate with lines of guesses that reach a value of the axis, in steps of `STEP`."""
        added, axis = list[Demonstrator](), self.axis or ""
        for line in self._lines() if 0 < value < math.inf else ():
            first, last = (self.guesses[at][0] for at in (line[0], line[-1]))
            for rule, ratio in ((first, getattr(first, axis) / value), (last, value / getattr(last, axis))):
                down = 1 / STEP if rule is first else STEP
                steps = math.ceil(math.log(ratio) / math.log(STEP) - 1e-9) if ratio > 1 else 0
                places = [_tidy(getattr(rule, axis) * down ** (at + 1)) for at in range(steps)]
                added += [type(rule)(**(rule.model_dump() | {axis: place})) for place in places]
        both = replace(self, guesses=(*self.guesses, *((rule, 0.0) for rule in added)))
        return both._weighted() if added else self

    def _lines(self) -> list[list[int]]:
        """Return the places of guesses that differ in the axis alone, in its order; of two or more."""
        lines: dict[tuple[str, str], list[int]] = {}
        for at, (rule, _) in enumerate(self.guesses):
            axis = axis_of(rule, self) or ""
            lines.setdefault((axis, str(rule.model_dump(exclude={axis}))), []).append(at)
        order = [sorted(line, key=lambda at: getattr(self.guesses[at][0], axis)) for (axis, _), line in lines.items()]
        return [line for line in order if len(line) > 1]

    def _sheets(self, lines: Sequence[list[int]]) -> list[list[list[int]]]:
        """Return the lines that differ in the second parameter alone, in its order; two or more."""
        if self.across is None:
            return []
        sheets, place = dict[str, list[list[int]]](), self.across
        for line in lines:
            others = self.guesses[line[0]][0].model_dump(exclude={self.axis or "", place})
            sheets.setdefault(str(others), []).append(line)
        order = [sorted(each, key=lambda line: getattr(self.guesses[line[0]][0], place)) for each in sheets.values()]
        return [each for each in order if len(each) > 1]

    def _weighted(self) -> Candidate:
        """Weigh the guesses of each line by what they stand for, on a scale of ratios; a line keeps its probability.

        Lines side by side keep together what they had, and share it in the same way.
        """
        weights, lines = np.array([weight for _, weight in self.guesses]), self._lines()
        totals = {line[0]: weights[line].sum() for line in lines}
        for sheet in self._sheets(lines):
            shares = _cells([getattr(self.guesses[line[0]][0], self.across or "") for line in sheet])
            every = sum(totals[line[0]] for line in sheet)
            totals |= {line[0]: share * every for line, share in zip(sheet, shares.tolist(), strict=True)}
        for line in lines:
            axis = axis_of(self.guesses[line[0]][0], self) or ""
            weights[line] = _cells([getattr(self.guesses[at][0], axis) for at in line]) * totals[line[0]]
        return replace(
            self, guesses=tuple((rule, float(w)) for (rule, _), w in zip(self.guesses, weights, strict=True))
        )

    def tried(self, guess: int) -> bool:
        """Return whether a guess stands there by other conventions too, or is one of those."""
        rule = self.guesses[guess][0]
        return guess in self.conventions or any(each.given == rule for each in self.conventions.values())


def _beside_peaks(
    at: Sequence[float], known: Sequence[float], least: float, drop: float
) -> list[tuple[int, float]]:  # fmt: skip
    """Return peaks of what is known along a line, with values between each of them and its neighbours."""
    around = [max(pair) for pair in zip([-math.inf, *known], [*known[1:], -math.inf], strict=False)]
    peaks = [
        place for place, (own, beside) in enumerate(zip(known, around, strict=True))
        if own >= max(beside, least) and own > -math.inf and beside <= own - drop
    ]  # fmt: skip
    found = []
    for peak in sorted(peaks, key=lambda place: -known[place])[:MOST_PEAKS]:
        left = at[peak - 1] if peak > 0 else at[peak] ** 2 / at[1]
        right = at[peak + 1] if peak + 1 < len(at) else at[peak] ** 2 / at[-2]
        found += [(peak, _tidy(math.sqrt(at[peak] * other))) for other in (left, right)]
    return found


def _cells(values: Sequence[float]) -> NDArray[np.float64]:
    """Return what part of a line each of its values stands for, on a scale of ratios."""
    place = np.log(values)
    cells = np.diff(np.concatenate([place[:1], (place[1:] + place[:-1]) / 2, place[-1:]]))
    cells[[0, -1]] *= 2  # the outermost values stand for as much on their other side
    return np.asarray(cells / cells.sum())


def assumed_noise(sigma: float | None, bernoulli: bool) -> tuple[Noise, list[Notice]]:
    """Return the rewards' noise, with a warning where it had to be assumed."""
    if bernoulli or sigma is not None:
        return Bernoulli() if sigma is None else Gaussian(float(sigma)), []
    text = (
        "The rewards' standard deviation was not given: sigma = 1 is assumed. "
        f"Give {option('sigma')} (or {option('bernoulli')})."
    )
    return Gaussian(1.0), [Notice("sigma-assumed", text)]


AXES = ("scale", "exploration", "reward_range", "temperature", "sigma", "epsilon", "mixing")
"""Parameters that nobody knows, of which a rule has one or none."""

ACROSS: Mapping[str, tuple[float, float, float]] = {"rate": (0.05, 1.0, 2.0), "deviation": (0.5, 10.0, 3.0)}
"""A second such parameter, which has lines of the first side by side: ends and ratio of its first values, about."""

ABSORBED = {"scale": ("alpha",), "reward_range": ("delta",)}  # by such a parameter: they move the same factor

APART = 2.0  # nats between neighbouring lines up to which none is tried between them
MOST_PEAKS = 2  # of a line of values, around which more are tried

STEP, RANDOMISED_STEP, BEYOND = math.sqrt(2.0), 2.0, 2.0  # ratio of neighbours on a line, and how far beyond a grid


def axis_of(rule: Demonstrator, of: Candidate | Any) -> str | None:
    """Return the parameter along which a guess of a candidate or contender has neighbours: a form's own, if it has one.

    Examples
    --------
    >>> from unbandit import EpsilonGreedy
    >>> falling = Candidate("epsilon-greedy", (), axis="epsilon", forms=("decay", "rate"))
    >>> axis_of(EpsilonGreedy(epsilon=1, decay=20), falling), axis_of(EpsilonGreedy(), falling)
    ('decay', 'epsilon')
    """
    return next((name for name in of.forms if getattr(rule, name, None) is not None), of.axis)


def with_lines(
    candidate: Candidate, noise: Noise, log: ActionLog, there: Availability | None = None
) -> Candidate:  # fmt: skip
    """Let a rule whose parameters nobody gave have a line of values of the parameter that nobody knows.

    It spans what its `grid` does and more. The exponent of the paper's width and its scale are one factor at one
    horizon, so that a single exponent is considered; nearly so are the range and the error probability of LilUCB. A
    rule's other `forms` have lines too, and half of its probability. A second number that nobody knows, as a learning
    rate, has values over its whole range, and a line at each.
    """
    first = candidate.guesses[0][0]
    grid = type(first).grid(noise)
    axis = next((name for name in AXES if name in grid and len(grid[name]) > 1), None)
    if axis is None or len(candidate.guesses) != math.prod(len(values) for values in grid.values()):
        return candidate
    low, high = min(grid[axis]) / BEYOND, max(grid[axis]) * BEYOND
    step = RANDOMISED_STEP if isinstance(first, RandomisedRule) or axis == "exploration" else STEP
    opening = {"initial": (0,)} if _without_opening(first, log, there) else {}
    across = next((name for name in ACROSS if name in grid and len(grid[name]) > 1), None)
    side = {} if across is None else {across: _geometric(*ACROSS[across])}
    spans = {**grid, **opening, **side, axis: _geometric(low, high, step)}
    lines = _combined(type(first), spans, ABSORBED.get(axis, ()))
    others, own = list[Demonstrator](), set[str]()
    for form in type(first).forms(noise, int(log.lengths.max())):
        last = list(form)[-1]
        spread = _geometric(min(form[last]), max(form[last]), step)
        others += _combined(type(first), {**form, **opening, last: spread})
        own |= {last} - {axis}
    weight = 0.5 if others else 1.0
    guesses = [(rule, weight / len(lines)) for rule in lines] + [(rule, 0.5 / len(others)) for rule in others]
    return replace(candidate, guesses=tuple(guesses), axis=axis, across=across, forms=tuple(sorted(own)))


def _geometric(low: float, high: float, step: float) -> list[float]:
    """Return values from one end to the other whose ratios are about a step."""
    number = math.ceil(math.log(high / low) / math.log(step) - 1e-9) + 1
    return [_tidy(value) for value in np.geomspace(low, high, number).tolist()]


def _tidy(value: float) -> float:
    """Return a value without the rounding errors of its computation: 2, and not 2.0000000000000004."""
    return float(f"{value:.12g}")


def _combined(kind: type[Demonstrator], grid: Mapping[str, Sequence[Any]], absorbed: Sequence[str] = ()) -> list[Any]:
    """Return the rules with every combination of a grid's values; those that are refused are left out."""
    rules, names = [], [name for name in grid if name not in absorbed]
    for values in product(*(grid[name] for name in names)):
        with suppress(ParameterError):
            rules.append(kind(**dict(zip(names, values, strict=True))))
    return rules


def _without_opening(rule: Demonstrator, log: ActionLog, there: Availability | None) -> bool:
    """Return whether a log refutes that the rule pulled every arm in turn first, and the rule can do without."""
    if not (isinstance(rule, RandomisedRule) and rule.initial == 1):
        return False
    if there is None:
        heads = (log.demonstration(which)[: len(log.arms)] for which in range(len(log)))
        return not all(np.unique(head).size == head.size for head in heads)
    try:
        for which in range(len(log)):
            actions = log.demonstration(which).astype(np.int64)
            steps_while_there(actions, np.full(actions.size, np.nan), 1, there)
    except InferenceError:
        return True
    return False


PROBES = ((1, 10), (3, 20), (5, 100), (40, 100), (7, 1_000), (900, 1_000))  # pulls and rounds of compared indices


def twin_value(rule: Demonstrator, line: Demonstrator, axis: str, horizon: int, arms: int) -> float | None:
    """Return the value of the `axis` at which another rule's index is that of a rule, always; None if at none.

    Examples
    --------
    >>> from unbandit import KLUCB, UCB1
    >>> twin_value(KLUCB(noise="gaussian", sigma=0.5, level="round"), UCB1(), "exploration", 1_000, 2)
    0.5
    >>> twin_value(KLUCB(noise="gaussian", sigma=0.5, level="horizon"), UCB1(), "exploration", 1_000, 2)
    """
    if not (isinstance(rule, IndexRule) and isinstance(line, IndexRule) and rule.shifts and line.shifts):
        return None
    if any(getattr(rule, name) != getattr(line, name) for name in ("ties", "initial", "batch", "delay")):
        return None

    def added(each: IndexRule) -> NDArray[np.float64]:
        whole = each.for_arms(arms)
        return np.array([whole.index(0.0, pulls, round, max(horizon, 1_000)) for pulls, round in PROBES])

    wanted, start = added(rule), getattr(line, axis)
    ratio = float(wanted[0] / added(line)[0])
    for value in (start * ratio, start * ratio**2):  # in the width, or in its square
        if np.allclose(added(type(line)(**(line.model_dump() | {axis: value}))), wanted, rtol=1e-9, atol=0.0):
            return float(np.round(value, 12))
    return None


def _without_twins(candidates: Sequence[Candidate], horizon: int, arms: int) -> list[Candidate]:
    """Leave out guesses that are another candidate's rule at some value of its axis: no log can tell them apart.

    KL-UCB with Gaussian rewards is UCB or UCB1 that way, but for one level. The line of the other reaches that value.
    """
    twins: dict[str, list[tuple[Demonstrator, float]]] = {}
    kept = []
    for candidate in candidates:
        left = []
        for rule, weight in candidate.guesses:
            values = (
                (each.name, twin_value(rule, each.guesses[0][0], each.axis, horizon, arms))
                for each in candidates if candidate.axis is None and each.axis is not None
            )  # fmt: skip
            other, value = next(((name, value) for name, value in values if value is not None), (None, None))
            if other is None or value is None:
                left.append((rule, weight))
            else:
                twins.setdefault(other, []).append((rule, value))
        if left:  # what a candidate lacks to 1 it still lacks
            share = sum(weight for _, weight in left) / sum(weight for _, weight in candidate.guesses)
            kept.append(replace(candidate, guesses=tuple((rule, weight / share) for rule, weight in left)))
    for at, each in enumerate(kept):
        for _, value in twins.get(each.name, ()):
            kept[at] = kept[at].extended(value)
    return [replace(each, twins=tuple(rule for rule, _ in twins.get(each.name, ()))) for each in kept]


def candidates_for(
    specs: CandidateSpec | Iterable[CandidateSpec] | Mapping[str, Iterable[CandidateSpec]] | None, noise: Noise,
    log: ActionLog, *, lines: bool = False, there: Availability | None = None,
) -> tuple[tuple[Candidate, ...], list[Notice]]:  # fmt: skip
    """Read the candidates; by default every `proposed` rule that takes such rewards.

    With `lines` a rule whose parameters nobody gave has more values of the one that matters (`with_lines`), and no two
    candidates that nobody named are the same rule. `there` says which arms could be pulled when, if not all always.
    """
    notes: list[Notice] = []
    if isinstance(specs, Demonstrator) or (isinstance(specs, type) and issubclass(specs, Demonstrator)):
        specs = [specs]
    if specs is None:
        proposed = [rule for rule in rules().values() if rule.proposed]
        candidates = [each for rule in proposed if (each := _default(rule, noise, log, notes)) is not None]
    elif not checks.is_list(specs) or isinstance(specs, bytes):
        text = f"expected rules or their texts; got {type(specs).__name__}."
        raise ParameterError(text, parameter="candidates", value=specs, remedy='Write them as "ucb,thompson".')
    elif isinstance(specs, Mapping):
        candidates = [_of_list(str(name), given, noise) for name, given in specs.items()]
    else:
        parts: Iterable[CandidateSpec] = split_candidates(specs) if isinstance(specs, str) else specs
        candidates = [_one(part, noise, log) for part in parts]
    names = [candidate.name for candidate in candidates]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ParameterError(f'expected each of them once; got "{twice}" twice.', parameter="candidates", value=twice)
    if not candidates:
        raise ParameterError("expected one rule or more, as in ucb,thompson; got none.", parameter="candidates")
    if lines and not isinstance(specs, Mapping):
        candidates = [with_lines(each, noise, log, there) if ":" not in each.name else each for each in candidates]
    if lines and specs is None:
        candidates = _without_twins(candidates, int(log.lengths.max()), len(log.arms))
    return tuple(candidates), notes


def split_candidates(text: str) -> list[str]:
    """Split at commas; a piece with an equals sign belongs to the rule before it.

    So `ucb, sae:alpha=0.25,scale=2, uniform` has three parts.
    """
    parts: list[str] = []
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        if parts and "=" in piece and ":" not in piece:
            parts[-1] += f",{piece}"
        else:
            parts.append(piece)
    return parts


def _default(rule: type[Demonstrator], noise: Noise, log: ActionLog, notes: list[Notice]) -> Candidate | None:
    """Take a rule that nobody named, as far as it takes such rewards."""
    try:
        guesses = rule.guesses(noise, log)
    except ParameterError as error:
        notes.append(Notice("candidate-left-out", f"{rule.name} is left out since it has no usual parameters: {error}"))
        return None
    fitting = [(guess, weight) for guess, weight in guesses if isinstance(noise, Bernoulli) or not guess.bernoulli_only]
    total = sum(weight for _, weight in fitting) / sum(weight for _, weight in guesses)
    return Candidate(rule.name, tuple((guess, weight / total) for guess, weight in fitting)) if fitting else None


def _one(spec: CandidateSpec, noise: Noise, log: ActionLog) -> Candidate:
    """Read one candidate: a bare name or a class stands for its grid, anything else for itself."""
    if isinstance(spec, Demonstrator):
        return _equally_likely(str(spec), [spec], noise)
    if isinstance(spec, type) and issubclass(spec, Demonstrator):
        return _checked(Candidate(spec.name, tuple(spec.guesses(noise, log))), noise)
    if not isinstance(spec, str):
        raise ParameterError(
            f"expected rules, their classes or their texts; got {checks.brief(spec)}.",
            parameter="candidates",
            value=spec,
        )
    if ":" not in spec:
        return _one(rule_named(spec.strip(), "candidates"), noise, log)
    return _equally_likely(spec.strip(), [parse_rule(text, "candidates") for text in _alternatives(spec)], noise)


def _of_list(name: str, given: Iterable[CandidateSpec], noise: Noise) -> Candidate:
    """Take a grid given by the user: rules or their texts, all equally likely."""
    given = given if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    grid = [parse_rule(rule, "candidates") if isinstance(rule, str) else rule for rule in given]
    checked = [rule for rule in grid if isinstance(rule, Demonstrator)]
    if not checked or len(checked) < len(grid):
        text = f"{name}: expected a list of rules, one or more; got {checks.brief(grid)}."
        raise ParameterError(text, parameter="candidates")
    return _equally_likely(name, checked, noise)


def _equally_likely(name: str, grid: list[Demonstrator], noise: Noise) -> Candidate:
    return _checked(Candidate(name, tuple((rule, 1 / len(grid)) for rule in grid)), noise)


def _alternatives(text: str) -> list[str]:
    """Expand `softmax:temperature=0.1|0.2` into every combination of the values between bars."""
    name, colon, rest = text.partition(":")
    choices = []
    for part in rest.split(","):
        key, equals, values = part.partition("=")
        choices.append([f"{key}{equals}{value}" for value in values.split("|")])
    return [f"{name}{colon}{','.join(chosen)}" for chosen in product(*choices)]


def _checked(candidate: Candidate, noise: Noise) -> Candidate:
    """Refuse rules that do not take such rewards, and those whose evidence cannot be computed."""
    for rule, _ in candidate.guesses:
        by_chance = rule.random_delay is not None
        if isinstance(rule, RecentIndexRule) or by_chance or (isinstance(rule, IndexRule) and rule.is_late):
            late = "rules whose delays are random" if by_chance else "index rules whose rewards are late"
            kind = "rules that forget" if isinstance(rule, RecentIndexRule) else late
            raise ParameterError(
                f"{rule}: how probable a log is under {kind} is not computed here, so they cannot be compared with "
                "others.",
                parameter="candidates",
                value=str(rule),
                remedy="Leave it out; estimate says whether such a rule fits the log.",
            )
        if rule.bernoulli_only and isinstance(noise, Gaussian):
            raise ParameterError(
                f"{rule}: expected rewards of 0 and 1, for which this rule is made; got sigma = {noise.sigma:g}.",
                parameter="candidates",
                value=str(rule),
                remedy=f"Give {option('bernoulli')}, or leave the rule out.",
            )
    return candidate
