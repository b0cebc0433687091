"""One stage of training, as Lightning sees it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor

from oltr.config import RunConfig, StageConfig
from oltr.data.augment import Augment
from oltr.data.batches import EvalBatches, TrainBatch, TrainBatches, evaluation_batch
from oltr.data.image_access import Images
from oltr.distributed import rank, sum_over_ranks, world_size
from oltr.errors import UserError
from oltr.methods import Method
from oltr.metrics.running import OpenF, ShotAccuracy
from oltr.nn.network import Network
from oltr.training.moment import Moment
from oltr.training.precision import autocast
from oltr.training.step import Step, Work

WORTH_COMPILING = 96  # pixels
WATCHED_THRESHOLD = 0.1  # the paper's; for the open F printed after each epoch
_LOSS_CHECK_STEPS = 200  # looking at the loss makes the host wait for the device


class Task(LightningModule):
    """Trains `network` through the epochs of one stage, from `first_epoch` on.

    Learning rates, batches and random draws are functions of (seed, stage, epoch, step) alone, and whoever
    trains on restores weights and optimiser at an epoch's start: that is all a bit-identical resume needs.
    """

    def __init__(
        self,
        method: Method,
        network: Network,
        config: RunConfig,
        stage: int,
        images: dict[str, Images],
        *,
        workers: int = 0,
        first_epoch: int = 0,
        optimizer_state: dict[str, Any] | None = None,
        on_start: Callable[[Task], None] | None = None,
        on_step: Callable[[int, int], None] | None = None,
        on_epoch: Callable[[Task, dict[str, Any]], None] | None = None,
    ):
        super().__init__()
        self.network, self.method, self.config, self.number = network, method, config, stage
        self.stage, self.images, self.workers = config.stage(stage), images, workers
        self.first_epoch, self.optimizer_state = first_epoch, optimizer_state
        self.on_start, self.on_step, self.on_epoch = on_start, on_step, on_epoch
        self.shot_accuracy = ShotAccuracy(method.train_counts.numpy(), config.shots)
        self.open_f = OpenF(WATCHED_THRESHOLD)
        self.allow_zero_length_dataloader_with_multiple_devices = True  # fewer val images than processes
        self.row: dict[str, Any] = {}
        self.automatic_optimization = False  # the whole step is ours: see `Step`
        # Before the processes are joined: each waits for the gradient of everything that learns.
        for role, parameter in network.roles():
            parameter.requires_grad_(role not in self.stage.frozen)
        for parameter in network.idle_parameters(config.data.image_size):
            parameter.requires_grad_(False)

    @property
    def epoch(self) -> int:
        """The stage's epoch, from 0, interruptions counted through."""
        return self.first_epoch + self.trainer.current_epoch

    def configure_optimizers(self) -> torch.optim.Optimizer:
        optimizer = make_optimizer(self.network, self.stage, fused=self.device.type == "cuda")
        if self.optimizer_state is not None:
            optimizer.load_state_dict(self.optimizer_state)
        return optimizer

    def train_dataloader(self) -> TrainBatches:
        # Asked for anew before each epoch (reload_dataloaders_every_n_epochs=1).
        key = (self.config.seed, self.number, self.epoch)
        return TrainBatches(self.images["train"], self.stage, key, self.device, self.workers)

    def val_dataloader(self) -> list[EvalBatches]:
        return [
            EvalBatches(
                self.images[split],
                self.augment,
                evaluation_batch(self.config.data.image_size, self.device),
                self.device,
                self.workers,
                limit=None if split == "val" else len(self.images["val"]),
            )
            for split in watched(self.images)
        ]

    def setup(self, stage: str) -> None:
        self.augment = Augment(self.config.data, self.device)

    def on_train_start(self) -> None:
        if compiling := compiled(self.config, self.device):
            torch.compiler.reset()  # or of many trainings in one process all but the first few run uncompiled
        self._work = Work(
            self.method,
            self.number,
            self.network,
            self.augment,
            self._optimizer,
            precision=self.config.precision,
            backward=self.manual_backward,
            compiled=compiling,
        )
        self._step = Step(self._work, graph=recorded(self.config, self.device))
        if self.on_start is not None:
            self.on_start(self)

    def on_train_epoch_start(self) -> None:
        # Dropout and its like draw from the global generator: give it one state per epoch and process.
        torch.manual_seed(hash((self.config.seed, self.number, self.epoch, rank())) % 2**63)
        factor = self.stage.lr_factor(self.epoch)
        for group in self._optimizer.param_groups:
            group["lr"] = group["base_lr"] * factor
        if self.stage.freeze_statistics:
            for role in self.stage.frozen:
                if (part := getattr(self.network, role, None)) is not None:
                    part.eval()
        self._work.loss_sum.zero_()
        self._began = Moment(self.device)

    def training_step(self, batch: TrainBatch, index: int) -> None:
        self._step(batch)

    @property
    def _optimizer(self) -> torch.optim.Optimizer:
        optimizer = self.optimizers(use_pl_optimizer=False)
        assert isinstance(optimizer, torch.optim.Optimizer)
        return optimizer

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        if (batch_idx + 1) % _LOSS_CHECK_STEPS == 0:
            self._check_loss()
        if self.on_step is not None:
            self.on_step(batch_idx + 1, int(self.trainer.num_training_batches))
        if batch_idx + 1 == self.trainer.num_training_batches:
            self._ended = Moment(self.device)  # validation is sent after the steps before they are done

    def validation_step(self, batch: tuple[Tensor, Tensor], index: int, dataloader_idx: int = 0) -> None:
        images, labels = batch
        with autocast(self.device, self.config.precision):
            logits = self.network(images).logits
        if dataloader_idx == 0:
            self.shot_accuracy.update(logits, labels)
        self.open_f.update(logits, labels)

    def on_train_epoch_end(self) -> None:
        self._check_loss()
        seconds = self._ended.seconds_since(self._began)
        accuracies: dict[str, float | None] = dict.fromkeys(("many", "medium", "few", "overall"))
        if "val" in self.images:
            accuracies = {name: float(value) for name, value in self.shot_accuracy.compute().items()}
        steps = int(self.trainer.num_training_batches)
        images = steps * world_size() * len_of_batch(self)
        self.row = {
            "stage": self.number,
            "epoch": self.epoch + 1,
            "lr": self.stage.lr * self.stage.lr_factor(self.epoch),
            "loss": float(sum_over_ranks(self._work.loss_sum)) / (steps * world_size()),
            **accuracies,
            "open_f": float(self.open_f.compute()) if len(watched(self.images)) == 2 else None,
            "seconds": round(seconds, 3),
            "images_per_second": round(images / seconds, 1),
        }
        self.shot_accuracy.reset()
        self.open_f.reset()
        if self.logger is not None:
            # Under the epoch's number in metrics.csv: Lightning's own count begins anew with every --resume.
            shown = [name for name in ("loss", "overall", "open_f") if self.row[name] is not None]
            values = {f"stage{self.number}/{name}": self.row[name] for name in shown}
            self.logger.log_metrics(values, step=self.row["epoch"])
        if self.on_epoch is not None:
            self.on_epoch(self, self.row)

    def _check_loss(self) -> None:
        """Stop as soon as the loss is no number, on all processes together."""
        if not bool(torch.isfinite(sum_over_ranks(self._work.loss_sum))):
            raise UserError(
                f"The loss turned NaN or infinite in stage {self.number}, epoch {self.epoch + 1}.",
                "The epochs before it are kept." if self.epoch or self.number > 1 else "",
                f"a smaller learning rate, e.g. --set stage{self.number}.lr={self.stage.lr / 10:g}"
                + (" and a new --out" if self.epoch or self.number > 1 else ""),
            )


