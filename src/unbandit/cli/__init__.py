"""The command line: `unbandit COMMAND`.

Commands import what is heavy only when they run, so that `unbandit --help` answers at once.
"""

import os
import signal
import sys

from unbandit.errors import Interrupts

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C ends it at any moment with exit code 130, also while it starts or ends."""
    interrupts = Interrupts()
    signal.signal(signal.SIGINT, interrupts.interrupt)
    try:
        from unbandit.cli.app import main as run

        run()
    except SystemExit:
        if interrupts.came:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # enough was said, and what is left is tidying up
        raise
    except BaseException:
        if not interrupts.came:
            raise
        sys.stdout.flush()
        os._exit(130)
