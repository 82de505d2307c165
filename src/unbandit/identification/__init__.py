"""Which rule made this log? Candidates weighed by how probable they make it, and checked by simulation."""

from unbandit.identification.api import identify
from unbandit.identification.result import Identification

__all__ = ["Identification", "identify"]
