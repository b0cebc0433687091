"""The one thread that runs the network: images of several requests in one batch."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from oltr.runs.outputs import Outputs
from oltr.runs.predict import outputs_of
from oltr.runs.predictions.judge import images_at_a_time
from oltr.runs.read_ahead import Decoded
from oltr.runs.trained_run import TrainedRun

T = TypeVar("T")
CALLS = 4  # that wait for the network; each takes it for long


class TooBusy(Exception):
    """More images, or calls, wait than the service takes."""


@dataclass(eq=False)
class _Part:
    """Some images of one request, n×S×S×3 uint8."""

    pixels: np.ndarray
    answer: Future[Outputs] = field(default_factory=Future)


class Batcher:
    """Outputs of a run's trained network; while it works on a batch, the images of the next one gather."""

    def __init__(self, run: TrainedRun, waiting: int, at_a_time: int | None = None):
        self.run, self.most = run, waiting
        self.at_a_time = at_a_time or images_at_a_time(run)
        self.waiting = 0  # images
        self._parts: deque[_Part] = deque()
        self._calls: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._something, self._closed = threading.Condition(), False
        self._thread = threading.Thread(target=self._work, name="network", daemon=True)
        self._thread.start()

    def outputs(self, pixels: np.ndarray) -> Outputs:
        """Those of n images S×S×3."""
        pieces = [pixels[i : i + self.at_a_time] for i in range(0, len(pixels), self.at_a_time)]
        parts = [_Part(piece) for piece in pieces]
        with self._something:
            if self._closed or (self.waiting and self.waiting + len(pixels) > self.most):
                raise TooBusy
            self.waiting += len(pixels)
            self._parts.extend(parts)
            self._something.notify()
        try:
            found = [part.answer.result() for part in parts]
        finally:
            with self._something:
                self.waiting -= len(pixels)
        return Outputs.joined(found)

    def call(self, function: Callable[[], T]) -> T:
        """What a function returns that needs the network for itself."""
        answer: Future[T] = Future()
        with self._something:
            if self._closed or len(self._calls) >= CALLS:
                raise TooBusy
            self._calls.append((answer, function))
            self._something.notify()
        return answer.result()

    def close(self) -> None:
        """Stop after the present batch; who waits for a later one is refused."""
        with self._something:
            self._closed = True
            self._something.notify()
        self._thread.join()
        for answer in (*(part.answer for part in self._parts), *(answer for answer, _ in self._calls)):
            if not answer.done():
                answer.set_exception(TooBusy())

    def _work(self) -> None:
        while True:
            with self._something:
                self._something.wait_for(lambda: self._closed or self._parts or self._calls)
                if self._closed:
                    return
                batch = self._gathered()
                call = self._calls.popleft() if self._calls else None
            if call is not None:
                _settle(*call)
            if batch:
                self._answer(batch)

    def _gathered(self) -> list[_Part]:
        """As many parts as fit together, in the order they came."""
        batch, images = [], 0
        while self._parts and images + len(self._parts[0].pixels) <= self.at_a_time:
            images += len(self._parts[0].pixels)
            batch.append(self._parts.popleft())
        return batch

    def _answer(self, batch: list[_Part]) -> None:
        pixels = np.concatenate([part.pixels for part in batch])
        some = Decoded([""] * len(pixels), [""] * len(pixels), pixels)
        whole: Future[Outputs] = Future()
        _settle(whole, lambda: next(outputs_of(self.run, [some]))[1][0])
        ends = np.cumsum([len(part.pixels) for part in batch])
        for part, end in zip(batch, ends, strict=True):
            rows = np.arange(end - len(part.pixels), end)
            _settle(part.answer, partial(_some, whole, rows))


def _some(whole: Future[Outputs], rows: np.ndarray) -> Outputs:
    return whole.result().subset(rows)


def _settle(answer: Future[Any], function: Callable[[], Any]) -> None:
    try:
        answer.set_result(function())
    except BaseException as problem:
        answer.set_exception(problem)
