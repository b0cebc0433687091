"""The stages of a run one after the other, with a checkpoint after every epoch."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import torch
from timm.layers import convert_sync_batchnorm

from oltr.config import RunConfig
from oltr.console import Console, process_rank
from oltr.data.augment import Augment
from oltr.data.batches import batch_size
from oltr.data.image_access import Images
from oltr.distributed import copy_from_first, rank, wait_for_all
from oltr.errors import UserError
from oltr.methods import Method
from oltr.nn.network import Network
from oltr.runs.outputs import Outputs
from oltr.samplers import SAMPLERS, generator
from oltr.training.build import build_method, build_network, build_second
from oltr.training.checkpoint import CheckpointWriter, Snapshot, write_state
from oltr.training.infer import class_means, collect_outputs
from oltr.training.options import FitOptions
from oltr.training.run_folder import RunFolder, differences, plain_values
from oltr.training.task import Task
from oltr.training.trainer import make_trainer
from oltr.wording import count

# What runs must have in common to share a stage 1, besides their method's first stage and the images.
STAGE1_SETTINGS = ("backbone", "weights", "data", "stage1", "keep", "precision", "seed")


class Stages:
    """One call of `fit`: trains what is not yet trained and keeps the checkpoint up to date."""

    def __init__(
        self,
        config: RunConfig,
        method: Method,
        folder: RunFolder,
        images: dict[str, Images],
        console: Console,
        options: FitOptions,
        device: torch.device,
    ):
        self.config, self.method, self.folder, self.images = config, method, folder, images
        self.console, self.options, self.device = console, options, device
        self.history: list[dict[str, Any]] = []
        self.seconds, self.best = 0.0, -1.0
        self.writer = CheckpointWriter()
        method.to(device)

    def train(self) -> Network:
        """Both stages; what an earlier call finished is not done again."""
        config, saved = self.config, self._saved()
        network = build_network(config, self.method, 1, weights=config.weights)
        for stage in range(1, config.num_stages + 1):
            if stage == 2:
                network = build_second(config, self.method, network)
            if saved and stage < saved["stage"]:
                continue  # the checkpoint holds all that stage 2 took from stage 1
            if (done := self._finished(stage)) is not None:
                network.load_state_dict(self.folder.load_weights(done))
            else:
                self._train_stage(stage, network, saved)
        if remark := self.method.after_training(network, lambda: self._validation(network)):
            self.console.say(remark)
        if process_rank() == 0:
            self.folder.save_weights(self.folder.model, network.state_dict())
            self.folder.finish(self.seconds, remark)
        return network

    def _finished(self, stage: int) -> Path | None:
        """The weights of a stage that need not be trained: done before, or by the run it is shared with."""
        own = self.folder.stage_weights(stage)
        if self.options.resume and own.is_file():
            return own
        return self._shared_stage1() if stage == 1 and self.options.stage1_from else None

    def _saved(self) -> dict[str, Any] | None:
        """The checkpoint to go on from, with the history up to it."""
        if not self.options.resume or not self.folder.last.is_file():
            return None
        saved = self.folder.load_checkpoint()
        self.history, self.seconds = saved["history"], saved["seconds"]
        return saved

    def _shared_stage1(self) -> Path:
        """The stage-1 weights of another run, if they are what this run would have trained."""
        assert self.options.stage1_from is not None
        other = RunFolder(self.options.stage1_from)
        theirs, ours = other.config(), self.config
        wrong = differences(_stage1_settings(theirs), _stage1_settings(ours))
        kind = build_method(theirs, self.method.train_counts).first_stage
        if kind != self.method.first_stage:
            wrong.append(f"the method's first stage: {kind} → {self.method.first_stage}")
        if process_rank() == 0 and other.run()["data"] != self.folder.run()["data"]:
            wrong.append("the images")
        if wrong:
            raise UserError(
                f"Stage 1 of {other.path} cannot be shared, for this run differs from it:",
                "\n".join(f"  {line}" for line in wrong),
                "the settings and images of that run, or no --stage1-from",
            )
        weights = other.stage_weights(1)
        if not weights.is_file():
            raise UserError(f"Stage 1 of {other.path} is not finished.", try_this="finish it with --resume")
        rows = other.load_checkpoint()["history"]
        self.history = [row for row in rows if row["stage"] == 1]
        self.seconds = sum(row["seconds"] for row in self.history)
        return weights

    def _train_stage(self, number: int, network: Network, saved: dict[str, Any] | None) -> None:
        saved = saved if saved and saved["stage"] == number else None
        stage, done = self.config.stage(number), saved["epoch"] if saved else 0
        self.best = saved["best"] if saved else -1.0
        if saved:
            network.load_state_dict(saved["network"])
            self.console.say(f"going on with stage {number} after epoch {done}")
        if done < stage.epochs:
            self._say_sampling(number)
            self._run_epochs(number, network, done, saved)
        if self.config.keep == "best" and "val" in self.images:
            # One process reads what it wrote, whether or not the others see its disk. Processes that had
            # nothing left to train have not met: each reads for itself.
            if rank() == 0 and self.folder.best.is_file():
                network.load_state_dict(self.folder.load_weights(self.folder.best))
            copy_from_first(network)
        if process_rank() == 0:
            self.folder.save_weights(self.folder.stage_weights(number), network.state_dict())
            if done < stage.epochs:
                self.folder.best.unlink(missing_ok=True)
        wait_for_all()

    def _run_epochs(self, number: int, network: Network, done: int, saved: dict[str, Any] | None) -> None:
        stage = self.config.stage(number)
        network.to(memory_format=torch.channels_last)
        if self.device.type == "cuda" and self.options.devices * self.options.nodes > 1:
            # timm's conversion, since torch's drops the activation inside timm's batch norms.
            network = convert_sync_batchnorm(network)
        batch = batch_size(stage, len(self.images["train"]))
        with self.console.progress(f"stage {number}") as bar:
            began = time.monotonic()

            def on_step(step: int, steps: int) -> None:
                epochs = task.epoch - done
                bar((epochs * steps + step) * batch, (stage.epochs - done) * steps * batch)

            def on_epoch(task: Task, row: dict[str, Any]) -> None:
                self.history.append(row)
                self.seconds += row["seconds"]
                finished = task.epoch + 1 - done
                left = (time.monotonic() - began) / finished * (stage.epochs - task.epoch - 1)
                self.console.epoch(row, stage.epochs, left)
                self._checkpoint(task, row)

            task = Task(
                self.method,
                network,
                self.config,
                number,
                self.images,
                workers=self.options.workers,
                first_epoch=done,
                optimizer_state=saved["optimizer"] if saved else None,
                on_start=self._begin_stage if not saved else None,
                on_step=on_step,
                on_epoch=on_epoch,
            )
            self.console.epoch_header()
            left, validate = stage.epochs - done, "val" in self.images
            trainer = make_trainer(
                self.device, self.options, self.folder.path, number, left, validate=validate
            )
            try:
                trainer.fit(task)
            except SystemExit:  # Lightning's answer to Ctrl-C
                raise KeyboardInterrupt from None
            finally:
                self.writer.wait()
        network.to(self.device)

    def _begin_stage(self, task: Task) -> None:
        """What a method does before a stage, once the processes have met and the network is on its device."""

        def means() -> torch.Tensor:
            return class_means(
                task.network,
                self.images["train"],
                task.augment,
                self.device,
                self.method.num_classes,
                precision=self.config.precision,
                workers=self.options.workers,
            )

        self.method.on_stage_start(task.number, task.network, means)

    def _checkpoint(self, task: Task, row: dict[str, Any]) -> None:
        """After an epoch: the state to resume from, and the weights if they are the best so far."""
        if process_rank() != 0:
            return
        overall = row["overall"]
        if self.config.keep == "best" and overall is not None and overall > self.best:
            self.best = overall
            self.folder.save_weights(self.folder.best, task.network.state_dict())
        optimizer = task.optimizers(use_pl_optimizer=False)
        history = list(self.history)
        state = {
            "stage": task.number,
            "epoch": task.epoch + 1,
            "network": task.network.state_dict(),
            "optimizer": optimizer.state_dict(),  # type: ignore[union-attr]
            "history": history,
            "seconds": self.seconds,
            "best": self.best,
        }
        copied = Snapshot(state)

        def write() -> None:
            write_state(copied, self.folder.last)
            self.folder.write_metrics(history)

        self.writer.start(write)

    def _validation(self, network: Network) -> Outputs | None:
        """What the trained network says of the validation images, if there are any."""
        if "val" not in self.images:
            return None
        network.to(self.device)
        return collect_outputs(
            network,
            self.images["val"],
            Augment(self.config.data, self.device),
            self.device,
            precision=self.config.precision,
            workers=self.options.workers,
        )

    def _say_sampling(self, number: int) -> None:
        """The sampler in use and how many images of a class an epoch shows."""
        stage, labels = self.config.stage(number), self.images["train"].labels
        batch = batch_size(stage, len(labels))
        order = SAMPLERS[stage.sampler](
            labels,
            len(labels) // batch * batch,
            generator(self.config.seed, number, 0),
            stage.images_per_class,
        )
        shown = torch.bincount(torch.from_numpy(labels[order]), minlength=self.method.num_classes)
        self.console.say(
            f"stage {number}: {count(stage.epochs, 'epoch')} of {len(order) // batch} × {batch} images, "
            f"{stage.sampler} sampling: {int(shown.min())} to {int(shown.max())} images per class and epoch"
        )


def _stage1_settings(config: RunConfig) -> dict[str, Any]:
    every = plain_values(dataclasses.asdict(config))
    return {name: every[name] for name in STAGE1_SETTINGS}
