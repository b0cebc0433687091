"""Pictures as part of a page's own text, so that it needs no other file."""

from __future__ import annotations

import base64

_TYPES = {"svg": "image/svg+xml", "png": "image/png", "webp": "image/webp"}


def data_uri(content: bytes, kind: str) -> str:
    """The bytes of a picture as an address that holds them.

    >>> data_uri(b"<svg/>", "svg")
    'data:image/svg+xml;base64,PHN2Zy8+'
    """
    return f"data:{_TYPES[kind]};base64,{base64.b64encode(content).decode()}"
