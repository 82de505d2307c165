"""The paper's main picture: the UCB demonstrator."""

from __future__ import annotations

from unbandit.demonstrators import UCB
from unbandit.paper.four_panels import FourPanels

__all__ = ["PICTURES", "UCBPicture"]


class UCBPicture(FourPanels):
    """Show UCB's regret and estimation error."""

    name = "ucb"
    title = "UCB: regret and error"
    section = "the main text's picture of simulations with UCB, (a) to (d)"
    rule = UCB
    paper_runs = 100
    caption = (
        "Procedure 2 on UCB. (a) Mean regret against the horizon and (b) mean squared error of the worse arm's gap, on"
        " two arms with means 1 and 1/2 and unit variance; (c) the same errors against the regret; (d) the error of "
        "each suboptimal arm among four with means 1, 2/3, 1/3, 0 and variance 1/4, at α = 0.25 (our choice). All runs"
        " count, also those whose most-pulled arm is not the best. Bands are one standard error; thin lines have the "
        "slopes of theory: α in (a), −α in (b) and (d), −1 in (c)."
    )
    alt = (
        "Four panels on logarithmic axes: mean regret against the horizon and mean squared error against the horizon, "
        "one curve for each alpha; the same errors against the regret; mean squared error against the horizon for "
        "three arms."
    )


class UCBBernoulli(UCBPicture):
    """Show the same for rewards of 0 and 1."""

    name = "ucb-bernoulli"
    title = "UCB with Bernoulli rewards"
    section = "not in the paper: the same picture for rewards of 0 and 1, for which its bounds are proved"
    full_only = True
    bernoulli = True
    caption = (
        "As for UCB above, with rewards of 0 and 1. All means move into the middle half, where the bounds are proved: "
        "the two arms keep their gap and have means 3/4 and 1/4, the four are drawn together to 3/4, 7/12, 5/12 and "
        "1/4."
    )


PICTURES = (UCBPicture(), UCBBernoulli())
