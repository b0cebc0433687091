"""One stage of training: epochs of steps, each epoch followed by validation and a checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from timm.layers import convert_sync_batchnorm

from oltr.config import RunConfig
from oltr.console import console
from oltr.data.augment import Augment
from oltr.data.batches import TrainBatches
from oltr.data.image_access import Images
from oltr.distributed import copy_from_first, rank, sum_over_ranks, wait_for_all, world_size
from oltr.errors import UserError
from oltr.methods import Method
from oltr.nn.network import Network
from oltr.training.checkpoint import CheckpointWriter, Snapshot, write_state
from oltr.training.ema import WeightAverage
from oltr.training.frozen import freeze, set_training_mode
from oltr.training.inference import class_means
from oltr.training.limits import views_in_words
from oltr.training.metrics_file import write_metrics
from oltr.training.optimizer import load_momentum, make_optimizer
from oltr.training.processes import SingleProcess
from oltr.training.run_folder import RunFolder
from oltr.training.schedule import LearningRates
from oltr.training.step import BatchLoss, Step, compiled, recorded
from oltr.training.teacher import Teacher
from oltr.training.tensorboard import EpochLog
from oltr.training.validation import validate
from oltr.wording import count

if TYPE_CHECKING:
    from oltr.training.fabric import Fabric

_TIMED_STEPS = range(2, 7)  # of a CPU's first epoch: after the first ones, whose speed is another
_LOSS_CHECK_STEPS = 200  # looking at the loss makes the host wait for the device


@dataclass
class Run:
    """What the stages of a run have in common."""

    config: RunConfig
    method: Method
    folder: RunFolder  # process 0 alone reads and writes it
    images: dict[str, Images]
    processes: SingleProcess | Fabric
    workers: int = 0
    tensorboard: bool = False
    teacher: Teacher | None = None
    history: list[dict[str, Any]] = field(default_factory=list)  # a row of metrics.csv for each epoch

    @property
    def device(self) -> torch.device:
        return self.processes.device


def train_stage(run: Run, number: int, network: Network, saved: dict[str, Any] | None = None) -> None:
    """Train the epochs that `saved` lacks, and leave the network with the weights that are kept."""
    folder, stage = run.folder, run.config.stage(number)
    done = saved["epoch"] if saved else 0
    if saved:
        network.load_state_dict(saved["network"])
        console.say(f"resuming stage {number} after epoch {done}")
    if done < stage.epochs:
        Stage(run, number, network, saved).train()
    elif saved and saved.get("average"):
        network.load_state_dict(saved["average"])
    network.to(run.device)
    if run.config.keep == "best" and "val" in run.images:
        if rank() == 0 and folder.best.is_file():
            network.load_state_dict(folder.load_weights(folder.best))
        copy_from_first(network)
    if rank() == 0:
        folder.save_weights(folder.stage_weights(number), network.state_dict())
        folder.best.unlink(missing_ok=True)
    wait_for_all()


class Stage:
    """The epochs of a stage that are left, and all that they change: weights, momentum, averages.

    Learning rates, batches and random draws are functions of (seed, stage, epoch, step) alone, and a
    checkpoint is taken between two epochs: that is all a bit-identical resume needs.
    """

    def __init__(self, run: Run, number: int, network: Network, saved: dict[str, Any] | None):
        self.run, self.number, self.network = run, number, network
        self.config, self.stage = run.config, run.config.stage(number)
        self.first = saved["epoch"] if saved else 0
        self.best = saved["best"] if saved else -1.0
        self.writer = CheckpointWriter()
        self.log = EpochLog(run.folder.path, number) if run.tensorboard and rank() == 0 else None

        device, config = run.device, run.config
        run.method.to(device)
        network.to(device).to(memory_format=torch.channels_last)
        if device.type == "cuda" and world_size() > 1:
            # timm's conversion, since torch's drops the activation inside timm's batch norms.
            convert_sync_batchnorm(network)
        last_layer_only = config.train_backbone == "last"
        freeze(network, self.stage, config.data.image_size, last_layer_only=last_layer_only)
        if not saved:
            run.method.on_stage_start(number, network, self._class_means)
        self.optimizer = make_optimizer(network, self.stage, fused=device.type == "cuda")
        self.average: WeightAverage | None = None
        if self.stage.ema:
            steps = self.first * len(self._batches(0))
            self.average = WeightAverage(network, self.stage.ema, steps)
        if saved:
            load_momentum(self.optimizer, saved["optimizer"])
            run.method.load_state_dict(saved.get("method", {}), strict=False)  # 0.1 kept none
            if self.average is not None:
                self.average.network.load_state_dict(saved["average"])
        self.teacher = run.teacher.to(device) if run.teacher and config.has_teacher(number) else None
        self.rates = LearningRates(self.optimizer, self.stage, device)
        if compiling := compiled(config, device):
            torch.compiler.reset()  # or of many trainings in one process all but the first few run uncompiled
        batch_loss = BatchLoss(
            run.method,
            number,
            network,
            Augment(config.data, device),
            precision=config.precision,
            compiled=compiling,
            config=self.stage,
            teacher=self.teacher,
        )
        self.step = Step(
            batch_loss,
            self.optimizer,
            forward=run.processes.setup_module(batch_loss),  # in DDP if there are several processes
            average=self.average,
            graph=recorded(config, device),
        )

    @property
    def kept(self) -> Network:
        """The network that is validated, saved and handed on: the averaged one if there is an average."""
        return self.network if self.average is None else self.average.network

    def train(self) -> None:
        """Every epoch that is left: steps, validation, a row of the table, a checkpoint."""
        run, epochs = self.run, self.stage.epochs
        self._say_sampling()
        with console.progress(f"stage {self.number}") as bar:
            console.epoch_header()
            began = time.monotonic()
            try:
                for epoch in range(self.first, epochs):
                    trained = self._train_epoch(epoch, bar)
                    copy_from_first(self.kept)  # each process has had its own batch statistics
                    measured = validate(
                        self.kept, run.images, self.config, run.method.train_counts, run.device, run.workers
                    )
                    row = self._row(epoch, trained, measured)
                    run.history.append(row)
                    seconds_per_epoch = (time.monotonic() - began) / (epoch + 1 - self.first)
                    console.epoch(row, epochs, seconds_per_epoch * (epochs - epoch - 1))
                    if self.log is not None:
                        self.log.add(row)
                    if rank() == 0:
                        self._checkpoint(epoch, row)
            finally:
                if self.log is not None:
                    self.log.close()
                self.writer.wait()
        self.optimizer.zero_grad(set_to_none=True)  # gradients lie in the graph's memory
        if self.average is not None:
            self.network.load_state_dict(self.average.network.state_dict())

    def _train_epoch(self, epoch: int, bar: Callable[[int, int], None]) -> dict[str, float]:
        """The steps of one epoch; its mean loss, the seconds it took and the images it showed in one."""
        # Dropout and its like draw from the global generator: give it one state per epoch and process.
        torch.manual_seed(hash((self.config.seed, self.number, epoch, rank())) % 2**63)
        set_training_mode(self.network, self.stage)
        batches = self._batches(epoch)
        steps, batch_size = len(batches), batches.batch
        self.rates.start_epoch(epoch, steps)
        self.step.loss_sum.zero_()
        began = time.perf_counter()
        for number, batch in enumerate(batches):
            self.rates.set(number)
            self.step(batch)
            if epoch == self.first and self.run.device.type == "cpu":
                self._say_time(number, steps)
            if (number + 1) % _LOSS_CHECK_STEPS == 0:
                self._loss_sum(epoch)
            shown = ((epoch - self.first) * steps + number + 1) * batch_size
            bar(shown, (self.stage.epochs - self.first) * steps * batch_size)
        loss = self._loss_sum(epoch) / (steps * world_size())
        seconds = time.perf_counter() - began  # the loss is known: the device has finished, too
        return {"loss": loss, "seconds": seconds, "images_per_second": steps * batch_size / seconds}

    def _say_time(self, number: int, steps: int) -> None:
        """How long the stage will take, from its first steps; a GPU's end later than they return."""
        if number == _TIMED_STEPS.start:
            self.timed_from = time.perf_counter()
        elif number == _TIMED_STEPS.stop - 1:
            per_step = (time.perf_counter() - self.timed_from) / (len(_TIMED_STEPS) - 1)
            seconds = per_step * (steps * (self.stage.epochs - self.first) - number)
            if seconds > 60:
                console.say(f"stage {self.number} will take about {seconds / 60:.0f} min, validation apart")

    def _loss_sum(self, epoch: int) -> float:
        """The summed loss of the epoch so far; NaN or infinite stops all processes together."""
        total = sum_over_ranks(self.step.loss_sum)
        if not bool(torch.isfinite(total)):
            earlier = epoch > 0 or self.number > 1
            raise UserError(
                f"The loss turned NaN or infinite in stage {self.number}, epoch {epoch + 1}.",
                "The epochs before it are kept." if earlier else "",
                f"a smaller learning rate, e.g. --set stage{self.number}.lr={self.stage.lr / 10:g}"
                + (" and a new --out" if earlier else ""),
            )
        return float(total)

    def _row(
        self, epoch: int, trained: dict[str, float], measured: dict[str, float | None]
    ) -> dict[str, Any]:
        """A row of metrics.csv."""
        return {
            "stage": self.number,
            "epoch": epoch + 1,
            "lr": self.stage.lr * self.rates.mean_factor,
            "loss": trained["loss"],
            **measured,
            "seconds": round(trained["seconds"], 3),
            "images_per_second": round(trained["images_per_second"], 1),
        }

    def _checkpoint(self, epoch: int, row: dict[str, Any]) -> None:
        """The weights if they are the best so far, and the state to resume from, written in a thread."""
        folder, history, overall = self.run.folder, list(self.run.history), row["overall"]
        if self.config.keep == "best" and overall is not None and overall > self.best:
            self.best = overall
            folder.save_weights(folder.best, self.kept.state_dict())
        state = Snapshot(
            {
                "stage": self.number,
                "epoch": epoch + 1,
                "network": self.network.state_dict(),
                "method": self.run.method.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "average": None if self.average is None else self.average.network.state_dict(),
                "best": self.best,
                "history": history,
            }
        )

        def write() -> None:
            write_state(state, folder.last)
            write_metrics(folder.metrics, history)

        self.writer.start(write)

    def _batches(self, epoch: int) -> TrainBatches:
        run, key = self.run, (self.config.seed, self.number, epoch)
        return TrainBatches(run.images["train"], self.stage, key, run.device, run.workers, self.config.data)

    def _class_means(self) -> torch.Tensor:
        run = self.run
        return class_means(
            self.network,
            run.images["train"],
            self.config.data,
            run.device,
            run.method.num_classes,
            precision=self.config.precision,
            workers=run.workers,
        )

    def _say_sampling(self) -> None:
        """The sampler in use and how many images of a class an epoch shows."""
        stage, batches = self.stage, self._batches(0)
        labels = torch.from_numpy(batches.images.labels[batches.order()])
        shown = torch.bincount(labels, minlength=self.run.method.num_classes)
        size = f"{count(stage.epochs, 'epoch')} of {len(batches)} × {batches.batch} images"
        per_class = f"{int(shown.min())} to {int(shown.max())} images per class and epoch"
        also = [words for words in (views_in_words(stage), str(self.teacher or "")) if words]
        words = "; ".join([f"{size}, {stage.sampler} sampling: {per_class}", *also])
        console.say(f"stage {self.number}: {words}")
        if self.network.auxiliary is not None and stage.views == 1:
            console.say(
                f"  terms of {self.config.method} that compare views are left out: there is one view of each "
                f"image (--set stage{self.number}.views=2)"
            )
