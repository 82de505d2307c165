"""Start the page: bind the port, open the browser, print the address."""

from __future__ import annotations

import errno
import ipaddress
import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from typing import TYPE_CHECKING

from unbandit.errors import MissingExtra, ParameterError, option
from unbandit.web.jobs import Limits

if TYPE_CHECKING:
    import uvicorn


def serve(
    host: str = "127.0.0.1", port: int = 8350, *, open_browser: bool = True, limits: Limits | None = None,
    say: Callable[[str], None] = print,
) -> None:  # fmt: skip
    """Serve the page until it is stopped with Ctrl-C.

    Unless `host` is this computer's own address, every visitor needs a token. A `port` of 0 is any that is free. `say`
    is called with each line that the user should read.
    """
    try:
        from unbandit.web.app import create_app
        from unbandit.web.connections import PageServer
        from unbandit.web.safety import OWN_HOSTS, AccessPolicy
    except ImportError as error:
        if (error.name or "").split(".")[0] in ("uvicorn", "h11", "starlette", "python_multipart", "multipart"):
            raise MissingExtra("the web page", "web") from error
        raise
    listening = _listen(host, port)
    number = listening.getsockname()[1]
    token = None if _loopback(host) else secrets.token_urlsafe(16)
    key = f"?token={token}" if token else ""
    address = f"http://{_url_host(host)}:{number}/{key}"
    if token is not None:
        say(
            f"warning: {host} lets other computers in. Each needs the key in the address below; whoever has it can use "
            "this computer's time, and what is sent is not encrypted. Leave --host out to keep the page to yourself."
        )
        say(f"From other computers: http://{socket.gethostname()}:{number}/{key}")
    policy = AccessPolicy(OWN_HOSTS | {_url_host(host)}) if token is None else AccessPolicy(hosts=None, token=token)
    server = PageServer(create_app(limits, policy), limits)
    threading.Thread(target=_announce, args=(server, address, open_browser, say), daemon=True).start()
    with listening:
        server.run(sockets=[listening])


def _announce(server: uvicorn.Server, address: str, open_browser: bool, say: Callable[[str], None]) -> None:
    """Print the address as soon as the page can be opened."""
    while not server.started:
        if server.should_exit:
            return
        time.sleep(0.02)
    say(f"unbandit is at {address}")
    say("It runs on this computer. Stop it with Ctrl-C.")
    if open_browser:
        webbrowser.open(address)


def _loopback(host: str) -> bool:
    """Whether an address can be reached from this computer only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _url_host(host: str) -> str:
    """Write a host as in a URL; one that means all addresses of this computer is reached from here by its own."""
    if host in ("0.0.0.0", "::"):
        return "127.0.0.1" if host == "0.0.0.0" else "[::1]"
    return f"[{host}]" if ":" in host else host


def _listen(host: str, port: int) -> socket.socket:
    """Bind the port, or refuse with a reason."""
    if not 0 <= port <= 65_535:
        raise ParameterError(f"expected a number from 0 to 65535; got {port}.", parameter="port")
    family, both = (socket.AF_INET6, socket.has_dualstack_ipv6()) if ":" in host else (socket.AF_INET, False)
    try:
        return socket.create_server((host, port), family=family, dualstack_ipv6=both)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            reason = f'"{host}" could not be used ({str(error.strerror or error).partition(" (while")[0]})'
            refusal = f"expected an address of this computer, as 127.0.0.1; {reason}."
            raise ParameterError(refusal, parameter="host") from None
        other = port + 1 if port < 65_535 else port - 1
        raise ParameterError(
            f"{port} is taken by another program, perhaps by a page of unbandit that still runs. Stop that "
            f"one, or choose another with {option('port', other)}, or {option('port', 0)} for any that is free.",
            parameter="port",
        ) from None
