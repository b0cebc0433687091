"""What a service counts, in Prometheus' form."""

from __future__ import annotations

import time
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oltr.serve.state import State

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Of one service."""

    def __init__(self, state: State):
        self.state, self.registry = state, CollectorRegistry()
        self.requests = Counter(
            "oltr_requests", "Requests answered", ["route", "method", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "oltr_request_seconds",
            "From request to answer",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.answered = Counter("oltr_answers", "Images answered", ["answer"], registry=self.registry)
        kept = Gauge("oltr_images", "Images that are kept", ["status"], registry=self.registry)
        for status in ("unknown", "known", "named", "rejected"):
            kept.labels(status).set_function(partial(_kept, state, status))
        for name, about, value in (
            ("oltr_images_bytes", "Bytes of all kept images", lambda: state.snapshot.bytes),
            ("oltr_classes", "Classes that are known", lambda: len(state.snapshot.run.class_names)),
            ("oltr_waiting_images", "Images that wait for the network", lambda: state.batcher.waiting),
        ):
            Gauge(name, about, registry=self.registry).set_function(value)

    def count(self, rows: list[dict]) -> None:
        """Answers that were given."""
        for row in rows:
            answer = "failed" if row["error"] else "unknown" if row["unknown"] else "known"
            self.answered.labels(answer).inc()

    def text(self) -> bytes:
        """For GET /metrics."""
        return generate_latest(self.registry)


def _kept(state: State, status: str) -> int:
    return state.snapshot.counts[status]


class Measured:
    """ASGI middleware: counts requests by the route that answered them."""

    def __init__(self, app: ASGIApp, metrics: Metrics):
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            # By the route's pattern: a series for each image, or word for a method, would be endless.
            route = getattr(scope.get("route"), "path", "") or "other"
            method = scope["method"] if scope["method"] in METHODS else "other"
            self.metrics.requests.labels(route, method, str(status)).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - began)
