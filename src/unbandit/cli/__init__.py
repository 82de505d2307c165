"""The command line: `unbandit COMMAND`.

Commands import what is heavy only when they run, so that `unbandit --help` answers at once.
"""

import os
import signal
import sys
import threading
from contextlib import suppress

from unbandit.errors import Interrupts

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C ends it at any moment with exit code 130, also while it starts or ends."""
    interrupts = Interrupts()
    signal.signal(signal.SIGINT, interrupts.interrupt)
    try:
        from unbandit.cli.app import main as run

        run()
    except BaseException as error:
        if not interrupts.came:
            raise
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # enough was said, and what is left is tidying up
        if isinstance(error, SystemExit) and threading.active_count() == 1:
            raise
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(130)  # without waiting for a thread that compiles a kernel: nothing stops that