def make_optimizer(network: Network, stage: StageConfig, fused: bool) -> torch.optim.SGD:
    """SGD in which each role of the network learns at its own rate."""
    rates = {"classifier": stage.classifier_lr, "memory": stage.memory_lr}
    groups: dict[str, list[torch.nn.Parameter]] = {}
    for role, parameter in network.roles():
        if parameter.requires_grad:
            groups.setdefault(role, []).append(parameter)
    return torch.optim.SGD(
        [
            {"params": parameters, "base_lr": rates.get(role, stage.lr), "role": role}
            for role, parameters in groups.items()
        ],
        lr=stage.lr,
        momentum=stage.momentum,
        weight_decay=stage.weight_decay,
        fused=fused,
    )


def compiled(config: RunConfig, device: torch.device) -> bool:
    """Whether the step is compiled: on a GPU, for images large enough that it pays within minutes."""
    if config.compile != "auto":
        return config.compile == "always"
    large = config.data.image_size >= WORTH_COMPILING
    return large and device.type == "cuda" and find_spec("triton") is not None


def recorded(config: RunConfig, device: torch.device) -> bool:
    """Whether the step is replayed as a CUDA graph: on one GPU, unless it is to run as written."""
    return config.compile != "never" and device.type == "cuda" and world_size() == 1


def watched(images: dict[str, Images]) -> list[str]:
    """The splits looked at after each epoch: validation, and as many open images, which choose nothing."""
    if "val" not in images:
        return []
    return ["val", "open"] if "open" in images else ["val"]


def len_of_batch(task: Task) -> int:
    """Images per step on this process."""
    return task.train_dataloader().batch // world_size()
