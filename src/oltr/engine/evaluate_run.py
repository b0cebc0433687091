"""From a trained run to its report: outputs collected once, then metrics as often as wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from oltr.config import RunConfig
from oltr.data.augment import Augment
from oltr.data.manifest import Manifest
from oltr.data.opened import Images, open_images
from oltr.data.store import open_pack
from oltr.engine.build import build_method, build_network
from oltr.engine.console import Console, process_rank
from oltr.engine.infer import collect_outputs
from oltr.engine.options import FitOptions
from oltr.engine.run_folder import RunFolder
from oltr.errors import UserError
from oltr.evaluation.evaluate import evaluate
from oltr.evaluation.outputs import Outputs
from oltr.evaluation.report import Report
from oltr.nn.network import Network
from oltr.recipes import load_recipe

SPLITS = ("val", "test", "open")


def best_device() -> torch.device:
    """The GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def load_network(folder: RunFolder) -> Network:
    """The trained network of a run."""
    config, counts = folder.config(), [entry["train_count"] for entry in folder.classes()]
    method = build_method(config, torch.tensor(counts))
    network = build_network(config, method, config.num_stages)
    network.load_state_dict(folder.load_weights(folder.model))
    return network.eval()


def collect(
    network: Network,
    images: Mapping[str, Images],
    config: RunConfig,
    device: torch.device,
    console: Console,
    workers: int,
) -> dict[str, Outputs]:
    """Outputs of the evaluation splits there are."""
    outputs, augment = {}, Augment(config.data, device)
    network.to(device)
    for split in (s for s in SPLITS if s in images and len(images[s])):
        with console.progress(f"evaluating {split}") as progress:
            outputs[split] = collect_outputs(
                network,
                images[split],
                augment,
                device,
                precision=config.precision,
                workers=workers,
                progress=progress,
            )
    return outputs


def save_outputs(folder: RunFolder, outputs: Mapping[str, Outputs]) -> None:
    """Cache outputs in the run folder, so that metrics rerun without the images."""
    if process_rank() == 0:
        for split, values in outputs.items():
            values.save(folder.outputs / f"{split}.safetensors")


def cached_outputs(folder: RunFolder) -> dict[str, Outputs]:
    """What `save_outputs` kept."""
    files = {split: folder.outputs / f"{split}.safetensors" for split in SPLITS}
    outputs = {split: Outputs.load(file) for split, file in files.items() if file.is_file()}
    if "test" not in outputs:
        folder.run()  # says so if this is no run at all
        raise UserError(
            f"{folder.path} has no outputs of test images.",
            "They are made when training ends.",
            f"oltr evaluate {folder.path} --source SOURCE",
        )
    return outputs


def outputs_on(folder: RunFolder, manifest: Manifest, console: Console) -> dict[str, Outputs]:
    """Outputs of a trained run on the val, test and open images of another source."""
    config, names = folder.config(), [entry["name"] for entry in folder.classes()]
    splits = [split for split in SPLITS if manifest.sizes()[split]]
    if "test" not in splits:
        raise UserError("The source has no test images.", try_this="a source with a test split")
    strangers = sorted({*manifest.rows("test")["label"], *manifest.rows("val")["label"]} - set(names))
    if strangers:
        raise UserError(
            f"{len(strangers)} of the source's classes are not among the run's.",
            f"The first: {', '.join(strangers[:5])}",
            "move their images to the open split",
        )
    if manifest.pack is not None and (size := open_pack(manifest.pack).size) != config.data.stored_size:
        raise UserError(
            f"{manifest.pack} holds images of {size} px, the run learned from {config.data.stored_size} px.",
            try_this=f"oltr data pack SOURCE --size {config.data.stored_size}",
        )
    device = best_device()
    with console.progress("reading images") as progress:
        images = open_images(
            manifest, splits, config.data.stored_size, config.data.image_size, device, progress
        )
    numbers = {name: number for number, name in enumerate(names)}
    translate = torch.tensor([numbers.get(name, -1) for name in manifest.classes] or [-1])
    outputs = collect(load_network(folder), images, config, device, console, FitOptions().workers)
    return {
        split: values if split == "open" else _relabelled(values, translate)
        for split, values in outputs.items()
    }


def make_report(
    folder: RunFolder,
    outputs: Mapping[str, Outputs],
    score: str | None = None,
    threshold: float | None = None,
    unknown_rate: float | None = None,
    shots: str | None = None,
) -> Report:
    """The metrics of a run from its outputs; the method's own score unless another is named."""
    run, config, classes = folder.run(), folder.config(), folder.classes()
    method = build_method(config, torch.tensor([entry["train_count"] for entry in classes]))
    return evaluate(
        outputs,
        [entry["name"] for entry in classes],
        [entry["train_count"] for entry in classes],
        method=config.method,
        backbone=config.backbone,
        score=score or method.score,
        threshold=threshold,
        unknown_rate=unknown_rate,
        shots=shots or config.shots,
        train_seconds=run["train_seconds"],
        expect=_published(config),
    )


def _published(config: RunConfig) -> dict[str, Any] | None:
    try:
        return load_recipe(config.recipe).expect.get(config.method)
    except UserError:  # a recipe file of the user's own that is no longer there
        return None


def _relabelled(outputs: Outputs, translate: torch.Tensor) -> Outputs:
    """Labels in the run's class numbering."""
    return Outputs(
        outputs.logits, translate[outputs.labels], outputs.features, outputs.embeddings, outputs.reachability
    )
