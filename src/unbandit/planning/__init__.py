"""Before collecting: how long a rule must run (`plan`), and what its record will give away (`leak`)."""

from unbandit.planning.horizons import Plan, plan
from unbandit.planning.leakage import Leak, leak

__all__ = ["Leak", "Plan", "leak", "plan"]
