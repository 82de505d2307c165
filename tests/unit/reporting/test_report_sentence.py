"""The answer in one plain sentence: says what the record tells, and no more."""

from __future__ import annotations

import made
import pytest

import unbandit as ub

SENTENCES = {
    "gaps": 'Of the 4 arms "A" is the best one; the closest behind is "B", worth 0.226 less (95% interval 0.149 to '
    '0.314), the furthest "D", worth 0.792 less.',
    "means": 'Of the 4 arms "A" is the best one, worth 1; the closest behind is "B", worth 0.774 (95% interval 0.686 '
    'to 0.851), the furthest "D", worth 0.208.',
    "ratios": 'Of the 4 arms "A" is the best one; "D", the furthest behind, is 3.45 times as far behind as "B".',
    "naive": 'Of the 4 arms "A" is the best one; the closest behind is "B", worth 0.14 less, the furthest "D", worth '
    "0.314 less.",
    "elimination, open": 'The log does not show which of "A", "B" and "C" is the best; "D" is worth 1.03 less than '
    "the best of them (95% interval 0.918 to 1.15).",
    "several": 'In all 7 demonstrations "A" is the best of the 4 arms.',
    "shortest": 'Of the 2 arms "A" is taken to be the better one; of the other the log gives only bounds.',
    "wrong rule": "This log does not look like the work of ucb. If ucb did make it, then of the 4 arms",
}


@pytest.mark.parametrize("kind", SENTENCES)
def test_what_is_said(kind):
    assert made.report_of(kind).sentence.startswith(SENTENCES[kind].rstrip("."))


@pytest.mark.parametrize("kind", made.KINDS)
def test_it_is_one_sentence_and_short(kind):
    sentence = made.report_of(kind).sentence
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert ". " not in sentence.replace("1.5. ", "").replace(". If ", "; if ")  # a doubt stands before it
    assert len(sentence) < 600


def test_arms_too_close_to_the_best_are_named():
    assert "are too close to it to tell apart" in made.report_of("wrong rule").sentence
    two = ub.ActionLog.from_actions("AB" + "AB" * 20 + "A" * 5)
    said = ub.report(two, "ucb", sigma=1.0).sentence
    assert said.startswith('Of the 2 arms "A" is taken to be the better one, but "B", worth ')
    assert said.endswith("is too close to it to tell apart.")


def test_demonstrations_that_disagree_are_counted():
    log = ub.ActionLog.from_actions([list("ABAAAAAAAA"), list("ABBBBBBBBB"), list("ABAAAAAAAA")])
    assert ub.report(log, "ucb", sigma=0.1).sentence == (
        'In 2 of 3 demonstrations "A" is the better of the 2 arms; in 1 it is "B".'
    )
    undecided = ub.ActionLog.from_actions([list("ABC" * 4), list("CBA" * 4)])
    assert ub.report(undecided, "sae", sigma=1.0).sentence == (
        "In none of the 2 demonstrations does the log show which of the 3 arms is the best."
    )


def test_a_demonstration_that_is_too_close_or_tied_stays_open():
    settled, close, tied = list("AB" + "A" * 60), list("AB" + "AB" * 20 + "A" * 5), list("AB" * 5)
    log = ub.ActionLog.from_actions([settled, close, settled, tied])
    assert ub.report(log, "ucb", sigma=1.0).sentence == (
        'In 2 of 4 demonstrations "A" is the better of the 2 arms; in 2 it stays open.'
    )
    assert ub.report(ub.ActionLog.from_actions([close, tied]), "ucb", sigma=1.0).sentence == (
        "In none of the 2 demonstrations does the log show which of the 2 arms is the best."
    )


def test_a_record_that_ends_early_is_not_said_to_be_of_another_rule():
    report = made.report_of("one round")
    assert [notice.code for notice in report.answer.warnings] == ["short-record"]
    assert report.sentence.startswith('Of the 2 arms "A" is the better one')


def test_of_two_arms_there_is_no_proportion():
    two = ub.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    report = ub.report(two, "ucb", scale="unknown")
    assert report.sentence == 'Of the 2 arms "A" is the better one; how far "B" is behind is not known.'
    assert "there is no other gap to hold it against" in report.main


def test_a_posterior_says_how_sure_it_is():
    report = made.report_of("randomised")
    (posterior,) = report.answer.posteriors
    probability = float(posterior.probability_best[posterior.arms.index("A")])
    assert 0.9 < probability < 0.999
    assert report.sentence.startswith(f'Of the 4 arms "A" is the best one with probability {probability:.3g}')


def test_a_level_that_is_only_believed_is_not_told_as_a_mean():
    report = made.report_of("level believed")
    assert "less" in report.sentence
    assert '<th scope="col" class="amount">gap</th>' in report.main
    assert '<th scope="col" class="amount">mean</th>' not in report.main


def test_other_levels_are_written_as_they_are():
    assert "99.9% interval" in ub.report(made.log_of(made.UCB, 500), made.UCB, sigma=0.5, level=0.999).sentence
