"""One stage of training, as Lightning sees it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor

from oltr.config import RunConfig
from oltr.data.augment import Augment
from oltr.data.feed import EvalBatches, Images, TrainBatches
from oltr.distributed import rank, sum_over_ranks, world_size
from oltr.errors import UserError
from oltr.evaluation.running import OpenF, ShotAccuracy
from oltr.methods import Method
from oltr.nn.network import Network, Output

EVALUATION_BATCH = 256
WATCHED_THRESHOLD = 0.1  # the paper's; for the open F printed after each epoch
_LOSS_CHECK_STEPS = 50


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
        self.augment = Augment(config.data)
        self.first_epoch, self.optimizer_state = first_epoch, optimizer_state
        self.on_start, self.on_step, self.on_epoch = on_start, on_step, on_epoch
        self.shot_accuracy = ShotAccuracy(method.train_counts.numpy(), config.shots)
        self.open_f = OpenF(WATCHED_THRESHOLD)
        self.allow_zero_length_dataloader_with_multiple_devices = True  # fewer val images than processes
        self.row: dict[str, Any] = {}
        self._latest: tuple[Output, Tensor] | None = None
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
        rates = {"classifier": self.stage.classifier_lr, "memory": self.stage.memory_lr}
        groups: dict[str, list[torch.nn.Parameter]] = {}
        for role, parameter in self.network.roles():
            if parameter.requires_grad:
                groups.setdefault(role, []).append(parameter)
        optimizer = torch.optim.SGD(
            [
                {"params": parameters, "base_lr": rates.get(role, self.stage.lr), "role": role}
                for role, parameters in groups.items()
            ],
            lr=self.stage.lr,
            momentum=self.stage.momentum,
            weight_decay=self.stage.weight_decay,
            fused=self.device.type == "cuda",
        )
        if self.optimizer_state is not None:
            optimizer.load_state_dict(self.optimizer_state)
        return optimizer

    def train_dataloader(self) -> TrainBatches:
        # Asked for anew before each epoch (reload_dataloaders_every_n_epochs=1).
        key = (self.config.seed, self.number, self.epoch)
        return TrainBatches(self.images["train"], self.augment, self.stage, key, self.device, self.workers)

    def val_dataloader(self) -> list[EvalBatches]:
        return [
            EvalBatches(
                self.images[split],
                self.augment,
                EVALUATION_BATCH,
                self.device,
                self.workers,
                limit=None if split == "val" else len(self.images["val"]),
            )
            for split in watched(self.images)
        ]

    def on_train_start(self) -> None:
        if self.on_start is not None:
            self.on_start(self)

    def on_train_epoch_start(self) -> None:
        # Dropout and its like draw from the global generator: give it one state per epoch and process.
        torch.manual_seed(hash((self.config.seed, self.number, self.epoch, rank())) % 2**63)
        factor = self.stage.factor(self.epoch)
        for group in self.optimizers().param_groups:  # type: ignore[union-attr]
            group["lr"] = group["base_lr"] * factor
        self._losses = torch.zeros(2, device=self.device)  # sum, steps
        self._began = time.perf_counter()

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        images, labels = batch
        output = self.network(images)
        loss = torch.stack(list(self.method.loss(self.number, self.network, output, labels).values())).sum()
        self._losses += torch.stack([loss.detach(), torch.ones_like(loss)])
        self._latest = output, labels
        return loss

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        assert self._latest is not None
        self.method.after_step(self.number, self.network, *self._latest)
        self._latest = None
        if (batch_idx + 1) % _LOSS_CHECK_STEPS == 0:
            self._check_loss()
        if self.on_step is not None:
            self.on_step(batch_idx + 1, int(self.trainer.num_training_batches))
        if batch_idx + 1 == self.trainer.num_training_batches:
            self._check_loss()
            self._seconds = time.perf_counter() - self._began

    def validation_step(self, batch: tuple[Tensor, Tensor], index: int, dataloader_idx: int = 0) -> None:
        images, labels = batch
        logits = self.network(images).logits
        if dataloader_idx == 0:
            self.shot_accuracy.update(logits, labels)
        self.open_f.update(logits, labels)

    def on_train_epoch_end(self) -> None:
        accuracies: dict[str, float | None] = dict.fromkeys(("many", "medium", "few", "overall"))
        if "val" in self.images:
            accuracies = {name: float(value) for name, value in self.shot_accuracy.compute().items()}
        steps = int(self.trainer.num_training_batches)
        images = steps * world_size() * len_of_batch(self)
        self.row = {
            "stage": self.number,
            "epoch": self.epoch + 1,
            "lr": self.stage.lr * self.stage.factor(self.epoch),
            "loss": float(self._losses[0] / self._losses[1]),
            **accuracies,
            "open_f": float(self.open_f.compute()) if len(watched(self.images)) == 2 else None,
            "seconds": round(self._seconds, 3),
            "images_per_second": round(images / self._seconds, 1),
        }
        self.shot_accuracy.reset()
        self.open_f.reset()
        for name in ("loss", "overall", "open_f"):
            if self.row[name] is not None and self.trainer.loggers:
                self.log(f"stage{self.number}/{name}", self.row[name])
        if self.on_epoch is not None:
            self.on_epoch(self, self.row)

    def _check_loss(self) -> None:
        """Stop as soon as the loss is no number, on all processes together."""
        if not bool(torch.isfinite(sum_over_ranks(self._losses)).all()):
            raise UserError(
                f"The loss turned NaN or infinite in stage {self.number}, epoch {self.epoch + 1}.",
                "The epochs before it are kept." if self.epoch or self.number > 1 else "",
                f"a smaller learning rate, e.g. --set stage{self.number}.lr={self.stage.lr / 10:g}"
                + (" and a new --out" if self.epoch or self.number > 1 else ""),
            )


def watched(images: dict[str, Images]) -> list[str]:
    """The splits looked at after each epoch: validation, and as many open images, which choose nothing."""
    if "val" not in images:
        return []
    return ["val", "open"] if "open" in images else ["val"]


def len_of_batch(task: Task) -> int:
    """Images per step on this process."""
    return task.train_dataloader().batch // world_size()
