"""Every verdict and every notice, in words for someone who has never seen a bandit paper."""

from __future__ import annotations

from typing import NamedTuple


class Explanation(NamedTuple):
    """Explanation of a notice: its title, its meaning, and what helps."""

    title: str
    meaning: str
    remedy: str = ""


GLOSSARY = {
    "arm": "One of the things that could be chosen: a treatment, an advertisement, a setting of a machine.",
    "pull, round": "One choice of an arm is a pull. Every round has one.",
    "reward": "What a choice gave: a lifetime, a click, a score. The log does not hold it; that is why this report is "
    "needed.",
    "mean": "What an arm gives on average. This is what is estimated here.",
    "gap": "How much less an arm gives on average than the best one. The best arm's own gap is 0.",
    "rule": "How the chooser decides which arm comes next, from what the choices so far have given.",
    "interval": "A range that holds the true value in as many cases as its level says (95 of 100 at a level of 95%), "
    "if the assumptions below are right.",
}

VERDICTS = {
    "best": "The arm that the rule settled on. All gaps are counted from it.",
    "estimated": "The log shows how good this arm is: there is a value, with an interval.",
    "bounded": "The log gives only one end, or two ends far apart: the arm was given up at once, or it was still in "
    "play when the record ended. It is at least, or at most, this far behind.",
    "unseen": "The arm was never pulled. Nothing is known about it.",
}

DOUBTS = frozenset({"late-arm", "not-reconsidered", "opening", "order-broken", "strained"})
"""Notices that put in doubt that the rule made the record at all."""

