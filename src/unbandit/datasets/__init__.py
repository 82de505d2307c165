"""The bandits that the paper plays: made-up ones, battery charging, gene knock-down.

`names()` lists those that have a name, and `load(name)` builds one. Here `battery` and `gene` are the functions, not
the files of those names.
"""

from unbandit.datasets.battery import battery, lifetimes, protocols
from unbandit.datasets.gene import gene
from unbandit.datasets.registry import linear, load, names, shrinking_gap, two_armed

__all__ = ["battery", "gene", "lifetimes", "linear", "load", "names", "protocols", "shrinking_gap", "two_armed"]
