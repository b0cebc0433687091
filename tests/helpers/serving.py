"""Services of small runs in this process, and what tests ask of a service."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from fastapi.testclient import TestClient
from PIL import Image

from oltr.serve.app import create_app
from oltr.serve.limits import Limits
from oltr.serve.service import Service
from tests.helpers.colours import noisy

LOCAL = "http://localhost"


@contextmanager
def serving(
    folder: Path, limits: Limits | None = None, token: str | None = None, **options: Any
) -> Iterator[TestClient]:
    """A client of a service in this process; `client.service` is the service."""
    service = Service.of(folder, limits)
    with TestClient(create_app(service, token), base_url=LOCAL, **options) as client:
        client.service = service  # type: ignore[attr-defined]
        yield client


def files(images: Iterable[Path | bytes | tuple[str, bytes]]) -> list[tuple[str, tuple[str, bytes]]]:
    """Images as the field of a request."""
    found = []
    for number, image in enumerate(images):
        if isinstance(image, Path):
            found.append(("files", (image.name, image.read_bytes())))
        else:
            found.append(("files", image if isinstance(image, tuple) else (f"{number}.png", image)))
    return found


def upload(client: httpx.Client, images: Iterable[Path | bytes | tuple[str, bytes]]) -> list[str]:
    """Keep images; their ids."""
    answer = client.post("/images", files=files(images))
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["images"]]


def png(colour: tuple[int, int, int], seed: int) -> bytes:
    """A picture of about this colour; others have other seeds."""
    with io.BytesIO() as file:
        Image.fromarray(noisy(colour, np.random.default_rng(seed))).save(file, "PNG")
        return file.getvalue()


def until(condition: Callable[[], Any], seconds: float = 30) -> Any:
    """What a condition gives once it is true; asked again and again, and failed after so many seconds."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.01)
    return found


def grouped(client: httpx.Client) -> dict[str, Any]:
    """The clusters, made anew of all that is unknown now."""
    client.post("/clusters").raise_for_status()
    until(lambda: not client.get("/state").json()["clusters"]["busy"])
    return client.get("/clusters").json()
