"""Whether a server can listen where it is asked to."""

from __future__ import annotations

import errno
import os
import socket

FORBIDDEN = 1024
"""Ports below this one are for administrators, on most systems."""


def check_free(host: str, port: int) -> None:
    """Raises `ValueError` if the port is taken or forbidden: models are loaded after that, which takes a while.

    Args:
        host: the name or address of this machine.
        port: the port; 0 stands for any that is free.
    """
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise ValueError(f"--host {host:.60} is not a name or address of this machine.") from None
    for family, kind, protocol, _, address in places:
        try:
            with socket.socket(family, kind, protocol) as trial:
                if os.name == "posix":  # as the server does: a port that was closed a moment ago is free
                    trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:  # as asyncio does
                    trial.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                trial.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                other = port + 1 if port < 65535 else port - 1
                raise ValueError(f"Port {port} of {host} is in use: choose another one, as --port {other}.") from None
            if error.errno == errno.EACCES:
                raise ValueError(
                    f"--port {port} needs administrator rights: choose one from {FORBIDDEN} to 65535."
                ) from None
