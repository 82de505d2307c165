"""The shell's face: `unbandit COMMAND`.

Heavy imports stand inside the commands, so that `unbandit --help` answers at once.
"""

from unbandit.cli.app import main

__all__ = ["main"]
