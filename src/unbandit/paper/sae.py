"""The paper's picture of successive elimination, and how many of its arms had been eliminated at all."""

from __future__ import annotations

from unbandit.demonstrators import SAE
from unbandit.paper.four_panels import PAPER, FourPanels

__all__ = ["PICTURES", "SAEPicture"]


class SAEPicture(FourPanels):
    """Show SAE's regret and estimation error."""

    name = "sae"
    title = "SAE: regret, error, and what is still open"
    section = "the appendix's picture of simulations with SAE, (a) to (d)"
    rule = SAE
    paper_runs = 250
    ranges = (PAPER, (5_000, 50_000))
    shares = True
    caption = (
        "Procedure 1 on SAE, in the setting of the UCB picture, with horizons up to 50,000 where the paper stops at "
        "5,000. (a) to (d) as there; (e) and (f), which the paper does not have, show in what share of runs the arm "
        "has an estimate, having been seen to be eliminated, and, thin, in what share it is only bounded, being still "
        "in play. Points are hollow and lines pale where fewer than 95% of the runs have an estimate: there the error "
        "is that of a selection, and no claim rests on it. Slopes of best fit are over the paper's horizons."
    )
    alt = (
        "Six panels: mean regret and mean squared error against the horizon, and against each other, for two alphas; "
        "mean squared error for three arms; and the shares of runs in which an arm is estimated or only bounded."
    )


class SAEBernoulli(SAEPicture):
    """Show the same for rewards of 0 and 1."""

    name = "sae-bernoulli"
    title = "SAE with Bernoulli rewards"
    section = "not in the paper: the same picture for rewards of 0 and 1, for which its bounds are proved"
    full_only = True
    bernoulli = True
    caption = (
        "As for SAE above, with rewards of 0 and 1. All means move into the middle half, where the bounds are proved: "
        "the two arms keep their gap and have means 3/4 and 1/4, the four are drawn together to 3/4, 7/12, 5/12 and "
        "1/4."
    )


PICTURES = (SAEPicture(), SAEBernoulli())
