"""Sequential Monte Carlo over the hidden sums of rewards: one filter per kind of rule."""
