"""More work than the network can do, and a service that is stopped meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pytest

from oltr.serve import batcher
from oltr.serve.batcher import TooBusy
from oltr.serve.limits import Limits
from tests.helpers.colours import UNKNOWN
from tests.helpers.serving import files, png, serving, until


@pytest.fixture
def held(folder):
    """A client of a service whose network has something to do until the event is set."""
    with serving(folder, Limits(waiting=3)) as client, ThreadPoolExecutor(4) as threads:
        free, begun = threading.Event(), threading.Event()
        work = threads.submit(client.service.state.batcher.call, lambda: (begun.set(), free.wait(30)))
        assert begun.wait(30)
        yield client, free, threads
        free.set()
        work.result()


def asked(client, number: int):
    return client.post("/predict", files=files(png(UNKNOWN["cyan"], seed) for seed in range(number)))


def test_more_than_may_wait_is_refused_for_the_moment(held):
    client, free, threads = held
    first = threads.submit(asked, client, 2)
    until(lambda: client.service.state.batcher.waiting == 2)
    refused = asked(client, 2)
    assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
    assert "Too many images wait" in refused.json()["error"]
    second = threads.submit(asked, client, 1)
    until(lambda: client.service.state.batcher.waiting == 3)
    free.set()
    assert [first.result().status_code, second.result().status_code] == [200, 200]
    assert asked(client, 5).status_code == 200  # alone, a request may have more


def test_more_bytes_than_may_come_at_a_time_are_refused_for_the_moment(folder):
    images = [png(UNKNOWN["cyan"], seed) for seed in range(2)]
    limits = Limits(in_flight_bytes=2 * len(images[0]))
    with serving(folder, limits) as client, ThreadPoolExecutor(1) as threads:
        free, begun, keep = threading.Event(), threading.Event(), client.service.intake.keep

        def held_up(sent):
            begun.set()
            assert free.wait(30)
            return keep(sent)

        client.service.intake.keep = held_up
        first = threads.submit(client.post, "/images", files=files(images))  # alone it may bring more
        assert begun.wait(30)
        for call in ("/images", "/predict"):
            refused = client.post(call, files=files(images))
            assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
            assert "on their way" in refused.json()["error"]
            unsaid = client.post(call, content=iter([b"x"]), headers={"content-type": "multipart/form-data"})
            assert unsaid.status_code == 503
        assert client.get("/state").status_code == 200
        free.set()
        assert first.result().status_code == 200
        assert client.post("/predict", files=files(images)).status_code == 200
        counted = 'oltr_requests_total{method="POST",route="other",status="503"} 4.0'
        assert counted in client.get("/metrics").text


def test_few_explanations_wait(held):
    client, free, _ = held
    waiting, state = client.service.state.batcher, client.service.state
    with ThreadPoolExecutor(batcher.CALLS) as people:
        told = [people.submit(waiting.call, lambda: "told") for _ in range(batcher.CALLS)]
        until(lambda: len(waiting._calls) == batcher.CALLS)
        state.catch_up = lambda: None  # it would miss the row of an image that cannot be sent now
        state.snapshot = replace(state.snapshot, images={"0" * 32: SimpleNamespace(kept="", name="")})
        refused = client.get(f"/images/{'0' * 32}/explanation")
        assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
        free.set()
        assert [each.result(30) for each in told] == ["told"] * batcher.CALLS


def test_who_waits_when_the_service_stops_is_told(held):
    client, free, threads = held
    waiting = threads.submit(asked, client, 2)
    until(lambda: client.service.state.batcher.waiting == 2)
    closing = threads.submit(client.service.state.batcher.close)
    until(lambda: client.service.state.batcher._closed)
    free.set()
    closing.result(30)
    assert waiting.result(30).status_code == 503
    assert asked(client, 1).status_code == 503
    with pytest.raises(TooBusy):
        client.service.state.batcher.call(print)


def test_images_of_several_requests_share_a_batch(held, monkeypatch):
    client, free, threads = held
    sizes, outputs_of = [], batcher.outputs_of
    monkeypatch.setattr(
        batcher, "outputs_of", lambda run, some: (sizes.append(len(some[0].names)), outputs_of(run, some))[1]
    )
    several = [threads.submit(asked, client, 1) for _ in range(3)]
    until(lambda: client.service.state.batcher.waiting == 3)
    free.set()
    rows = [each.result().json()["predictions"][0] for each in several]
    assert sizes == [3] and len({row["probability"] for row in rows}) == 1