NOTICES = {
    # the record does not fit the rule
    "opening": Explanation(
        "The record does not open as the rule would",
        "The rule that was assumed tries every arm once before it decides anything. This record does not begin so.",
        "Check that the log is whole and sorted by round, and that the rule is the right one.",
    ),
    "short-record": Explanation(
        "The record ends very early",
        "The rule that was assumed tries every arm once before it decides anything. The record ends before that: it "
        "fits the rule, but there is no decision in it yet to learn from.",
        "Only a longer record can show more.",
    ),
    "late-arm": Explanation(
        "An arm turns up late",
        "The rule would have tried this arm in its first rounds. Either the beginning of the record is missing, or the "
        "arm was added later, or another rule was at work.",
        "Check where the log begins. Rounds before it cannot be made up for.",
    ),
    "not-reconsidered": Explanation(
        "The rule would have come back to an arm",
        "The more often an arm is chosen, the smaller is the benefit of the doubt that this rule gives it. So the turn "
        "of every other arm comes again. Here it did not, though by the end of the record it should have.",
        "Check the rule and its parameters; if you do not know the rule, ask which rules would explain the record.",
    ),
    "order-broken": Explanation(
        "The record breaks the rule's order",
        "A rule of this kind takes its arms in turn and never returns to one that it has dropped. The record does "
        "return, so this rule cannot have made it as it stands.",
        "Check for missing or shuffled rows, and whether the rule is the right one.",
    ),
    "strained": Explanation(
        "A choice that the rule hardly explains",
        "The computation follows thousands of guesses at the hidden rewards. In this round none of them leads to the "
        "choice that was made.",
        "Check the rule and its noise; if they are right, follow more guesses (more particles).",
    ),
    # which arm is best
    "tied-best": Explanation(
        "Two arms share the first place",
        "The arm chosen most often is taken as the best. Here several were chosen equally often, so which one stands "
        "first is not told by the record.",
        "A longer record would tell them apart.",
    ),
    "near-best": Explanation(
        "Many arms are as good as the best",
        "Among many nearly equal arms the one chosen most often may have been lucky rather than better. The others "
        "then look a little worse than they are, and their intervals are too short.",
        "Read these arms as a group of good ones, not as a ranking.",
    ),
    "unresolved": Explanation(
        "The best arm was not yet settled",
        "The rule drops arms that are clearly worse. When the record ended it still had several in play, so any of "
        "them may be the best. Gaps are counted from whichever of them it is.",
        "Only a longer record can settle it.",
    ),
    "best-uncertain": Explanation(
        "Chance could have picked another best arm",
        "The rule was simulated again and again on arms as they are estimated here. Often another arm came out first.",
        "Take the first place with care.",
    ),
    "probability-best": Explanation(
        "How sure the first place is",
        "This is how likely the arm is the best of all, given the record, the rule and what was believed beforehand.",
    ),
    # the intervals
    "sigma-assumed": Explanation(
        "How much rewards scatter was not said",
        "The same arm gives now more, now less. How far rewards scatter around their mean (their standard deviation, "
        "sigma) decides how long the intervals are. It was taken as 1: if rewards scatter half as far, the intervals "
        "are twice as long as they need to be.",
        "Say how noisy one reward is (sigma), or that rewards were 0 or 1 where they were.",
    ),
    "few-pulls": Explanation(
        "An arm was tried only a few times",
        "The rule turned away from this arm so early that a single reward moved its average far. Its gap comes out "
        "rather too small; the interval is long enough to allow for it.",
    ),
    "few-pulls-pooled": Explanation(
        "Arms were tried only a few times in most demonstrations",
        "A gap read off a few tries comes out rather too small, each time in the same direction. Putting "
        "demonstrations together makes the interval shorter, but not that error.",
        "Read the gap of such an arm as rather larger than it stands here.",
    ),
    "many-active": Explanation(
        "An arm was compared with the luckiest of many",
        "The rule drops an arm when it falls far enough behind the one that looks best at that moment. Where many are "
        "nearly equal, the one that looks best is partly lucky: the gap is then too large and its interval too short.",
    ),
    "often-bounded": Explanation(
        "An interval rests on some of the simulations",
        "In simulations at the estimate this arm often had no value at all. Its interval comes from those in which it "
        "had one, and is likely too short.",
    ),
    "coarse": Explanation(
        "The rule looked at its record rarely",
        "A rule that decides only now and then lets us see only between which two looks an arm fell behind. The value "
        "is put halfway, and the interval takes in both.",
    ),
    "short-horizon": Explanation(
        "Too short for the paper's guarantee",
        "The paper proves how large the error can be, for records much longer than this one. The intervals in this "
        "report do not rest on that proof.",
    ),
    "bootstrap": Explanation(
        "Intervals by simulation",
        "The rule was simulated on arms as they are estimated, and each simulated record was read like the real one. "
        "How far those answers stray gives the intervals.",
    ),
    "bounded-kept": Explanation(
        "Bounds stay as they were",
        "Simulations say how far values stray. Arms that have no value, only a bound, keep that bound.",
    ),
    # values, means, ratios
    "scale-unknown": Explanation(
        "Only proportions are known",
        "How strongly the rule explores was taken as unknown. All gaps then share one unknown factor, and only how "
        "many times larger one is than another can be said.",
    ),
    "reference": Explanation(
        "What ratios are counted in",
        "A ratio of 2 means: twice as far behind the best arm as this arm is.",
        "Another arm can be chosen as the reference.",
    ),
    "no-ratio": Explanation(
        "No ratios here",
        "Ratios need one arm with a value to count the others in, and here there is none.",
    ),
    "no-anchor": Explanation(
        "The known mean does not help here",
        "One arm's mean was given, but the record does not show how far that arm is behind the best. So no other mean "
        "follows from it.",
        "Give the mean of an arm with the verdict estimated, or the best arm's.",
    ),
    "level-from-prior": Explanation(
        "Differences are known, the level is not",
        "If all rewards were higher by the same amount, the same choices would have been made. So the means' common "
        "level is what was believed beforehand, not what the record says. The gaps are the record's.",
        "Read the gaps; or say one mean that you know, the best arm's or another's.",
    ),
    "level-from-rewards": Explanation(
        "The level rests on few known rewards",
        "The choices show how arms differ; how high all of them are comes from the rewards that happen to be known.",
        "Trust the gaps more than the means, and compare two seeds.",
    ),
    "values-from-prior": Explanation(
        "No values in this record",
        "This rule tries all arms equally often and then keeps to one. Its record shows which one, and nothing of what "
        "any arm is worth: means and gaps are what was believed beforehand.",
    ),
    "prior": Explanation(
        "What was believed beforehand",
        "Where the record says little, the answer leans on a belief about the means from before the record was seen: "
        "the prior.",
        "Try another prior, and see whether the answer changes.",
    ),
    "evidence": Explanation(
        "How probable the record is",
        "A number for comparing rules on the same record: the higher, the better the rule explains the choices. By "
        "itself it says nothing.",
        "To compare, ask which rules would explain the record.",
    ),
    "clouds-differ": Explanation(
        "The computation has not settled",
        "The answer was computed four times over, independently, and the four differ too much.",
        "More particles, that is more guesses at the hidden rewards, bring them together.",
    ),
    # the record and its reading
    "counts-only": Explanation(
        "Only counts, not their order",
        "The record says how often each arm was chosen, not when. For most rules that is nearly as informative.",
    ),
    "reading": Explanation(
        "About the reading of the log",
        "Said while the log was read: a column that was left aside, or rewards that are known.",
    ),
    "pooled": Explanation(
        "Several demonstrations, one answer",
        "All demonstrations are taken as made on the same arms, and their evidence is put together.",
    ),
    "best-arms-differ": Explanation(
        "Demonstrations disagree about the best arm",
        "Each demonstration settled on an arm of its own. They are put together all the same; if they are really of "
        "different arms, that is wrong.",
        "If so, have each demonstration read by itself, not pooled.",
    ),
    "left-out": Explanation(
        "Some demonstrations could not be used",
        "They had given up the arm that the others found best, so they say nothing about how far others are behind it.",
    ),
    # from `identify`
    "candidate-left-out": Explanation(
        "A rule was not considered",
        "It needs parameters that nobody gave and that have no usual values.",
        "Name it with its parameters among the candidates.",
    ),
    "does-not-reproduce": Explanation(
        "Not even the best candidate fits",
        "Simulated, the most probable of the rules behaves otherwise than the record does.",
        "The rule that made the record may not be among the candidates.",
    ),
    "emptied": Explanation(
        "A rule was ruled out by the computation",
        "No guess at the hidden rewards led this rule to the choices made.",
        "More particles, that is more guesses, might find one.",
    ),
    "more-particles": Explanation(
        "The computation decides here, not the record",
        "The rules differ by less than the error of the computation.",
        "More particles make that error smaller.",
    ),
}
"""What each kind of notice means, by its code."""
