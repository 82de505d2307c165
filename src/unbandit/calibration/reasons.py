"""Why a goal is not reached, where that is known: said on the page beside the figures that miss it."""

from __future__ import annotations

__all__ = ["REASONS"]

REASONS: dict[tuple[str, str], str] = {}
"""By the goal's key and the rule's name; shown only where a figure of such a rule does not reach the goal."""
