"""A service on a port of this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from oltr.errors import UserError
from oltr.serve.app import create_app
from oltr.serve.guard import is_loopback
from oltr.serve.service import Service

TOKEN_LENGTH = 16
MAKE_TOKEN = "python -c 'import secrets; print(secrets.token_urlsafe())'"


def check_address(host: str, token: str | None) -> None:
    """Refuse to be reached by others without a token."""
    if token is not None and (len(token) < TOKEN_LENGTH or not token.isascii() or not token.isprintable()):
        raise UserError(f"The token must have at least {TOKEN_LENGTH} plain characters.", try_this=MAKE_TOKEN)
    if token is None and not is_loopback(host):
        raise UserError(
            f"--host {host} lets other machines in, and there is no token.",
            "Whoever reaches the service can see, name and delete images.",
            f"--token TOKEN, with one made by {MAKE_TOKEN}",
        )


def listening(host: str, port: int) -> socket.socket:
    """The port, taken before the network is loaded; 0: any that is free."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise UserError(f"Cannot listen on {host}, port {port}: {reason}.", try_this="--port 0") from None
    return found


def run_server(
    service: Service, port: socket.socket, token: str | None, ready: Callable[[], None] = lambda: None
) -> None:
    """Answer requests until it is stopped; those that have begun are finished."""

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready()

    config = uvicorn.Config(
        create_app(service, token),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    Server(config).run([port])
