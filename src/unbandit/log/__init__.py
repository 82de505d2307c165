"""Action logs: demonstrations as an observer sees them."""

from unbandit.log.action_log import ActionLog

__all__ = ["ActionLog"]
