"""The command line: `unbandit COMMAND`.

Commands import what is heavy only when they run, so that `unbandit --help` answers at once.
"""

from unbandit.cli.app import main

__all__ = ["main"]
