"""Who may have made a log: rules with parameters that are given, or considered over a grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from unbandit.demonstrators import Demonstrator, parse_rule, rules
from unbandit.errors import Notice, ParameterError
from unbandit.instance import noise_of
from unbandit.log import ActionLog

CandidateSpec = str | Demonstrator | type[Demonstrator]


@dataclass(frozen=True)
class Candidate:
    """Hold a rule that may have made the log.

    Attributes
    ----------
    name
        As it was asked for: a rule's name, or a rule with its parameters.
    guesses
        The rule with each set of parameters that is considered, and how likely the set is beforehand. What is missing
        to 1 belongs to sets that cannot have made the log.
    """

    name: str
    guesses: tuple[tuple[Demonstrator, float], ...]


def candidates_for(
    asked: str | Iterable[CandidateSpec] | Mapping[str, Iterable[CandidateSpec]] | None,
    sigma: float | None,
    log: ActionLog,
) -> tuple[tuple[Candidate, ...], list[Notice]]:
    """Settle who is considered; where nobody is named, every rule that takes such rewards.

    Sigma None stands for rewards of 0 and 1.
    """
    notes: list[Notice] = []
    if asked is None:
        found = [candidate for rule in rules().values() if (candidate := _usual(rule, sigma, log, notes)) is not None]
    elif isinstance(asked, Mapping):
        found = [_of_list(str(name), given, sigma) for name, given in asked.items()]
    else:
        parts: Iterable[CandidateSpec] = split_candidates(asked) if isinstance(asked, str) else asked
        found = [_one(part, sigma, log) for part in parts]
    names = [candidate.name for candidate in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ParameterError(f'expected each of them once; got "{twice}" twice.', parameter="candidates")
    if not found:
        raise ParameterError("expected one rule or more, as in ucb,thompson; got none.", parameter="candidates")
    return tuple(found), notes


def split_candidates(text: str) -> list[str]:
    """Part `ucb,sae:alpha=0.25,scale=2,uniform`: what has an equals sign belongs to the rule before it.

    Examples
    --------
    >>> split_candidates("ucb, sae:alpha=0.25,scale=2, uniform")
    ['ucb', 'sae:alpha=0.25,scale=2', 'uniform']
    """
    parts: list[str] = []
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        if parts and "=" in piece and ":" not in piece:
            parts[-1] += f",{piece}"
        else:
            parts.append(piece)
    return parts


def _usual(rule: type[Demonstrator], sigma: float | None, log: ActionLog, notes: list[Notice]) -> Candidate | None:
    """Consider a rule that nobody named, as far as it takes such rewards."""
    try:
        guesses = rule.guesses(noise_of(sigma), log)
    except ParameterError as error:
        notes.append(Notice("candidate-left-out", f"{rule.name} is left out, for it has no usual parameters: {error}"))
        return None
    fitting = [(guess, weight) for guess, weight in guesses if not (guess.bernoulli_only and sigma is not None)]
    total = sum(weight for _, weight in fitting) / sum(weight for _, weight in guesses)
    return Candidate(rule.name, tuple((guess, weight / total) for guess, weight in fitting)) if fitting else None


def _one(asked: CandidateSpec, sigma: float | None, log: ActionLog) -> Candidate:
    """Read one candidate: a bare name or a class stands for its grid, anything else for itself."""
    if isinstance(asked, Demonstrator):
        return _checked(Candidate(str(asked), ((asked, 1.0),)), sigma)
    if isinstance(asked, type) and issubclass(asked, Demonstrator):
        return _checked(Candidate(asked.name, tuple(asked.guesses(noise_of(sigma), log))), sigma)
    if not isinstance(asked, str):
        raise ParameterError(f"expected rules, their classes or their texts; got {asked!r}.", parameter="candidates")
    known = rules()
    if asked.strip().lower() in known:
        return _one(known[asked.strip().lower()], sigma, log)
    written = [parse_rule(text) for text in _alternatives(asked)]
    return _checked(Candidate(asked.strip(), tuple((rule, 1 / len(written)) for rule in written)), sigma)


def _of_list(name: str, given: Iterable[CandidateSpec], sigma: float | None) -> Candidate:
    """Take a grid of the user's own: rules or their texts, all equally likely."""
    written = [parse_rule(rule) if isinstance(rule, str) else rule for rule in given]
    if not written or not all(isinstance(rule, Demonstrator) for rule in written):
        raise ParameterError(f"{name}: expected a list of rules, one or more; got {written!r}.", parameter="candidates")
    return _checked(Candidate(name, tuple((rule, 1 / len(written)) for rule in written)), sigma)  # type: ignore[misc]


def _alternatives(text: str) -> list[str]:
    """Write out `softmax:temperature=0.1|0.2`, every combination of what stands between bars.

    Examples
    --------
    >>> _alternatives("ucb:alpha=0|0.25,scale=1")
    ['ucb:alpha=0,scale=1', 'ucb:alpha=0.25,scale=1']
    """
    name, colon, rest = text.partition(":")
    choices = []
    for part in rest.split(","):
        key, equals, values = part.partition("=")
        choices.append([f"{key}{equals}{value}" for value in values.split("|")])
    return [f"{name}{colon}{','.join(chosen)}" for chosen in product(*choices)]


def _checked(candidate: Candidate, sigma: float | None) -> Candidate:
    """Refuse rules that do not take such rewards."""
    for rule, _ in candidate.guesses:
        if rule.bernoulli_only and sigma is not None:
            raise ParameterError(
                f"{rule}: expected rewards of 0 and 1, for which this rule is made; got sigma = {sigma:g}. "
                "Say bernoulli, or leave it out.",
                parameter="candidates",
            )
    return candidate
