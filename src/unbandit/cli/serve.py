"""`unbandit serve`: a page on this computer, for people who would rather look than type."""

from __future__ import annotations

import typer

__all__ = ["HELP", "serve"]

HELP = """Open a page in the browser: bring a log, or simulate one, and get the answer as a report.

The page runs on this computer and is seen from it alone, unless --host says otherwise. Stop it with Ctrl-C.

Example:  unbandit serve
"""


def serve(
    host: str = typer.Option("127.0.0.1", "--host", help="Address to listen on; 0.0.0.0 lets other computers in."),
    port: int = typer.Option(8350, "--port", help="Port to listen on; 0 for any that is free."),
    no_open: bool = typer.Option(False, "--no-open", help="Do not open the browser."),
    upload: int = typer.Option(64, "--max-upload", help="Largest file, in megabytes."),
    rows: int = typer.Option(10_000_000, "--max-rows", help="Most rows of a log."),
    seconds: float = typer.Option(300, "--max-seconds", help="Longest time for one piece of work."),
) -> None:
    """Start the page and stay until it is stopped."""
    from unbandit.cli.first_start import say_if_first
    from unbandit.errors import ParameterError
    from unbandit.web.jobs import Limits
    from unbandit.web.server import serve as start

    for name, value in (("--max-upload", upload), ("--max-rows", rows), ("--max-seconds", seconds)):
        if not value > 0:
            raise ParameterError(f"expected a number above 0; got {value}.", parameter=name)
    say_if_first()
    size = upload * 1024**2
    limits = Limits(upload=size, unpacked=8 * size, rows=rows, seconds=seconds)
    start(host, port, open_browser=not no_open, limits=limits, say=lambda line: typer.echo(line, err=False))
