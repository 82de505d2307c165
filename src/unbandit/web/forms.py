"""The forms of the page: what can be asked, and what was asked."""

from __future__ import annotations

from unbandit.web.fields import FieldErrors
from unbandit.web.options import read_columns, read_options
from unbandit.web.rule_forms import UNKNOWN, RuleForm, read_rule, rule_css, rule_forms
from unbandit.web.simulations import Simulation, read_simulation

__all__ = [
    "UNKNOWN",
    "FieldErrors",
    "RuleForm",
    "Simulation",
    "read_columns",
    "read_options",
    "read_rule",
    "read_simulation",
    "rule_css",
    "rule_forms",
]
