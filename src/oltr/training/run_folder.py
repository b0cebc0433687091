"""A run on disk: what it was told, what it learned, how it went."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import SafetensorError
from safetensors.torch import load_file, save

import oltr
from oltr.config import RunConfig, build, plain_values
from oltr.data.broken import write_skipped
from oltr.data.manifest import Manifest
from oltr.data.sources import names_object
from oltr.errors import UserError
from oltr.files import atomic_write, check_writable
from oltr.metrics.shots import shot_groups
from oltr.old_names import current_weights, run_values

_RUN_KEYS = ("config", "data", "finished", "train_seconds")
_PACKAGES = ("torch", "torchvision", "timm", "lightning", "numpy")
# May differ between the runs that share weights or continue each other, without changing the result.
_FREE = ("recipe",)
RESUME = "the same oltr train command with --resume"


class RunFolder:
    """`runs/NAME/`: run.yaml, classes.json, model.safetensors, metrics.csv, report.json and two folders."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.model = self.path / "model.safetensors"
        self.report = self.path / "report.json"
        self.metrics = self.path / "metrics.csv"
        self.skipped = self.path / "skipped.txt"
        self.outputs = self.path / "outputs"
        self.splits = self.path / "splits.json"  # of a run whose splits its source does not tell
        self.exemplars = self.path / "exemplars.safetensors"
        self.history = self.path / "history.sqlite"
        self.collected = self.path / "collected"  # images that classes were added from
        self.collected_manifest = (
            self.collected / "manifest.csv"
        )  # of a run trained on what another collected
        self.last = self.path / "checkpoints" / "last.pt"
        self.best = self.path / "checkpoints" / "best.safetensors"

    def stage_weights(self, stage: int) -> Path:
        """The weights that a finished stage ended with."""
        return self.path / "checkpoints" / f"stage{stage}.safetensors"

    def can_resume(self) -> bool:
        """Whether an epoch or a fitted stage has ended, from which training can go on."""
        return self.last.is_file() or any(self.stage_weights(stage).is_file() for stage in (1, 2))

    def check_free(self) -> None:
        """Refuse a folder that holds something already, or that cannot be written.

        Images that another run collected may be there: training takes them along first.
        """
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"{self.path} is a file.", try_this="another --out")
        if self.path.exists() and any(each != self.collected for each in self.path.iterdir()):
            holds_run = (self.path / "run.yaml").exists()
            raise UserError(
                f"{self.path} cannot take a new run.",
                "It holds a run already." if holds_run else "It is not empty.",
                "--resume to go on with it, or another --out" if holds_run else "another --out",
            )
        check_writable(self.path)

    def begin(self, config: RunConfig, manifest: Manifest, source: str, device: torch.device) -> None:
        """Start a new run here; a folder that holds something else is left alone."""
        self.check_free()
        counts = manifest.train_counts()
        groups = shot_groups(counts, config.shots)
        classes = [
            {"name": name, "train_count": int(count), "shots": str(group)}
            for name, count, group in zip(manifest.classes, counts, groups, strict=True)
        ]
        self.write(
            {
                "config": dataclasses.asdict(config),
                **_place(source, manifest),
                "data": data_identity(manifest),
                **({"teacher": teacher} if (teacher := teacher_identity(config)) else {}),
                "versions": versions(),
                "hardware": hardware(device),
                "finished": False,
                "train_seconds": 0.0,
            }
        )
        with atomic_write(self.path / "classes.json") as part:
            part.write_text(json.dumps(classes, indent=1, ensure_ascii=False), encoding="utf-8")
        if manifest.split_kept:
            paths = {split: manifest.rows(split)["path"].tolist() for split in manifest.sizes()}
            with atomic_write(self.splits) as part:
                part.write_text(json.dumps(paths, indent=1, ensure_ascii=False), encoding="utf-8")
        if manifest.skipped:
            write_skipped(manifest.skipped, self.skipped)

    def discard(self) -> None:
        """Take back what was written since `begin`, of a run that came to nothing; other files stay."""
        if not self.path.is_dir():
            return
        for name in ("run.yaml", "classes.json", self.metrics.name, self.splits.name, self.skipped.name):
            (self.path / name).unlink(missing_ok=True)
        for name in ("checkpoints", "tensorboard"):
            shutil.rmtree(self.path / name, ignore_errors=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    def check_same(self, config: RunConfig, manifest: Manifest) -> None:
        """Refuse to go on with a run under another configuration or other data."""
        # Built anew, so that settings a run of an earlier version did not have are at their defaults.
        theirs, ours = (plain_values(dataclasses.asdict(each)) for each in (self.config(), config))
        changed = differences(theirs, ours)
        # Runs of version 0.1 have no decision.
        free = _FREE if "decision" in self.run()["config"] else (*_FREE, "decision")
        changed = [line for line in changed if line.split(":")[0].split(".")[0] not in free]
        if "eval_size_by" not in self.run()["config"].get("data", {}):  # of an earlier version
            changed = [line for line in changed if not line.startswith("data.eval_size_by:")]
        if self._same_teacher(config):
            changed = [line for line in changed if not line.startswith("distill.teacher:")]
        elif theirs["distill"]["teacher"] == ours["distill"]["teacher"] is not None:
            changed.append("distill.teacher: its weights are others now")
        if changed:
            raise UserError(
                f"{self.path} was trained with another configuration.",
                "\n".join(f"  {line}" for line in changed[:8]),
                "the old settings, or a new --out",
            )
        if self.run()["data"]["fingerprint"] != manifest.fingerprint():
            raise UserError(
                f"{self.path} was trained on other data.", try_this="the old source, or a new --out"
            )

    def _same_teacher(self, config: RunConfig) -> bool:
        """Whether it is the run's teacher, though it may have moved; or has gone from the same place."""
        told, given = self.run().get("teacher"), teacher_identity(config)
        if not (told and given):
            return False
        gone = given["weights_sha256"] is None
        return given["path"] == told["path"] if gone else given["weights_sha256"] == told["weights_sha256"]

    def run(self) -> dict[str, Any]:
        """The content of run.yaml."""
        file = self.path / "run.yaml"
        try:
            values = yaml.safe_load(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            why = "It has no run.yaml." if self.path.is_dir() else "There is no such folder."
            raise UserError(
                f"{self.path} is not a run folder.", why, "a folder that `oltr train` wrote"
            ) from None
        except (yaml.YAMLError, UnicodeDecodeError) as problem:
            raise UserError(f"{file} is not valid YAML.", str(problem), "train the run again") from None
        if not isinstance(values, dict) or any(key not in values for key in _RUN_KEYS):
            raise UserError(
                f"{file} is not whole.", f"It must hold {', '.join(_RUN_KEYS)}.", "train the run again"
            )
        return values | {"config": run_values(values["config"])}

    def finished_run(self) -> dict[str, Any]:
        """The same, of a run that has finished; another is refused."""
        values = self.run()
        if not values["finished"]:
            raise UserError(f"{self.path} has not finished training.", try_this=RESUME)
        return values

    def config(self) -> RunConfig:
        """The run's configuration."""
        return build(RunConfig, self.run()["config"])

    def classes(self) -> list[dict[str, Any]]:
        """Name, training count and shot group of each class."""
        file = self.path / "classes.json"
        try:
            classes = json.loads(file.read_text(encoding="utf-8"))
            if classes and all({"name", "train_count"} <= entry.keys() for entry in classes):
                return classes
            problem: Exception | str = "Each class has a name and a train_count."
        except (OSError, ValueError, TypeError, AttributeError) as error:
            problem = error
        raise UserError(f"{file} cannot be read.", str(problem), "train the run again")

    def finish(self, train_seconds: float, **told: Any) -> None:
        """Note in run.yaml that training is done, how long it took, and what was told at its end."""
        noted = {"finished": True, "train_seconds": round(train_seconds, 3)}
        self.write(self.run() | noted | {name: value for name, value in told.items() if value})

    def save_weights(self, path: Path, state: dict[str, torch.Tensor]) -> None:
        """Weights as safetensors, whole or not at all."""
        with atomic_write(path) as part:
            part.write_bytes(
                save({name: tensor.detach().cpu().contiguous() for name, tensor in state.items()})
            )

    def weights_sha256(self) -> str | None:
        """What tells the run's weights from others; None where there are none."""
        if not self.model.is_file():
            return None
        with self.model.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def load_weights(self, path: Path) -> dict[str, torch.Tensor]:
        """Weights that `save_weights` wrote."""
        if not path.is_file():
            raise UserError(f"{path} is missing.", "The run has not finished.", "oltr train with --resume")
        try:
            return current_weights(load_file(path))
        except SafetensorError as problem:
            raise UserError(f"{path} is not whole.", str(problem), "train the run again") from None

    def load_checkpoint(self) -> dict[str, Any]:
        """The state after the last epoch, to go on from."""
        try:
            state = torch.load(self.last, map_location="cpu", weights_only=True)
            return state | {"network": current_weights(state["network"])}
        except Exception as problem:  # a cut file fails in many ways
            raise UserError(
                f"The checkpoint {self.last} cannot be read.",
                str(problem).split("\n")[0],
                "train again, in a new --out",
            ) from None

    def write(self, values: dict[str, Any]) -> None:
        """run.yaml, atomically."""
        with atomic_write(self.path / "run.yaml") as part:
            part.write_text(
                yaml.safe_dump(plain_values(values), sort_keys=False, allow_unicode=True), encoding="utf-8"
            )


def data_identity(manifest: Manifest) -> dict[str, Any]:
    """What tells one set of images from another."""
    return {"fingerprint": manifest.fingerprint(), "images": manifest.sizes()}


def teacher_identity(config: RunConfig) -> dict[str, Any] | None:
    """Where the run's teacher is, and what tells its weights from others; None without a teacher."""
    if config.distill.teacher is None:
        return None
    folder = RunFolder(config.distill.teacher)
    return {"path": str(folder.path.absolute()), "weights_sha256": folder.weights_sha256()}


def versions() -> dict[str, str]:
    """What the run was made with."""
    own = {"oltr": oltr.__version__, "python": platform.python_version()}
    return own | {package: metadata.version(package) for package in _PACKAGES}


def hardware(device: torch.device | None = None) -> str:
    """The device a run uses, or the best there is, in words."""
    kind = device.type if device is not None else "cuda" if torch.cuda.is_available() else "cpu"
    if kind == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} CPU, {torch.get_num_threads()} threads"


def _place(source: str, manifest: Manifest) -> dict[str, str]:
    """Where the images are, for whoever reads them from another folder: the source, and where paths start."""
    if not source:
        return {"source": ""}
    if names_object(source):  # its module is found again from there
        return {"source": source, "root": str(manifest.root)}
    path = Path(source).expanduser().absolute()
    usual = path if path.is_dir() else path.parent
    elsewhere = manifest.pack is None and manifest.root != usual
    return {"source": str(path)} | ({"root": str(manifest.root)} if elsewhere else {})


def differences(old: dict[str, Any], new: dict[str, Any], place: str = "") -> list[str]:
    """Settings that differ, as "place: old → new"."""
    lines = []
    for key in {**old, **new}:
        a, b, where = old.get(key), new.get(key), f"{place}{key}"
        if isinstance(a, dict) and isinstance(b, dict):
            lines += differences(a, b, f"{where}.")
        elif a != b:
            lines.append(f"{where}: {a} → {b}")
    return lines
