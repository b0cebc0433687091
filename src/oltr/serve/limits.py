"""What a service takes, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE, GIGABYTE = 10**6, 10**9


@dataclass(frozen=True)
class Limits:
    """Beyond these a request, or an image of it, is refused."""

    image_bytes: int = 50 * MEGABYTE
    image_pixels: int = 100_000_000
    request_bytes: int = 500 * MEGABYTE  # of one that brings images
    json_bytes: int = 10 * MEGABYTE  # of one that does not
    in_flight_bytes: int = GIGABYTE  # of all requests with images that are worked on
    images: int = 64  # in a request
    kept_bytes: int = 10 * GIGABYTE  # of all images that wait below the run folder
    waiting: int = 512  # images between decoding and answer, of all requests together
