"""One step of training, on one GPU replayed as a CUDA graph."""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import Tensor, nn

from oltr.config import RunConfig, StageConfig
from oltr.data.augment import Augment
from oltr.data.batches import Batch
from oltr.distributed import world_size
from oltr.losses.mixed_labels import MixedLabels
from oltr.methods import Method
from oltr.nn.network import Network, Output
from oltr.training.ema import WeightAverage
from oltr.training.precision import autocast
from oltr.training.teacher import Teacher
from oltr.training.views import Views

WARM_UP = 3  # steps before the graph is recorded, in which kernels are chosen and buffers made
WORTH_COMPILING = 96  # pixels


class BatchLoss(nn.Module):
    """A batch's tensors → its loss, and Output and labels for `Method.after_step`: all that has a gradient.

    Loss and network are one module, as DDP must see every parameter that learns, those of the loss too.
    """

    def __init__(
        self,
        method: Method,
        stage: int,
        network: Network,
        augment: Augment,
        *,
        precision: str,
        compiled: bool = False,
        config: StageConfig | None = None,
        teacher: Teacher | None = None,
    ):
        super().__init__()
        self.method, self.stage, self.network = method, stage, network
        self.augment, self.precision = augment, precision
        self.views, self.teacher = Views(augment, config or StageConfig()), teacher
        # Batches of one training all have one shape: code that fits others too is slower by a third.
        self.loss_of = torch.compile(self._loss_of, dynamic=False) if compiled else self._loss_of

    def forward(
        self, pixels: Tensor, draws: Tensor, labels: Tensor, mixing: Tensor | None = None
    ) -> tuple[Tensor, Output, Tensor]:
        return self.loss_of(pixels, draws, labels, mixing)

    def _loss_of(
        self, pixels: Tensor, draws: Tensor, labels: Tensor, mixing: Tensor | None
    ) -> tuple[Tensor, Output, Tensor]:
        views, targets = self.views(pixels, draws, labels, mixing)
        views = views.contiguous(memory_format=torch.channels_last)
        with autocast(views.device, self.precision):
            output = self.network(views)
        about = self.stage, self.network
        losses: list[Tensor] = []
        size, number = len(labels if mixing is None else mixing), self.views.number
        if weight := self.views.stage.mosaics:
            losses.append(weight * self.method.open_loss(*about, output.rows(slice(number * size, None))))
            output = output.rows(slice(number * size))
        if isinstance(targets, MixedLabels):
            terms, hard = self.method.mixed_loss(*about, output, targets), targets.larger
        else:
            terms, hard = self.method.loss(*about, output, targets), targets
        own = list(terms.values())
        if self.teacher is not None:
            with autocast(views.device, self.precision):
                taught = self.teacher(views[: number * size])
            own = self.teacher.share(own, output.logits, taught)
        losses += own
        if number > 1:
            parts = [output.rows(slice(at, at + size)) for at in range(0, number * size, size)]
            mixed = isinstance(targets, MixedLabels)
            compared = parts[1:] if mixed and number > 2 else parts
            losses += self.method.across_views(*about, compared, labels[:size]).values()
            if mixed:
                output, hard = output.rows(slice(size, None)), hard[size:]
        return torch.stack(losses).sum(), output, hard


class Step:
    """Forward, backward, update and average of one batch after another; nothing in it waits for the device.

    `forward` is `batch_loss`, or DDP around it. A small network's step is hundreds of short kernels, and
    launching them takes longer than running them: with `graph` they are recorded once and launched together.
    """

    def __init__(
        self,
        batch_loss: BatchLoss,
        optimizer: torch.optim.Optimizer,
        *,
        forward: nn.Module | None = None,
        average: WeightAverage | None = None,
        graph: bool = False,
    ):
        self.batch_loss, self.optimizer = batch_loss, optimizer
        self.forward, self.average, self.graph = forward or batch_loss, average, graph
        self.loss_sum = torch.zeros((), device=next(batch_loss.network.parameters()).device)
        self.warm_up = WARM_UP
        self.inputs: Batch | None = None
        self.recorded: torch.cuda.CUDAGraph | None = None

    def __call__(self, batch: Batch) -> None:
        if not self.graph:
            self._run(batch)
        elif self.warm_up:
            self.warm_up -= 1
            self._run_on_side_stream(batch)
        else:
            self._replay(batch)

    def _run(self, batch: Batch) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss, output, labels = self.forward(*batch)
        loss.backward()
        self.optimizer.step()
        part = self.batch_loss
        part.method.after_step(part.stage, part.network, output, labels)
        if self.average is not None:
            self.average.update()
        self.loss_sum += loss.detach()

    def _run_on_side_stream(self, batch: Batch) -> None:
        """As recording demands of the steps before it."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._run(batch)
        torch.cuda.current_stream().wait_stream(stream)

    def _replay(self, batch: Batch) -> None:
        if self.inputs is None or self.recorded is None:
            self.inputs = type(batch)(*map(torch.empty_like, batch))
            self.recorded = self._record(self.inputs)
        for held, given in zip(self.inputs, batch, strict=True):
            held.copy_(given)
        self.recorded.replay()

    def _record(self, inputs: Batch) -> torch.cuda.CUDAGraph:
        self.optimizer.zero_grad(set_to_none=True)  # the graph keeps gradients in memory of its own
        graph = torch.cuda.CUDAGraph()
        # Threads that read images or write a checkpoint go on meanwhile: what they ask of the GPU must not
        # break the recording, as it does by default.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._run(inputs)
        return graph


def compiled(config: RunConfig, device: torch.device) -> bool:
    """Whether the step is compiled: on a GPU, for images large enough that it pays within minutes."""
    if config.compile != "auto":
        return config.compile == "always"
    large = config.data.image_size >= WORTH_COMPILING
    return large and device.type == "cuda" and find_spec("triton") is not None


def recorded(config: RunConfig, device: torch.device) -> bool:
    """Whether the step is replayed as a CUDA graph: on one GPU, unless it is to run as written."""
    return config.compile != "never" and device.type == "cuda" and world_size() == 1
