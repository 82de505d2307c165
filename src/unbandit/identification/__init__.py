"""Which rule made this log? Candidates weighed by how probable they make it, and checked by simulation."""

from unbandit.identification.identified import Identification
from unbandit.identification.which_rule import identify

__all__ = ["Identification", "identify"]
