"""Who may ask, from where, and how much: checked before a request reaches the service."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
from pathlib import Path
from urllib.parse import urlsplit

from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FREE = ("/login", "/health", "/static/", "/favicon.ico")  # without a token
IMAGES = ("/predict", "/images")  # to which images are sent
LOGIN_BYTES = 10_000
HEADERS = {
    b"content-security-policy": b"default-src 'self'; img-src 'self' blob: data:; object-src 'none'; "
    b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
}


class Guard:
    """ASGI middleware: a token where there is one, the page's own origin, and no more bytes than allowed.

    Without a token the service is for this machine alone: only requests to a local name are answered, so that
    no web page can reach it by giving its own name our address.
    """

    def __init__(self, app: ASGIApp, token: str | None, cookie: str, request_bytes: int, json_bytes: int):
        self.app, self.token, self.cookie = app, token, cookie
        self.request_bytes, self.json_bytes = request_bytes, json_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refused(scope, headers)
        if refused is not None:
            await answer(send, *refused)
            return
        most = self._most(scope)
        if length_of(headers) > most:
            await answer(send, 413, _too_large(most))
            return
        await self._limited(scope, receive, send, most)

    def _most(self, scope: Scope) -> int:
        """Bytes of a request; few where no token is asked for."""
        if scope["path"] == "/login":
            return LOGIN_BYTES
        return self.request_bytes if brings_images(scope) else self.json_bytes

    def _refused(self, scope: Scope, headers: dict[bytes, str]) -> tuple[int, dict[str, str]] | None:
        host = headers.get(b"host", "")
        if self.token is None and not is_loopback(_host_of(f"//{host}", port=False)):
            why = "Without a token the service answers this machine alone."
            return 401, {
                "error": f"{host!r} is no name of this machine.",
                "why": why,
                "try": "serve with a token",
            }
        origin = headers.get(b"origin")
        if origin is not None and scope["method"] not in ("GET", "HEAD") and _host_of(origin) != host:
            return 401, {"error": "The request comes from another site's page.", "why": "", "try": ""}
        if self.token is None or any(_below(scope["path"], free) for free in FREE):
            return None
        if _same(_token_of(headers, self.cookie), self.token):
            return None
        if scope["path"] == "/" and scope["method"] == "GET":
            return None  # the page that asks for the token
        hint = "the header `Authorization: Bearer TOKEN`"
        return 401, {"error": "The token is missing or wrong.", "why": "", "try": hint}

    async def _limited(self, scope: Scope, receive: Receive, send: Send, most: int) -> None:
        read, begun, refused = 0, False, False

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > most:
                raise _TooLong
            return message

        async def with_headers(message: Message) -> None:
            nonlocal begun, refused
            if read > most and not begun:  # whatever the parser made of it
                begun = refused = True
                await answer(send, 413, _too_large(most))
            if refused:
                return
            if message["type"] == "http.response.start":
                begun = True
                there = {name for name, _ in message["headers"]}
                more = [(name, value) for name, value in HEADERS.items() if name not in there]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        try:
            await self.app(scope, counted, with_headers)
        except _TooLong:
            if not begun:
                await answer(send, 413, _too_large(most))


class _TooLong(Exception):
    """A body that goes on beyond what its sender said, or never said."""


def cookie_name(run: Path) -> str:
    """A cookie of its own for each run: browsers do not tell the ports of a machine apart."""
    return f"oltr_{hashlib.sha256(str(run.absolute()).encode(errors='replace')).hexdigest()[:12]}"


def brings_images(scope: Scope) -> bool:
    """Whether images come with a request."""
    return scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in IMAGES


def knows(token: str | None, cookie: str, scope: Scope) -> bool:
    """Whether a request has the token, or needs none."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    return token is None or _same(_token_of(headers, cookie), token)


def _token_of(headers: dict[bytes, str], cookie: str) -> str:
    scheme, _, given = headers.get(b"authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return given.strip()
    return cookie_parser(headers.get(b"cookie", "")).get(cookie, "")


def _same(one: str, other: str) -> bool:
    """Without telling by the time it takes how much was right."""
    return hmac.compare_digest(one.encode(), other.encode())


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_of(address: str, port: bool = True) -> str:
    """With its port or without; empty where the address is none."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return parts.netloc if port else parts.hostname or ""


def _below(path: str, free: str) -> bool:
    return path.startswith(free) if free.endswith("/") else path == free


def length_of(headers: dict[bytes, str], unsaid: int = 0) -> int:
    """Bytes of a request, by what its sender says."""
    length = headers.get(b"content-length", "")
    return int(length) if length.isdecimal() else unsaid


def _too_large(most: int) -> dict[str, str]:
    return {
        "error": f"The request is larger than {most:,} bytes.",
        "why": "",
        "try": "fewer or smaller images",
    }


async def answer(
    send: Send, status: int, body: dict[str, str], more: dict[bytes, bytes] | None = None
) -> None:
    """Refuse a request whose body is not read."""
    always = {b"content-type": b"application/json", b"connection": b"close"}
    headers = list((always | HEADERS | (more or {})).items())
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
