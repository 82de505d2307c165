"""Recover what every arm of a bandit was worth from the record of which arm was pulled, and nothing else.

>>> import unbandit as ub
>>> instance = ub.datasets.battery("high", arms=20, seed=1)
>>> rule = ub.UCB.variance_adjusted(alpha=0.25, sigma=instance.sigma)
>>> log = rule.demonstrate(instance, horizon=5_000, seed=7)
>>> result = ub.estimate(log, rule, best_mean=instance.best_mean)
>>> result.best
('6.0-4.4-4.4',)
"""

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from unbandit._version import __version__

if TYPE_CHECKING:
    from unbandit import datasets, plots, theory
    from unbandit.demonstrators import (
        EXP3,
        KLUCB,
        MOSS,
        SAE,
        UCB,
        UCB1,
        UCBV,
        AdditiveIndexRule,
        Demonstrator,
        EliminationRule,
        EpsilonGreedy,
        ExploreThenCommit,
        IndexRule,
        LearningSoftmax,
        LilUCB,
        PhasedElimination,
        RandomisedRule,
        Softmax,
        Thompson,
        Uniform,
        parse_rule,
        rules,
    )
    from unbandit.errors import (
        AssumptionWarning,
        ClusterError,
        DescriptionError,
        InferenceError,
        LogError,
        MissingExtra,
        NotIdentifiable,
        OutputError,
        ParameterError,
        ResumeError,
        UnbanditError,
    )
    from unbandit.estimators import estimate, posterior, sensitivity
    from unbandit.estimators.learning_curve import LearningCurve, learning_curve
    from unbandit.estimators.streaming import StreamingEstimate
    from unbandit.estimators.switching_moment import SwitchingMoment, switching_moment, switching_rounds
    from unbandit.identification import Identification, identify
    from unbandit.inference import BetaPrior, NormalPrior, Posterior, parse_prior
    from unbandit.instance import Bernoulli, Gaussian, Instance
    from unbandit.log import ActionLog
    from unbandit.log.scanned import ScannedLog
    from unbandit.planning import Leak, Plan, leak, plan
    from unbandit.reporting import Report, report
    from unbandit.result import Estimate
    from unbandit.study import Study
    from unbandit.tape import Tape, normal_quantile

_HOMES = {
    "demonstrators": [
        "KLUCB",
        "MOSS",
        "SAE",
        "UCB",
        "UCB1",
        "UCBV",
        "AdditiveIndexRule",
        "Demonstrator",
        "EliminationRule",
        "ExploreThenCommit",
        "IndexRule",
        "EXP3",
        "EpsilonGreedy",
        "LearningSoftmax",
        "LilUCB",
        "RandomisedRule",
        "Softmax",
        "Thompson",
        "Uniform",
        "PhasedElimination",
    ],
    "demonstrators.registry": ["parse_rule", "rules"],
    "errors": [
        "AssumptionWarning",
        "ClusterError",
        "DescriptionError",
        "InferenceError",
        "LogError",
        "MissingExtra",
        "NotIdentifiable",
        "OutputError",
        "ParameterError",
        "ResumeError",
        "UnbanditError",
    ],
    "identification": ["Identification", "identify"],
    "planning": ["Leak", "Plan", "leak", "plan"],
    "reporting": ["Report", "report"],
    "result": ["Estimate"],
    "estimators": ["estimate", "posterior", "sensitivity"],
    "estimators.learning_curve": ["LearningCurve", "learning_curve"],
    "estimators.switching_moment": ["SwitchingMoment", "switching_moment", "switching_rounds"],
    "estimators.streaming": ["StreamingEstimate"],
    "inference": ["BetaPrior", "NormalPrior", "Posterior", "parse_prior"],
    "instance": ["Bernoulli", "Gaussian", "Instance"],
    "log": ["ActionLog"],
    "log.scanned": ["ScannedLog"],
    "study": ["Study"],
    "tape": ["Tape", "normal_quantile"],
}
_RENAMED = {
    "Hesitation": "SwitchingMoment",
    "Settling": "LearningCurve",
    "hesitation": "switching_moment",
    "settling": "learning_curve",
}
_ROOMS = ("datasets", "plots", "theory")

__all__ = [
    "EXP3",
    "KLUCB",
    "MOSS",
    "SAE",
    "UCB",
    "UCB1",
    "UCBV",
    "ActionLog",
    "AdditiveIndexRule",
    "AssumptionWarning",
    "Bernoulli",
    "BetaPrior",
    "ClusterError",
    "Demonstrator",
    "DescriptionError",
    "EliminationRule",
    "EpsilonGreedy",
    "Estimate",
    "ExploreThenCommit",
    "Gaussian",
    "Identification",
    "IndexRule",
    "InferenceError",
    "Instance",
    "Leak",
    "LearningCurve",
    "LearningSoftmax",
    "LilUCB",
    "LogError",
    "MissingExtra",
    "NormalPrior",
    "NotIdentifiable",
    "OutputError",
    "ParameterError",
    "PhasedElimination",
    "Plan",
    "Posterior",
    "RandomisedRule",
    "Report",
    "ResumeError",
    "ScannedLog",
    "Softmax",
    "StreamingEstimate",
    "Study",
    "SwitchingMoment",
    "Tape",
    "Thompson",
    "UnbanditError",
    "Uniform",
    "__version__",
    "datasets",
    "estimate",
    "identify",
    "leak",
    "learning_curve",
    "normal_quantile",
    "parse_prior",
    "parse_rule",
    "plan",
    "plots",
    "posterior",
    "report",
    "rules",
    "sensitivity",
    "switching_moment",
    "switching_rounds",
    "theory",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: `import unbandit` stays quick."""
    if name in _RENAMED:
        new = _RENAMED[name]
        warnings.warn(f"unbandit.{name} is now unbandit.{new}", DeprecationWarning, stacklevel=2)
        return __getattr__(new)
    if name in _ROOMS:
        return importlib.import_module(f"unbandit.{name}")
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(importlib.import_module(f"unbandit.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'unbandit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
