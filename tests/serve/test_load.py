"""Many clients at once, for long."""

from __future__ import annotations

import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.helpers.colours import UNKNOWN
from tests.helpers.serving import files, png


def ask(address: str, client: int, end: float) -> list[float]:
    """Seconds of each request that one client made until `end`; every answer is right."""
    seconds, image = [], files([png(UNKNOWN["cyan"], client)])
    with httpx.Client(base_url=address, timeout=60) as connection:
        first = None
        while time.monotonic() < end:
            began = time.perf_counter()
            answer = connection.post("/predict", files=image)
            seconds.append(time.perf_counter() - began)
            assert answer.status_code == 200, answer.text
            (row,) = answer.json()["predictions"]
            first = first or row
            assert (row["label"], row["unknown"], row["error"]) == (first["label"], first["unknown"], "")
            assert abs(row["probability"] - first["probability"]) <= 1e-6
    return seconds


def loaded(address: str, clients: int, seconds: float) -> dict[str, float]:
    end = time.monotonic() + seconds
    with ThreadPoolExecutor(clients) as pool:
        shares = pool.map(lambda client: ask(address, client, end), range(clients))
        found = sorted(each for share in shares for each in share)
    cuts = statistics.quantiles(found, n=100)
    return {
        "clients": clients,
        "seconds": seconds,
        "requests": len(found),
        "p50_ms": round(1000 * cuts[49], 1),
        "p99_ms": round(1000 * cuts[98], 1),
        "slowest_ms": round(1000 * found[-1], 1),
    }


def test_eight_clients_for_a_second(serve, folder):
    with serve(folder) as server:
        assert loaded(server.address, 8, 1)["requests"] > 16


@pytest.mark.soak
def test_32_clients_for_a_minute(serve, folder, capsys):
    with serve(folder) as server:
        found = loaded(server.address, 32, 60)
        text = httpx.get(f"{server.address}metrics").text
    with capsys.disabled():
        print(json.dumps(found))
    assert f'oltr_requests_total{{method="POST",route="/predict",status="200"}} {found["requests"]}.0' in text
    assert 'status="5' not in text and found["p99_ms"] < 10_000
