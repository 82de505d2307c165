"""Before collecting: how long a rule must run (`plan`), and what its record will give away (`leak`)."""

from unbandit.planning.horizons import plan
from unbandit.planning.leakage import Leak, leak
from unbandit.planning.result import Plan

__all__ = ["Leak", "Plan", "leak", "plan"]
