"""Many clients at once, for long."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.helpers.colours import UNKNOWN
from tests.helpers.serving import files, png


def ask(address: str, client: int, more: Callable[[int], bool]) -> list[float]:
    """Seconds of each request that one client makes while there are `more` to make; every answer is right."""
    seconds: list[float] = []
    image = files([png(UNKNOWN["cyan"], client)])
    with httpx.Client(base_url=address, timeout=60) as connection:
        first = None
        while more(len(seconds)):
            began = time.perf_counter()
            answer = connection.post("/predict", files=image)
            seconds.append(time.perf_counter() - began)
            assert answer.status_code == 200, answer.text
            (row,) = answer.json()["predictions"]
            first = first or row
            assert (row["label"], row["unknown"], row["error"]) == (first["label"], first["unknown"], "")
            assert abs(row["probability"] - first["probability"]) <= 1e-6
    return seconds


def loaded(address: str, clients: int, more: Callable[[int], bool]) -> dict[str, float]:
    began = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        shares = pool.map(lambda client: ask(address, client, more), range(clients))
        found = sorted(each for share in shares for each in share)
    cuts = statistics.quantiles(found, n=100)
    return {
        "clients": clients,
        "seconds": round(time.monotonic() - began, 1),
        "requests": len(found),
        "p50_ms": round(1000 * cuts[49], 1),
        "p99_ms": round(1000 * cuts[98], 1),
        "slowest_ms": round(1000 * found[-1], 1),
    }


def test_eight_clients_at_once(serve, folder):
    with serve(folder) as server:
        assert loaded(server.address, 8, lambda done: done < 8)["requests"] == 64


@pytest.mark.soak
def test_32_clients_for_a_minute(serve, folder, capsys):
    with serve(folder) as server:
        end = time.monotonic() + 60
        found = loaded(server.address, 32, lambda done: time.monotonic() < end)
        text = httpx.get(f"{server.address}metrics").text
    with capsys.disabled():
        print(json.dumps(found))
    assert f'oltr_requests_total{{method="POST",route="/predict",status="200"}} {found["requests"]}.0' in text
    assert 'status="5' not in text and found["p99_ms"] < 10_000
