"""The command line: `unbandit COMMAND`.

Commands import what is heavy only when they run, so that `unbandit --help` answers at once.
"""

import os
import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C ends it at any moment with exit code 130, also while it starts or ends.

    The signal is remembered because a library that it reaches at a bad moment may turn it into an error of its own.
    """
    interrupted = False

    def interrupt(*_: object) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        from unbandit.cli.app import main as run

        run()
    except SystemExit:
        if interrupted:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # enough was said, and what is left is tidying up
        raise
    except BaseException:
        if not interrupted:
            raise
        sys.stdout.flush()
        os._exit(130)
