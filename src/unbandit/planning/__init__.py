"""Before collecting: how long a rule must run (`plan`), and what its record will reveal (`leak`)."""

from unbandit.planning.horizons import plan
from unbandit.planning.leakage import leak
from unbandit.planning.result import Leak, Plan

__all__ = ["Leak", "Plan", "leak", "plan"]
