"""Estimate the value of every arm of a bandit from its action log alone. No rewards needed.

>>> import unbandit as ub
>>> instance = ub.datasets.battery("high", arms=20, seed=1)
>>> rule = ub.UCB.variance_adjusted(alpha=0.25, sigma=instance.sigma)
>>> log = rule.demonstrate(instance, horizon=5_000, seed=7)
>>> result = ub.estimate(log, rule, best_mean=instance.best_mean)
>>> result.best
('6.0-4.4-4.4',)

The public names are listed in `__init__.pyi`, each with its module, which is imported when the name is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
