"""A trained run's network, and what it says of images, kept in the run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from oltr.config import RunConfig
from oltr.console import Console, process_rank
from oltr.data.augment import Augment
from oltr.data.image_access import Images
from oltr.errors import UserError
from oltr.nn.network import Network
from oltr.runs.incomplete import MADE_ANEW, RESUME, check_finished, no_test_outputs
from oltr.runs.outputs import Outputs
from oltr.training.build import build_method, build_network
from oltr.training.infer import ViewChange, collect_outputs
from oltr.training.run_folder import RunFolder

SPLITS = ("val", "test", "open")


def best_device() -> torch.device:
    """The GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def load_network(folder: RunFolder) -> Network:
    """The trained network of a run."""
    check_finished(folder)
    config, counts = folder.config(), [entry["train_count"] for entry in folder.classes()]
    method = build_method(config, torch.tensor(counts))
    network = build_network(config, method, config.num_stages)
    weights = _trained_weights(folder)
    try:
        network.load_state_dict(weights)
    except RuntimeError as problem:  # e.g. a run of an earlier version
        raise UserError(
            f"The weights {folder.model} do not fit the network of this run.",
            str(problem).split("\n\t")[1],
            "train the run again",
        ) from None
    return network.eval()


def _trained_weights(folder: RunFolder) -> dict[str, torch.Tensor]:
    """Those of a finished run, which its last checkpoint can give again."""
    anew = f"{RESUME}, which writes it anew"
    if not folder.model.is_file():
        raise UserError(f"{folder.model} is missing.", try_this=anew)
    try:
        return folder.load_weights(folder.model)
    except UserError as problem:
        raise UserError(problem.what, problem.why, anew) from None


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
    return {split: _kept(file, split, place) for split, file in files.items() if file.is_file()}


def _kept(file: Path, split: str, place: str) -> Outputs:
    try:
        return Outputs.load(file)
    except UserError as problem:
        # Training makes none but these; the others are made when a score needs them.
        trained = split in SPLITS and not place
        hint = MADE_ANEW if trained else f"delete {file}, and it is made anew when it is needed"
        raise UserError(problem.what, problem.why, hint) from None


def cached_outputs(folder: RunFolder) -> dict[str, Outputs]:
    """The kept outputs of the evaluation splits, of which test must be there."""
    check_finished(folder)
    outputs = kept_outputs(folder, SPLITS)
    if "test" not in outputs:
        raise no_test_outputs(folder)
    return outputs
