"""Which guesses may still win: their evidence in heats, with more work for those that are left, and the decision.

A heat reads some rounds with some particles, and whoever is far behind is out. That may be settled by the beginning of
a log: under the rule that made it, another rule is ever ahead by a factor of `r` with a probability of at most `1 / r`
(Ville's inequality).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unbandit import checks
from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule, RandomisedRule
from unbandit.formatting import counted
from unbandit.identification.candidates import Candidate
from unbandit.identification.evidence import (
    AGREE,
    ERRORS,
    KNOWN,
    LAPLACE_ERROR,
    MOST_SCATTER,
    Heat,
    IdentificationRequest,
    LogEvidence,
    averaged,
    log_evidence,
    rough_evidence,
    with_normal_rewards,
)
from unbandit.inference.rivals import ROUGHLY, predicts
from unbandit.instance import Gaussian, Noise
from unbandit.log import ActionLog

GuessKey = tuple[int, int]  # a candidate's position, and that of one of its guesses

SLACK = 8.0  # a candidate drops out when it is behind by this much more than the errors allow, as a logarithm
REFINED = 8.0  # nats behind the best, up to which values between those of a grid are tried
COARSELY_REFINED, SHARP = 30.0, 2.0  # the same for lines with few values, and nats from one to the next that are many
WITNESS = 10.0  # error of evidence that bounds that of a rule's other guesses, which few particles found less probable
MANY_ROUGH, WELL_BEHIND = 8, 6.0  # of one with two unknown parameters, and nats behind up to which they are
FEW_ROUGH = 3  # guesses of a rule that are filtered first, where its evidence is rough
SURE = 0.95  # the probability that a candidate needs, with the Monte-Carlo error held against it, to be identified
LEADING = Heat(None, 25, 24, 2, quick=True)  # of the most probable guess, where its evidence is rough
AS_IF_NORMAL = Heat(None, 25, 24, 2)  # where rewards of 0 and 1 are taken as normal
ALIGNED = 0.3  # error of rough evidence, less what guesses of a rule share


def successive_halving(
    request: IdentificationRequest, candidates: Sequence[Candidate], progress: Callable[[float], None] | None = None
) -> tuple[list[Candidate], list[list[LogEvidence]]]:
    """Compute the evidence of every guess, heat by heat, with more work for those that may still win.

    A guess that does not explain the log is tried by other conventions before it is excluded, and values between those
    of a grid are tried around the best ones. Returns the candidates with those that explain it, and one list of
    evidences per candidate, in the order of its guesses. `progress` is called with the share of the work that is done.
    """
    entrants, listed = list(candidates), {str(rule) for each in candidates for rule, _ in each.guesses}
    running: list[GuessKey] = [(at, guess) for at, each in enumerate(entrants) for guess in range(len(each.guesses))]
    evidences: dict[GuessKey, LogEvidence] = {}
    heats, before = request.heats, None
    for heat, report in zip(heats, _shares(len(heats), progress), strict=True):
        if before is not None:
            running = _still_running(entrants, evidences, before, heat)
            _drop_others(entrants, evidences, running, before)
            kept = {*running, *_still_running(entrants, evidences, before, heats[-1])}
            for key in evidences.keys() - kept:
                evidences[key] = replace(evidences[key], looks=())
            if not kept:
                break
        evidences |= _heat(request, entrants, running, heat, evidences, report)
        added = _by_conventions(request.noise, entrants, running, evidences, listed)
        evidences |= _heat(request, entrants, added, heat, evidences, report)
        if heat.rough and heat.rounds is None:
            for turn in (1, 2, 3):
                added = _between(entrants, evidences, turn)
                evidences |= _heat(request, entrants, added, heat, evidences, report)
        evidences |= _aligned(entrants, evidences)
        evidences |= _outdone(entrants, evidences, heat)
        before = heat
    asked: set[GuessKey] = set()
    while leading := [key for key in _roughly_leading(entrants, evidences) if key not in asked]:
        asked.update(leading)  # what they find may make another one lead
        evidences |= _heat(request, entrants, leading, LEADING, evidences, lambda share: None)
        evidences |= _aligned(entrants, evidences)
    evidences |= _as_if_normal(request, entrants, evidences)
    return _explaining(entrants, {key: replace(each, looks=()) for key, each in evidences.items()})


def _shares(heats: int, progress: Callable[[float], None] | None) -> Iterator[Callable[[float], None]]:
    """Yield for each heat what turns its share that is done into a share of the whole."""
    ends = (0.25, 0.6, 0.7, 0.75, 0.85, 1.0)[-heats:]
    for begin, end in zip((0.0, *ends), ends, strict=False):

        def report(share: float, begin: float = begin, end: float = end) -> None:
            if progress is not None:
                progress(begin + (end - begin) * share)

        yield report


def _heat(
    request: IdentificationRequest, candidates: Sequence[Candidate], running: Sequence[GuessKey], heat: Heat,
    before: Mapping[GuessKey, LogEvidence], report: Callable[[float], None],
) -> dict[GuessKey, LogEvidence]:  # fmt: skip
    """Compute the evidence of some guesses."""
    costs = [5.0 if isinstance(_rule(candidates, key), RandomisedRule) else 1.0 for key in running]  # about
    done = [0.0]

    def one(at: int) -> LogEvidence:
        candidate, guess = running[at]
        found = log_evidence(request, candidates[candidate].guesses[guess][0], heat, before.get(running[at]))
        done[0] += costs[at] / sum(costs)
        report(min(done[0], 1.0))
        return found

    results = checks.in_threads(one, [(at,) for at in range(len(running))], checks.threads(request.threads))
    return dict(zip(running, results, strict=True))


def _between(
    candidates: list[Candidate], evidences: Mapping[GuessKey, LogEvidence], turn: int
) -> list[GuessKey]:  # fmt: skip
    """Add values between those of a grid to candidates that may still win; return where they are.

    Rules that choose at random start from few values, so that the evidence may be far larger between them; in the
    second turn they get more only where it is still sharp. A third one is for those with two unknown parameters.
    """
    added, best = [], max((each.value for each in evidences.values() if each.rounds is None), default=-math.inf)
    for at, candidate in enumerate(candidates):
        known = {
            guess: evidences[at, guess].value
            for guess in range(len(candidate.guesses))
            if evidences[at, guess].rounds is None and evidences[at, guess].value > -math.inf
        }
        if turn > 2 and candidate.across is None:
            continue
        random = isinstance(candidate.guesses[0][0], RandomisedRule)
        reach = COARSELY_REFINED if random and turn == 1 else REFINED
        if not known or max(known.values()) <= best - reach:
            continue
        candidates[at] = candidate.refined(known, max(known.values()) - REFINED, SHARP if random and turn > 1 else 0.0)
        added += [(at, place) for place in range(len(candidate.guesses), len(candidates[at].guesses))]
    return added


def _drop_others(
    candidates: Sequence[Candidate], evidences: dict[GuessKey, LogEvidence], running: Sequence[GuessKey], heat: Heat
) -> None:
    """Exclude guesses that were given up before the end of the log, with the reason."""
    if heat.rounds is None or not running:
        return
    best = max(running, key=lambda key: evidences[key].value)
    for key in evidences.keys() - set(running):
        each = evidences[key]
        if each.rounds is not None and each.value > -math.inf:
            tens = (evidences[best].value - each.value) / math.log(10)
            evidences[key] = LogEvidence.impossible(
                f"the first {counted(heat.rounds, 'round')} are 10^{tens:.0f} times as probable under "
                f"{candidates[best[0]].name}."
            )


def _by_conventions(
    noise: Noise, candidates: list[Candidate], running: Sequence[GuessKey], evidences: Mapping[GuessKey, LogEvidence],
    listed: set[str],
) -> list[GuessKey]:  # fmt: skip
    """Add the other conventions of guesses that no particle explains, unless they are listed; return where they are."""
    added = []
    for at, guess in running:
        candidate, evidence = candidates[at], evidences[at, guess]
        if candidate.tried(guess) or not (evidence.collapsed or evidence.relaxed is not None):
            continue
        others = [each for each in candidate.guesses[guess][0].conventions(noise) if str(each) not in listed]
        if others:
            listed.update(map(str, others))
            candidates[at] = candidate.by_conventions(guess, others)
            added += [(at, place) for place in range(len(candidate.guesses), len(candidates[at].guesses))]
    return added


def _explaining(
    candidates: Sequence[Candidate], evidences: Mapping[GuessKey, LogEvidence]
) -> tuple[list[Candidate], list[list[LogEvidence]]]:
    """Leave out conventions that do not explain the log; where none does, the guess is as it was given."""
    kept, by_guess = [], []
    for at, candidate in enumerate(candidates):
        left_out = [guess for guess in candidate.conventions if evidences[at, guess].value == -math.inf]
        kept.append(candidate.without(left_out))
        by_guess.append([evidences[at, guess] for guess in range(len(candidate.guesses)) if guess not in left_out])
    return kept, by_guess


def _still_running(
    candidates: Sequence[Candidate], evidences: dict[GuessKey, LogEvidence], heat: Heat, following: Heat
) -> list[GuessKey]:  # fmt: skip
    """Return the guesses that decide between candidates and are not yet known well.

    Where only the beginning has been read, all that may hold much of the probability go on. There are none where the
    log cannot distinguish the candidates, whatever the errors; but clouds that may have fallen short are tried again:
    of each candidate those first that explain the log best.
    """

    def log_prior(key: GuessKey) -> float:
        return math.log(candidates[key[0]].guesses[key[1]][1])

    def reach(key: GuessKey) -> float:
        each = evidences[key]  # how far it may be wrong is itself known roughly, by the clouds of a single heat
        beyond = 0.0 if len(each.bests) > 1 else ERRORS * each.error
        return each.high + beyond + SLACK + log_prior(key)

    collapsed = [key for key, each in evidences.items() if each.collapsed]
    best = max(each.low + log_prior(key) for key, each in evidences.items())
    if best == -math.inf:
        return collapsed if following.glance is None else []
    within = [key for key, each in evidences.items() if each.value > -math.inf and reach(key) >= best]
    if heat.rounds is not None:
        return collapsed + within
    averages = _averages(candidates, evidences)
    decision, best = decide(averages), max(best, *(each.low for each in averages))
    within = [key for key in within if reach(key) >= best]
    wide = [key for key in within if evidences[key].error > MOST_SCATTER and key[0] != decision.order[0]]
    running = list[GuessKey]()
    for at in dict.fromkeys(key[0] for key in wide):
        ordered = sorted((key for key in wide if key[0] == at), key=lambda key: -evidences[key].value)
        running += [key for key in ordered if evidences[key].rough][:FEW_ROUGH]
        running += [key for key in ordered if not evidences[key].rough][:1]
    known = KNOWN if following.glance is None else following.glance
    for at in () if decision.clear or decision.at_best < SURE else decision.contenders:
        own = [key for key in evidences if key[0] == at and evidences[key].value > -math.inf]
        reached = np.array([evidences[key].high + log_prior(key) for key in own])
        shares = np.exp(reached - reached.max())
        errors = shares / shares.sum() * [evidences[key].error for key in own]
        small_first = np.argsort(errors, kind="stable")
        left = np.sqrt(np.cumsum(np.square(errors[small_first])))  # in the average, by all that are not computed again
        running += [own[place] for place, error in zip(small_first, left, strict=True) if error > known]
    if following.glance is not None:
        return [key for key in dict.fromkeys(running) if evidences[key].rough]
    return list(dict.fromkeys(collapsed + running))


def _roughly_leading(candidates: Sequence[Candidate], evidences: Mapping[GuessKey, LogEvidence]) -> list[GuessKey]:
    """Return the best guesses of the most probable candidate if its evidence is rough, which is no answer.

    A few show the error that its guesses share, and by how much they differ in it; one does where that is small. Of two
    unknown parameters it takes more of them to show how they differ.
    """
    best = max(evidences, key=lambda key: evidences[key].value)
    every = [key for key, each in evidences.items() if key[0] == best[0] and each.rounds is None]
    own = sorted((key for key in every if evidences[key].rough), key=lambda key: -evidences[key].value)
    if candidates[best[0]].across is not None:
        filtered = sum(evidences[key].laplace is not None and not evidences[key].rough for key in every)
        near = [key for key in own if evidences[key].value > evidences[best].value - WELL_BEHIND]
        return near[: max(MANY_ROUGH - filtered, int(best in own))]
    if best not in own:
        return []
    return own[:FEW_ROUGH] if evidences[best].error > LAPLACE_ERROR else [best]


def _as_if_normal(
    request: IdentificationRequest, candidates: list[Candidate], evidences: Mapping[GuessKey, LogEvidence]
) -> dict[GuessKey, LogEvidence]:  # fmt: skip
    """Return the evidence of index rules as if rewards of 0 and 1 were normal, if none that may win explains the log.

    Such rewards leave an index few values, so that a log shows a rule's number to many digits: no rewards explain it
    with the nearest of those that are tried. All guesses of a candidate are compared in one way, the better one.
    """
    if isinstance(request.noise, Gaussian) or request.log.rewards is not None:
        return {}
    index = {key: each for key, each in evidences.items() if isinstance(_rule(candidates, key), IndexRule)}
    best = max(each.low for each in evidences.values())
    if any(
        each.relaxed is None and each.high + ERRORS * each.error + SLACK >= best > -math.inf for each in index.values()
    ):
        return {}
    normal, limits, found = with_normal_rewards(request), request.limits(None), dict[GuessKey, LogEvidence]()
    asked = [
        key
        for key in index
        if _has_choice(candidates[key[0]]) and key[1] not in candidates[key[0]].conventions
        if predicts(_rule(candidates, key), ROUGHLY, limits)
    ]
    found |= _heat(normal, candidates, asked, AS_IF_NORMAL, {}, lambda share: None)
    between = _between(candidates, {**dict.fromkeys(evidences, LogEvidence.impossible("")), **found}, 1)
    found |= _heat(normal, candidates, between, AS_IF_NORMAL, {}, lambda share: None)
    best = max((each.value for each in found.values()), default=-math.inf)
    near = [key for key, each in found.items() if each.value > best - REFINED]
    found |= _heat(normal, candidates, near, request.heats[-2], {}, lambda share: None)
    for at in {key[0] for key in found}:
        own = [key for key in evidences if key[0] == at]
        if max(evidences[key].value for key in own) >= max(each.value for key, each in found.items() if key[0] == at):
            found = {key: each for key, each in found.items() if key[0] != at}
        else:
            reason = "no rewards of 0 and 1 explain the log, decision for decision."
            found = {**dict.fromkeys(own, LogEvidence.impossible(reason)), **found}
    return {key: replace(each, normal=each.value > -math.inf) for key, each in found.items()}


def _has_choice(candidate: Candidate) -> bool:
    """Return whether a candidate was given with several sets of parameters: a single one is believed."""
    return len(candidate.guesses) - len(candidate.conventions) > 1


def _rule(candidates: Sequence[Candidate], key: GuessKey) -> Demonstrator:
    return candidates[key[0]].guesses[key[1]][0]


def _aligned(
    candidates: Sequence[Candidate], evidences: Mapping[GuessKey, LogEvidence]
) -> dict[GuessKey, LogEvidence]:  # fmt: skip
    """Return rough evidence less the error that it shares with guesses of the same rule that were filtered."""
    rules: dict[tuple[int, type[Demonstrator]], list[GuessKey]] = {}
    for key, each in evidences.items():
        if each.laplace is not None:
            rules.setdefault((key[0], type(_rule(candidates, key))), []).append(key)
    found: dict[GuessKey, LogEvidence] = {}
    for keys in rules.values():
        own = [evidences[key] for key in keys]
        missed = [
            each.value - each.laplace
            for each in own
            if each.laplace is not None and not each.rough and each.error <= AGREE / ERRORS
        ]
        for key, each in zip(keys, own, strict=True):
            if (
                each.laplace is None
                or not each.rough
                or not missed
                or (len(missed) == 1 and each.value != each.laplace)
            ):
                continue
            spread = (max(missed) - min(missed)) / ERRORS if len(missed) > 1 else each.error / ERRORS
            value = each.laplace + float(np.median(missed))
            found[key] = rough_evidence(value, max(ALIGNED, spread), each.laplace, each.rounds)
    return found


def _outdone(
    candidates: Sequence[Candidate], evidences: Mapping[GuessKey, LogEvidence], heat: Heat
) -> dict[GuessKey, LogEvidence]:
    """Return the guesses that are known well enough, since others of the same candidate are far more probable.

    Where few particles explain a log, their clouds may have fallen short by very much. But a rule's evidence is smooth
    in its parameters: one with sharp evidence that is out of reach bounds those that are further from the log. So does
    the best by few particles that more of them found to be no better, or out of reach whatever their errors are.
    """
    found: dict[GuessKey, LogEvidence] = {}
    best = max((each.low for each in evidences.values()), default=-math.inf)
    for at in range(len(candidates)):
        own = {key: each for key, each in evidences.items() if key[0] == at and each.rounds == heat.rounds}
        sharp = max((each.value for each in own.values() if each.error <= AGREE / ERRORS), default=-math.inf)
        witness = max(
            (
                each
                for each in own.values()
                if not each.rough and (each.error <= WITNESS or (len(each.bests) > 1 and each.high + SLACK < best))
            ),
            key=lambda each: (each.particles, each.value),
            default=None,
        )
        for key, each in own.items():
            if each.rough or each.error <= MOST_SCATTER or each.value == -math.inf or witness is None:
                continue
            if each.value + each.error < sharp:
                found[key] = replace(each, high=each.value + each.error, error=MOST_SCATTER)
            elif each.particles < witness.particles and each.value < witness.value:
                error = MOST_SCATTER if witness.error > WITNESS else max(witness.error, MOST_SCATTER)
                found[key] = replace(each, high=witness.high, error=error)
    return found


def _averages(candidates: Sequence[Candidate], evidences: Mapping[GuessKey, LogEvidence]) -> list[LogEvidence]:
    return [
        averaged(candidate, [evidences[at, guess] for guess in range(len(candidate.guesses))])
        for at, candidate in enumerate(candidates)
    ]


@dataclass(frozen=True)
class Decision:
    """The winner, and by how much it won; candidates are given by their positions."""

    order: tuple[int, ...]  # the most probable first
    probabilities: tuple[float, ...]  # of each candidate
    assured: float  # the probability of the first with the error of each difference held against it
    at_best: float  # the same with the errors in its favour
    contenders: tuple[int, ...]  # those that cannot be distinguished from the first one, itself included
    alike: bool = False  # whether some of these explain the log, whatever it is, so that no evidence can decide

    @property
    def clear(self) -> bool:
        """Return whether the first one is identified."""
        return self.assured >= SURE and not self.alike


def decide(evidences: Sequence[LogEvidence], alike: Collection[int] = ()) -> Decision:
    """Compare candidates that are equally likely a priori; at least one of them must be possible.

    Those that are `alike` are not distinguished from each other, however their evidences differ.
    """
    order = tuple(sorted(range(len(evidences)), key=lambda at: -evidences[at].value))
    first, others = evidences[order[0]], order[1:]
    ratios = [math.exp(each.value - first.value) for each in evidences]
    against, in_favour = dict[int, float](), list[float]()
    for at in others:
        each = evidences[at]
        ahead = each.value - first.value if each.value > -math.inf else -math.inf
        worst = _error_of_difference(first.value - first.low, each.high - each.value) if ahead > -math.inf else 0.0
        best = _error_of_difference(first.high - first.value, each.value - each.low) if ahead > -math.inf else 0.0
        against[at] = math.exp(min(ahead + worst, 700.0))
        in_favour.append(math.exp(min(ahead - best, 700.0)))
    assured, at_best = 1 / (1 + sum(against.values())), 1 / (1 + sum(in_favour))
    same = {at for at in others if order[0] in alike and at in alike and evidences[at].value > -math.inf}
    contenders = tuple(at for at in others if at in same or against[at] > (1 - SURE) / len(evidences))
    probabilities = tuple(each / sum(ratios) for each in ratios)
    return Decision(order, probabilities, assured, at_best, (order[0], *contenders), bool(same))


def one_number(log: ActionLog, candidates: Sequence[Candidate]) -> frozenset[int]:
    """Return the candidates of which a log of two arms shows a single number: when the other arm was dropped.

    An elimination rule whose parameters nobody knows leaves any such number. Which of several left it would be decided
    by how probable their parameters were beforehand, and that is a convention.
    """
    if len(log) > 1 or len(log.arms) > 2:
        return frozenset()
    return frozenset(
        at
        for at, each in enumerate(candidates)
        if len(each.guesses) > 1 and isinstance(each.guesses[0][0], EliminationRule)
    )


def _error_of_difference(first: float, second: float) -> float:
    """Combine how far two ends are away: one standard error, or both of them where clouds may have fallen short."""
    both = math.hypot(first, second)
    return both / ERRORS if both <= AGREE else both
