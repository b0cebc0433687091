"""One step of training, on one GPU replayed as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from oltr.data.augment import Augment
from oltr.data.batches import TrainBatch
from oltr.methods import Method
from oltr.nn.network import Network, Output
from oltr.training.precision import autocast

WARM_UP = 3  # steps before the graph is recorded, in which kernels are chosen and buffers made


class Work:
    """All of a step, from stored pixels to new weights, without anything that the host has to wait for."""

    def __init__(
        self,
        method: Method,
        stage: int,
        network: Network,
        augment: Augment,
        optimizer: torch.optim.Optimizer,
        *,
        precision: str,
        backward: Callable[[Tensor], None] = Tensor.backward,
        compiled: bool = False,
    ):
        self.method, self.stage, self.network, self.augment = method, stage, network, augment
        self.optimizer, self.precision, self.backward = optimizer, precision, backward
        self.loss_sum = torch.zeros((), device=next(network.parameters()).device)
        # Batches of one training all have one shape: code that fits others too is slower by a third.
        self.loss_of = torch.compile(self._loss_of, dynamic=False) if compiled else self._loss_of

    def __call__(self, batch: TrainBatch) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss, output = self.loss_of(batch.pixels, batch.draws, batch.labels)
        self.backward(loss)
        self.optimizer.step()
        self.method.after_step(self.stage, self.network, output, batch.labels)
        self.loss_sum += loss.detach()

    def _loss_of(self, pixels: Tensor, draws: Tensor, labels: Tensor) -> tuple[Tensor, Output]:
        views = self.augment.train(pixels, draws).contiguous(memory_format=torch.channels_last)
        with autocast(views.device, self.precision):
            output = self.network(views)
        terms = self.method.loss(self.stage, self.network, output, labels)
        return torch.stack(list(terms.values())).sum(), output


class Step:
    """Work on one batch after another, on one GPU as a graph.

    A small network's step is hundreds of short kernels, and launching them takes longer than running them.
    As a graph they are recorded once and then launched together. Numbers that are not tensors, such as the
    learning rates, are part of the recording: it is made anew when they change.
    """

    def __init__(self, work: Work, graph: bool):
        self.work, self.graph = work, graph
        self.warm_up = WARM_UP
        self.recorded: torch.cuda.CUDAGraph | None = None
        self.rates: list[float] = []
        self.inputs: TrainBatch | None = None

    def __call__(self, batch: TrainBatch) -> None:
        if not self.graph:
            self.work(batch)
        elif self.warm_up:
            self.warm_up -= 1
            self._on_a_side_stream(batch)
        else:
            self._replay(batch)

    def _on_a_side_stream(self, batch: TrainBatch) -> None:
        """As recording demands of the steps before it."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.work(batch)
        torch.cuda.current_stream().wait_stream(stream)

    def _replay(self, batch: TrainBatch) -> None:
        if self.inputs is None:
            self.inputs = TrainBatch(*map(torch.empty_like, batch))
        rates = [group["lr"] for group in self.work.optimizer.param_groups]
        if self.recorded is None or rates != self.rates:
            self.recorded, self.rates = None, rates  # the old graph's memory is free for the new one
            self.recorded = self._record(self.inputs)
        for held, given in zip(self.inputs, batch, strict=True):
            held.copy_(given)
        self.recorded.replay()

    def _record(self, inputs: TrainBatch) -> torch.cuda.CUDAGraph:
        self.work.optimizer.zero_grad(set_to_none=True)  # the graph keeps gradients in memory of its own
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.work(inputs)
        return graph
