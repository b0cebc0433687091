"""A trained run's network, and what it says of images, kept in the run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from oltr.config import RunConfig
from oltr.data.augment import Augment
from oltr.data.opened import Images
from oltr.engine.build import build_method, build_network
from oltr.engine.console import Console, process_rank
from oltr.engine.infer import ViewChange, collect_outputs
from oltr.engine.run_folder import RunFolder
from oltr.errors import UserError
from oltr.evaluation.outputs import Outputs
from oltr.nn.network import Network

SPLITS = ("val", "test", "open")


def best_device() -> torch.device:
    """The GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def load_network(folder: RunFolder) -> Network:
    """The trained network of a run."""
    config, counts = folder.config(), [entry["train_count"] for entry in folder.classes()]
    method = build_method(config, torch.tensor(counts))
    network = build_network(config, method, config.num_stages)
    weights = folder.load_weights(folder.model)
    try:
        network.load_state_dict(weights)
    except RuntimeError as problem:  # e.g. a run of an earlier version
        raise UserError(
            f"The weights {folder.model} do not fit the network of this run.",
            str(problem).split("\n\t")[1],
            "train the run again",
        ) from None
    return network.eval()


def collect(
    network: Network,
    images: Mapping[str, Images],
    config: RunConfig,
    device: torch.device,
    console: Console,
    workers: int,
    splits: Sequence[str] = SPLITS,
    change: ViewChange | None = None,
) -> dict[str, Outputs]:
    """Outputs of those of the splits that have images; `change` alters the views first."""
    outputs, augment = {}, Augment(config.data, device)
    network.to(device)
    for split in (s for s in splits if s in images and len(images[s])):
        with console.progress(f"evaluating {split}") as progress:
            outputs[split] = collect_outputs(
                network,
                images[split],
                augment,
                device,
                precision=config.precision,
                workers=workers,
                progress=progress,
                change=change,
            )
    return outputs


def save_outputs(folder: RunFolder, outputs: Mapping[str, Outputs], place: str = "") -> None:
    """Cache outputs in the run folder, so that metrics rerun without the images."""
    if process_rank() == 0:
        for split, values in outputs.items():
            values.save(folder.outputs / place / f"{split}.safetensors")


def kept_outputs(folder: RunFolder, splits: Sequence[str], place: str = "") -> dict[str, Outputs]:
    """Those of the splits whose outputs `save_outputs` kept."""
    files = {split: folder.outputs / place / f"{split}.safetensors" for split in splits}
    return {split: Outputs.load(file) for split, file in files.items() if file.is_file()}


def cached_outputs(folder: RunFolder) -> dict[str, Outputs]:
    """The kept outputs of the evaluation splits, of which test must be there."""
    outputs = kept_outputs(folder, SPLITS)
    if "test" not in outputs:
        folder.run()  # says so if this is no run at all
        raise UserError(
            f"{folder.path} has no outputs of test images.",
            "They are made when training ends.",
            f"oltr evaluate {folder.path} --source SOURCE",
        )
    return outputs
