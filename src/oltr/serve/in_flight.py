"""How many bytes of images all requests together may bring at a time."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from oltr.serve.guard import answer, brings_images, length_of


class InFlight:
    """ASGI middleware: requests with images are refused while others fill the memory; alone each may come."""

    def __init__(self, app: ASGIApp, most: int, request_bytes: int):
        self.app, self.most, self.request_bytes = app, most, request_bytes
        self.bytes = 0  # of requests that are worked on; changed by the event loop alone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not brings_images(scope):
            await self.app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        length = length_of(headers, unsaid=self.request_bytes)
        if self.bytes and self.bytes + length > self.most:
            body = {"error": "Too many images are on their way.", "why": "", "try": "again in a second"}
            await answer(send, 503, body, {b"retry-after": b"1"})
            return
        self.bytes += length
        try:
            await self.app(scope, receive, send)
        finally:
            self.bytes -= length
