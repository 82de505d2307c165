"""Before collecting: how long a rule must run (`plan`), and what its record will reveal (`leak`)."""

from unbandit.planning.horizons import leak, plan, rule_of_arms
from unbandit.planning.result import Leak, Plan

__all__ = ["Leak", "Plan", "leak", "plan", "rule_of_arms"]
