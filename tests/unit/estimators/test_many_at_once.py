"""All demonstrations are read at once, and every number is the one that each gives alone: bit for bit."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import polars as pl
import pytest

from unbandit import SAE, UCB, ActionLog, AssumptionWarning, Instance, NotIdentifiable, estimate
from unbandit.demonstrators import rules
from unbandit.estimators import diagnostics
from unbandit.estimators.procedures import can_compare
from unbandit.instance import Bernoulli
from unbandit.result import NUMBERS

ARMS = ("a", "b", "c", "d")
MEANS = [0.8, 0.6, 0.5, 0.1]
LENGTHS = (3, 40, 160, 7, 1, 160, 12, 90)
EXAMPLES = [rule(**given) for rule in rules().values() if rule.reveals == "values" for given in rule.examples]
OPTIONS = {
    "gaps": {},
    "best mean": {"best_mean": 0.8},
    "anchor": {"anchor": {"b": 0.6}},
    "ratios": {"scale": "unknown"},
    "ratios of one": {"scale": "unknown", "reference": "c"},
    "horizon": {"best_mean": 0.8, "horizon": 500},
    "counts": {"method": "counts", "best_mean": 0.8},
    "naive": {"method": "naive", "best_mean": 0.8},
}


def quietly(log, rule, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return estimate(log, rule, **options)


def noise_of(rule):
    return {} if rule.bernoulli_only else {"sigma": 0.5}


MADE = {}


def made_by(rule):
    if str(rule) not in MADE:
        instance = Instance(MEANS, Bernoulli(), ARMS)
        runs = [rule.demonstrate(instance, length, seed=length).actions for length in LENGTHS]
        MADE[str(rule)] = ActionLog.from_codes(np.concatenate(runs), ARMS, offsets=np.cumsum([0, *LENGTHS]))
    return MADE[str(rule)]


def answer_or_refusal(log, rule, **options):
    """Estimate; None where nothing follows, for want of an anchor or of a gap to count the others in."""
    try:
        return quietly(log, rule, **options)
    except NotIdentifiable as error:
        if "So nothing else follows" not in str(error) and "do not show which arm is better" not in str(error):
            raise
        return None


def told(notice):
    return notice.code, notice.message, notice.round, notice.arm


def check_same(log, rule, **options):
    """Hold every row against the estimate from its demonstration alone."""
    together = answer_or_refusal(log, rule, **options)
    singles = [answer_or_refusal(log.select(which), rule, **options) for which in range(len(log))]
    if together is None:
        assert singles == [None] * len(log)
        return
    for which, single in enumerate(singles):
        mine = [notice for notice in (*together.warnings, *together.notes) if notice.demonstration == str(which + 1)]
        if single is None:
            assert {"no-anchor", "no-ratio", "even-counts"} & {notice.code for notice in mine}
            assert np.isnan(together.columns.mean[which]).all()
            assert np.isnan(together.columns.ratio[which]).all()
            continue
        for name in (*NUMBERS, "pulls", "verdict"):
            np.testing.assert_array_equal(getattr(together.columns, name)[which], getattr(single.columns, name)[0])
        assert together.best_by_demonstration[which] == single.best
        assert together.horizons[which] == single.horizons[0]
        of_all = ("scale-unknown", "counts-cannot-tell", "sigma-shared")
        said = [notice for notice in (*single.warnings, *single.notes) if notice.code not in of_all]
        both = [(told(ours), told(alone)) for ours, alone in zip(mine, said, strict=True)]
        for (code, text, *where), alone in both:  # a table of availability is for one of several demonstrations
            one = text.replace(f'add demonstration="{which + 1}", and give', "give")
            assert (code, one, *where) == alone


def closed(rule, options):
    """Tell whether the rule has a closed form that can be asked so."""
    fitted = rule.for_arms(len(ARMS))
    free = getattr(fitted, "shifts", True) or options.get("method") == "naive"
    known = "anchor" in options or "best_mean" in options
    return can_compare(fitted, options.get("method", "bracket")) and (free or known)


CASES = [
    pytest.param(rule, options, id=f"{rule} {name}")
    for rule in EXAMPLES
    for name, options in OPTIONS.items()
    if closed(rule, options)
]


@pytest.mark.parametrize(("rule", "options"), CASES)
def test_every_rule_reads_many_as_it_reads_one(monkeypatch, rule, options):
    fitted = rule.for_arms(len(ARMS))
    monkeypatch.setattr(
        diagnostics, "CELLS", 3 * len(ARMS)
    )  # three demonstrations a block, so that horizons differ in some
    given = {"method": "bracket"} | noise_of(fitted) | options
    log = made_by(fitted)
    check_same(log, rule, **given)


ODD = {
    "an arm never pulled": ["abab" + "a" * 30, "cbabaa", "c" * 9],
    "tied": ["abcbcbc", "abcaabb", "abcd"],
    "no opening": ["aaaabbbcd", "dddd", "abcd" + "d" * 40 + "abc"],
    "order broken": ["abcd" * 5 + "ab" * 9 + "c" + "a" * 9, "abcdabcd" + "ab" * 30 + "a" * 20],
    "never reconsidered": ["abcd" + "a" * 60, "abcd" + "abc" * 12 + "a" * 80 + "b" * 3],
}


@pytest.mark.parametrize("rule", [UCB(), UCB(initial=2), UCB(batch=3), SAE(), SAE(batch=2)], ids=str)
@pytest.mark.parametrize("runs", ODD.values(), ids=ODD)
@pytest.mark.parametrize("method", ["switching", "counts", "naive"])
def test_records_that_no_rule_made_are_read_as_they_are_one_by_one(runs, rule, method):
    log = ActionLog.from_actions([list(run) for run in runs], arms=ARMS)
    for options in ({}, {"best_mean": 1.0}, {"anchor": {"b": 0.5}}):
        given = {"method": method, "bernoulli": True} | options
        check_same(log, rule, **given)


@pytest.mark.parametrize("rule", [UCB(), SAE()], ids=str)
def test_tables_of_counts_are_read_as_they_are_one_by_one(rule):
    counts = [[70, 20, 9, 1], [5, 5, 0, 0], [300, 299, 298, 2]]
    names = np.repeat([1, 2, 3], 4)
    frame = pl.DataFrame({"demonstration": names, "arm": list("abcd") * 3, "pulls": np.ravel(counts)})
    log = ActionLog.from_frame(frame)
    given = {"sigma": 0.5, "best_mean": 1.0, "method": "counts"}
    check_same(log, rule, **given)


def test_bernoulli_rewards_and_an_anchor_arm_differ_from_demonstration_to_demonstration():
    log = made_by(UCB(scale=0.3))
    given = {"bernoulli": True, "anchor": {"c": 0.5}}
    check_same(log, UCB(scale=0.3), **given)


def many(runs=60, horizon=60):
    return UCB().demonstrate(Instance(MEANS, 1.0, ARMS), horizon, runs=runs, seed=3)


def test_of_many_demonstrations_alike_one_notice_tells_how_many_they_are():
    log = many()
    together = quietly(log, "ucb", sigma=1.0)
    single = [quietly(log.select(which), "ucb", sigma=1.0) for which in range(len(log))]
    for kind in ("warnings", "notes"):
        found = [notice for answer in single for notice in getattr(answer, kind)]
        told = {notice.code: notice for notice in getattr(together, kind)}
        assert set(told) == {notice.code for notice in found}
        for code, notice in told.items():
            alike = [which for which, answer in enumerate(single) if code in {n.code for n in getattr(answer, kind)}]
            if len(alike) <= diagnostics.MOST_NOTICES:
                continue
            first = next(n for n in getattr(single[alike[0]], kind) if n.code == code)
            where = f'In {len(alike)} of 60 demonstrations, the first being "{alike[0] + 1}"'
            assert notice.message == f"{where}: {first.message}"
            assert (notice.round, notice.arm, notice.demonstration) == (None, None, None)
    assert max(len(together.warnings), len(together.notes)) < 60
    assert any(notice.message.startswith("In ") for notice in together.notes)


def test_of_few_demonstrations_each_has_its_notices_in_the_order_of_the_demonstrations():
    together = quietly(many(diagnostics.MOST_NOTICES), "ucb", sigma=1.0)
    places = [int(notice.demonstration) for notice in together.notes]
    assert places == sorted(places)
    assert len(together.notes) >= diagnostics.MOST_NOTICES


def test_an_anchor_lost_in_most_demonstrations_is_told_once_and_in_all_refused():
    lost, found = list("abcd" + "a" * 30), list("abcd" + "aab" * 12 + "a" * 9)
    log = ActionLog.from_actions([*[lost] * 30, found], arms=ARMS)
    answer = quietly(log, "ucb", sigma=1.0, anchor={"b": 0.5})
    (told,) = [notice for notice in answer.warnings if notice.code == "no-anchor"]
    assert told.message == 'In 30 of 31 demonstrations, the first being "1": The anchor "b" has no estimated gap.'
    assert np.isnan(answer.columns.mean[:30]).all()
    assert np.isfinite(answer.columns.mean[30, :2]).all()
    with pytest.raises(NotIdentifiable, match=r'The anchor "b" has no estimated gap\. So nothing else follows'):
        quietly(ActionLog.from_actions([lost] * 30, arms=ARMS), "ucb", sigma=1.0, anchor={"b": 0.5})


@pytest.fixture(scope="module")
def large():
    """Return the answer to more demonstrations than names are listed for."""
    return quietly(many(2_500, 12), "ucb", sigma=1.0)


def test_an_answer_to_very_many_behaves_as_a_small_one(large):
    assert len(large.demonstrations) == len(large.horizons) == len(large.best_by_demonstration) == 2_500
    assert large.demonstrations[-1] == "2500"
    assert large.horizons[7] == 12
    assert set(large.best) == {arm for arms in large.best_by_demonstration for arm in arms}
    assert large["b", "1700"] == next(row for row in large if (row.arm, row.demonstration) == ("b", "1700"))
    with pytest.raises(KeyError):
        large["b", "2501"]
    again = pickle.loads(pickle.dumps(large))
    assert again.best_by_demonstration == large.best_by_demonstration
    assert again.demonstrations == large.demonstrations
    assert again.horizons == large.horizons
    assert repr(again) == repr(large)


def test_the_table_of_very_many_has_every_row(large):
    rows = [(row.demonstration, row.arm, row.pulls, row.gap, row.gap_low, row.verdict) for row in large]
    assert large.to_frame().select("demonstration", "arm", "pulls", "gap", "gap_low", "verdict").rows() == rows
    assert large.to_frame().schema["ratio"] == pl.Float64


def test_the_json_of_very_many_says_the_same(large):
    assert len(large) >= 10_000
    assert json.loads(large.to_json()) == large.to_dict()


def test_what_people_see_of_very_many_is_short(large):
    assert len(str(large).splitlines()) < 100
    assert "... and 2,490 more demonstrations: see to_frame()" in str(large)
    assert len(large._repr_html_()) < 100_000
