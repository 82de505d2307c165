"""Which rule made this log? Candidates compared by the evidence, and the leading one checked by simulation."""

from unbandit.identification.api import identify
from unbandit.identification.result import Identification
from unbandit.identification.survey import Survey, check

__all__ = ["Identification", "Survey", "check", "identify"]
