"""A report of an answer that can be sent to a colleague: one file that needs no other."""

from unbandit.reporting.api import Report, report
from unbandit.reporting.page import stylesheet
from unbandit.reporting.pdf import write_pdf
from unbandit.reporting.provenance import LogSource

__all__ = ["LogSource", "Report", "report", "stylesheet", "write_pdf"]
