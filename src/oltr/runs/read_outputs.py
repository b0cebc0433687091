"""What a trained run says of images that are read anew, from its own data or from another source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from oltr.config import RunConfig
from oltr.console import Console
from oltr.data.image_access import Images, open_images
from oltr.data.images import UnreadableImage
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.runs.outputs import Outputs
from oltr.runs.run_outputs import SPLITS, best_device, collect, kept_outputs, load_network
from oltr.training.infer import ViewChange
from oltr.training.options import FitOptions
from oltr.training.run_folder import RunFolder
from oltr.wording import count


def outputs_on(folder: RunFolder, manifest: Manifest, console: Console) -> dict[str, Outputs]:
    """Outputs of a trained run on the val, test and open images of another source."""
    names = [entry["name"] for entry in folder.classes()]
    splits = [split for split in SPLITS if manifest.sizes()[split]]
    if "test" not in splits:
        raise UserError("The source has no test images.", try_this="a source with a test split")
    strangers = sorted({*manifest.rows("test")["label"], *manifest.rows("val")["label"]} - set(names))
    if strangers:
        raise UserError(
            f"{count(len(strangers), 'class')} of the source {'is' if len(strangers) == 1 else 'are'} "
            "not among the run's.",
            f"The first: {', '.join(strangers[:5])}",
            "move their images to the open split",
        )
    # Without validation images of its own a threshold is chosen on the run's.
    return kept_outputs(folder, ["val"]) | read_outputs(folder, manifest, splits, console)


def source_to_measure(folder: RunFolder, source: str | Path, root: str | Path | None = None) -> Manifest:
    """The images of a source that a run is to be measured on.

    Of data without splits these are all, unless the run learned from these very data: then its own split
    holds, and only the test part counts.
    """
    manifest, own = read_source(source, root), folder.run()["data"]["fingerprint"]
    if not manifest.split_made or manifest.fingerprint() == own:
        return manifest
    return read_source(source, root, flat="test")


def own_manifest(folder: RunFolder) -> Manifest:
    """The data that a run was trained on, from where they were then."""
    run = folder.run()
    source = run.get("source")
    try:
        if not source:
            raise UserError("run.yaml does not tell where they are.")
        manifest = read_source(source, run.get("root"))
        if manifest.fingerprint() != run["data"]["fingerprint"]:
            raise UserError(f"{source} holds other images now.")
    except UserError as problem:
        raise _images_needed(folder, problem) from None
    return manifest


def own_outputs(
    folder: RunFolder, splits: Sequence[str], console: Console, change: ViewChange | None = None
) -> dict[str, Outputs]:
    """Outputs on the images that the run was trained and measured on, read anew."""
    try:
        return read_outputs(folder, own_manifest(folder), splits, console, change)
    except UnreadableImage as problem:
        raise _images_needed(folder, problem) from None


def _images_needed(folder: RunFolder, problem: UserError) -> UserError:
    return UserError(
        f"The images that {folder.path} was trained on are needed.",
        problem.what,
        "--source SOURCE, and --root DIR if it needs one: where they are now",
    )


def read_outputs(
    folder: RunFolder,
    manifest: Manifest,
    splits: Sequence[str],
    console: Console,
    change: ViewChange | None = None,
) -> dict[str, Outputs]:
    """Outputs on those splits of a manifest, labels in the run's class numbering."""
    config, device = folder.config(), best_device()
    network = load_network(folder)
    images = images_for(config, manifest, splits, console)
    outputs = collect(network, images, config, device, console, FitOptions().workers, splits, change)
    numbers = {entry["name"]: number for number, entry in enumerate(folder.classes())}
    translate = torch.tensor([numbers.get(name, -1) for name in manifest.classes] or [-1])
    return {
        split: values if split == "open" else _relabelled(values, translate)
        for split, values in outputs.items()
    }


def images_for(
    config: RunConfig, manifest: Manifest, splits: Sequence[str], console: Console
) -> dict[str, Images]:
    """The images of those splits, open for reading at the size the run learned from."""
    if manifest.pack is not None and (size := open_pack(manifest.pack).size) < config.data.stored_size:
        raise UserError(
            f"{manifest.pack} holds images of {size} px, the run learned from {config.data.stored_size} px.",
            try_this=f"oltr data pack SOURCE --size {config.data.stored_size}",
        )
    with console.progress("reading images") as progress:
        return open_images(
            manifest, splits, config.data.stored_size, config.data.image_size, best_device(), progress
        )


def _relabelled(outputs: Outputs, translate: torch.Tensor) -> Outputs:
    """Labels in the run's class numbering."""
    return Outputs(
        outputs.logits, translate[outputs.labels], outputs.features, outputs.embeddings, outputs.reachability
    )
