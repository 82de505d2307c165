"""Candidates for the rule that made a log: rules with given parameters, or with a grid of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from unbandit import checks
from unbandit.demonstrators import Demonstrator, parse_rule, rules
from unbandit.demonstrators.base import rule_named
from unbandit.errors import Notice, ParameterError, option
from unbandit.inference.conventions import Convention
from unbandit.instance import Bernoulli, Gaussian, Noise
from unbandit.log import ActionLog

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

    def by_conventions(self, guess: int, others: Sequence[Demonstrator]) -> Candidate:
        """Return the candidate with a guess by other conventions too, which share its probability."""
        guesses, end = list(self.guesses), len(self.guesses)
        rule, prior = guesses[guess]
        shared = prior / (1 + len(others))
        guesses[guess] = (rule, shared)
        guesses += [(other, shared) for other in others]
        added = {end + place: Convention(rule, other) for place, other in enumerate(others)}
        return Candidate(self.name, tuple(guesses), {**self.conventions, **added})

    def tried(self, guess: int) -> bool:
        """Return whether a guess stands there by other conventions too, or is one of those."""
        rule = self.guesses[guess][0]
        return guess in self.conventions or any(each.given == rule for each in self.conventions.values())


def assumed_noise(sigma: float | None, bernoulli: bool) -> tuple[Noise, list[Notice]]:
    """Return the rewards' noise, with a warning where it had to be assumed."""
    if bernoulli or sigma is not None:
        return Bernoulli() if sigma is None else Gaussian(float(sigma)), []
    text = (
        "The rewards' standard deviation was not given: sigma = 1 is assumed. "
        f"Give {option('sigma')} (or {option('bernoulli')})."
    )
    return Gaussian(1.0), [Notice("sigma-assumed", text)]


def candidates_for(
    specs: str | Iterable[CandidateSpec] | Mapping[str, Iterable[CandidateSpec]] | None, noise: Noise, log: ActionLog
) -> tuple[tuple[Candidate, ...], list[Notice]]:
    """Read the candidates; by default every `proposed` rule that takes such rewards."""
    notes: list[Notice] = []
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
        notes.append(Notice("candidate-left-out", f"{rule.name} is left out, for it has no usual parameters: {error}"))
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
    """Refuse rules that do not take such rewards."""
    for rule, _ in candidate.guesses:
        if rule.bernoulli_only and isinstance(noise, Gaussian):
            raise ParameterError(
                f"{rule}: expected rewards of 0 and 1, for which this rule is made; got sigma = {noise.sigma:g}.",
                parameter="candidates",
                value=str(rule),
                remedy=f"Say {option('bernoulli')}, or leave it out.",
            )
    return candidate
