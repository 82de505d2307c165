"""What a log shows by itself: signs that rules are not expected to leave, and a first round that decides too much."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import RandomisedRule
from unbandit.errors import Notice, option
from unbandit.estimators.diagnostics import BEGINNING, sorted_rows, table_with
from unbandit.estimators.posterior import LATE_PULLS
from unbandit.formatting import counted, joined, quoted
from unbandit.identification.evidence import Contender, IdentificationRequest
from unbandit.identification.values import believed_sigma
from unbandit.inference.rivals import batch_of
from unbandit.inference.whole_numbers import MOST_OPENING
from unbandit.kernels.tally import read_epochs
from unbandit.log import ActionLog
from unbandit.log.availability import Availability

LATE_AFTER_OPENING = 5  # rounds per arm after which an arm is late, where all others were opened
LOG_CHANCE = math.log(0.001)  # of a sign, by choices at random, up to which it is named
ROUNDS_OF_PART, STRANGE = 100, 4.0  # in which repeats are counted, twice; and deviations by which they are a habit
GONE, MOSTLY = 20.0, 0.5  # pulls that an arm would have had, had it stayed; and a share of a half of the log

DECIDED_BY_OPENING = (
    "Otherwise do not rely on the answer: rules that pull every arm once first are excluded because of this arm alone."
)


def appeared_late(log: ActionLog) -> list[Notice]:
    """Say which arm first appears late: it may not have been there before.

    An arm is late in every demonstration that pulled it: after an opening of all others, or after very many rounds.
    """
    firsts, number = np.asarray(log.tallied("counts").counted[1]), len(log.arms)
    after = firsts > LATE_AFTER_OPENING * number
    others = np.count_nonzero((firsts > 0) & ~after, axis=1)
    opened = (others > 1) & (np.where(after, 0, firsts).max(axis=1) == others)
    late = (after & opened[:, None]) | (firsts > LATE_PULLS * number)
    marked = np.flatnonzero(late.any(axis=0) & (late | (firsts == 0)).all(axis=0))
    if not marked.size:
        return []
    when = [int(firsts[late[:, at], at].min()) for at in marked]
    (round, arm), *_ = spans = sorted(zip(when, (log.arms[at] for at in marked), strict=True))
    more = f" (and {marked.size - 1} more after it)" if marked.size > 1 else ""
    text = (
        f"Arm {quoted(arm)} first appears in round {round:,}{more}. The comparison assumes that every arm was "
        f"available from the first round. If it was not, {table_with([(name, first, None) for first, name in spans])}"
    )
    return [Notice("appeared-late", text, round=round, arm=arm)]


def signs(log: ActionLog, there: Availability | None = None) -> list[Notice]:
    """Name what a log shows by itself that rules are not expected to do, and what to do about it.

    For logs that no candidate explains. Each sign is one that logs of the usual rules seldom have; it is no proof.
    """
    runs = [log.demonstration(which).astype(np.int64) for which in range(len(log))]
    arms, found = len(log.arms), list[Notice]()
    changes = [np.flatnonzero(np.diff(run)) + 1 for run in runs]
    if there is None and (by_arm := sorted_rows(log, 2)):
        return by_arm
    first = next((at for at, run in enumerate(runs) if np.unique(run[:arms]).size < min(arms, run.size)), None)
    if first is not None and there is None:
        text = (
            f"The first {counted(arms, 'round')} do not pull every arm once, as most programs do. People and other "
            f"learners by trial and error need not. {BEGINNING} Both options are for an estimate under one rule."
        )
        where = log.demonstrations[first] if len(log) > 1 else None
        found.append(Notice("shows-no-opening", text, demonstration=where))
    turns = min(_turns(run, arms) for run in runs)
    if turns <= MOST_OPENING and len(runs) * (turns - 1) * _log_chance_of_turn(arms) < LOG_CHANCE:
        text = (
            f"The first {counted(turns * arms, 'round')} pull every arm {turns} times, in turn. Some rules begin "
            f"like that, and rules whose rewards come late: name such a candidate, as in "
            f"{option('candidates', f'ucb:initial={turns}')}."
        )
        found.append(Notice("shows-turns", text, count=turns))
    each = [batch_of(log.select(which), turns) for which in range(len(log))]
    size, number = math.gcd(*each), sum(int((own > turns * arms).sum()) for own in changes)
    if size > 1 and -number * math.log(size) < LOG_CHANCE:
        text = (
            f"After the opening an arm stays for a multiple of {counted(size, 'round')}. Rules that decide in "
            f"batches do that: name such a candidate, as in {option('candidates', f'ucb:batch={size}')}."
        )
        found.append(Notice("shows-batches", text, count=size))
    if not any(each.code in ("shows-turns", "shows-batches") for each in found):
        found += _habits(runs, arms, changing=there is not None)
    if len(runs) == 1 and there is None:
        found += _signs_of_change(log, runs[0])
    return found


def _habits(runs: Sequence[NDArray[np.int64]], arms: int, *, changing: bool) -> list[Notice]:
    """Say that arms are repeated, or not repeated, far more often than by choices at random, in both halves of a log.

    What follows arms other than the most-pulled one, which most rules soon leave, or any arm, is compared with the
    shares of arms in the same part of the log. Rules that do so by rewards are named; where arms are `changing`, no
    order of turns is read.
    """
    again, expected, variance, rounds = np.zeros((4, 2, 2))  # by what is looked at, and by half
    for run in runs:
        top, number = np.bincount(run, minlength=arms).argmax(), 2 * int(np.clip(run.size // ROUNDS_OF_PART, 1, 4))
        for which, part in enumerate(np.array_split(np.arange(run.size - 1), number)):
            before, after = run[part], run[part + 1]
            share = (np.bincount(after, minlength=arms) / max(after.size, 1))[before]
            for kind, of in enumerate((before != top, before >= 0)):
                at = kind, 2 * which // number
                again[at], expected[at] = again[at] + (before == after)[of].sum(), expected[at] + share[of].sum()
                variance[at], rounds[at] = variance[at] + (share * (1 - share))[of].sum(), rounds[at] + of.sum()
    far = (again - expected) / np.sqrt(np.maximum(variance, 1e-9))
    stays = (far[0] > STRANGE).all() and (rounds - again < (rounds - expected) / 2)[0].all()
    if not stays and not ((far[1] < -STRANGE) & (again[1] < expected[1] / 3)).all():
        return []
    kind, where, people = 0, "arms other than the most-pulled one", "to stay"
    others = "rules that follow few rewards (learning-softmax, sliding-window-ucb), rules whose rewards come late"
    if not stays:
        kind, where, people = 1, "an arm", "to change"
        others = "rules that take arms in turn (sae, phased)"
        if not changing and not any(read_epochs(run, arms)[1] for run in runs):
            others = "elimination rules (sae, phased), whose order the log keeps"
    seen, chance = again[kind].sum() / rounds[kind].sum(), expected[kind].sum() / rounds[kind].sum()
    text = (
        f"After {where}, the same arm comes again in {seen:.0%} of the rounds; choices at random would repeat it in "
        f"{chance:.0%}. So do {others}, and people who tend {people} whatever the rewards are."
    )
    return [Notice("shows-habit", text)]


def _turns(run: NDArray[np.int64], arms: int) -> int:
    """Return how many times in a row the beginning of a run pulls every arm once.

    Examples
    --------
    >>> _turns(np.array([0, 1, 2, 1, 0, 2, 1, 1, 1]), 3), _turns(np.array([0, 0, 1]), 3)
    (2, 0)
    """
    blocks = run[: run.size // arms * arms].reshape(-1, arms)
    once = (np.sort(blocks, axis=1) == np.arange(arms)).all(axis=1)
    return int(once.size if once.all() else once.argmin())


def _log_chance_of_turn(arms: int) -> float:
    """Return the log probability that choices at random pull every arm once in as many rounds."""
    return math.lgamma(arms + 1) - arms * math.log(arms)


def _signs_of_change(log: ActionLog, run: NDArray[np.int64]) -> list[Notice]:
    """Name an arm that was chosen often and then never again, or one whose place another took late."""
    half = run.size // 2
    early, late = (np.bincount(part, minlength=len(log.arms)) / max(part.size, 1) for part in (run[:half], run[half:]))
    last = run.size - np.array(
        [int(np.argmax(run[::-1] == arm)) if arm in run else run.size for arm in range(len(log.arms))]
    )
    share = np.bincount(run, minlength=len(log.arms)) / np.maximum(last, 1)
    missed = share * (run.size - last)  # pulls that would have come at this share
    found, gone = list[Notice](), int(missed.argmax())
    if missed[gone] > GONE:
        text = (
            f"{quoted(log.arms[gone])} was chosen in {share[gone]:.0%} of the rounds up to round {last[gone]:,}, and "
            f"never after it. If it was withdrawn, {table_with([(log.arms[gone], None, int(last[gone]))])}"
        )
        found.append(Notice("shows-withdrawal", text, round=int(last[gone]), arm=log.arms[gone]))
    before, after = int(early.argmax()), int(late.argmax())
    if before != after and early[before] > MOSTLY and late[after] > MOSTLY and before != gone:
        text = (
            f"{quoted(log.arms[before])} was chosen most in the first half of the log ({early[before]:.0%}), and "
            f"{quoted(log.arms[after])} in the second ({late[after]:.0%}). No candidate allows for arms whose values "
            f"change: `estimate` with {option('windows', 4)} shows the log stretch by stretch."
        )
        found.append(Notice("shows-change", text, round=half + 1, arm=log.arms[before]))
    return found


def opening_alone(
    request: IdentificationRequest, contenders: Sequence[Contender], *, sigma_given: bool
) -> list[Notice]:
    """Say which rules are excluded by their opening alone: of a log that misses its beginning, they may be the rule.

    It is a warning where Thompson sampling is left that believed in another noise than the rewards have: a program may
    do so by its default, but a log with missing rounds of an index rule looks the same.
    """
    leading = contenders[0]
    if not isinstance(leading.guesses[0].rule, RandomisedRule):
        return []
    arms, excluded = len(request.log.arms), list[str]()
    for each in contenders:
        first, evidence = each.guesses[0].rule, each.evidence
        opened = evidence.round is not None and evidence.round <= getattr(first, "initial", 1) * arms
        if not each.possible and opened and not evidence.collapsed:
            excluded.append(each.name)
    if not excluded:
        return []
    text = (
        f"{joined(sorted(excluded), 'and')}: excluded by the first rounds alone, which do not pull every arm once. If "
        "rounds are missing or the log begins in mid-run, one of them may have made it, and these values do not hold: "
        f"`estimate` reads such logs with {option('kept')} or {option('starting_pulls')}."
    )
    found = believed_sigma(leading)
    if not sigma_given or found is None or request.sigma is None or found[0] <= request.sigma <= found[2]:
        return [Notice("opening-alone", text)]
    believed = (
        f" That may be so here: {leading.name} would have assumed a noise of {found[1]:.3g} ({found[0]:.3g} to "
        f"{found[2]:.3g}), not the {request.sigma:g} that was given. Programs do that if nobody changes their default."
    )
    return [Notice("opening-decides", text + believed)]
