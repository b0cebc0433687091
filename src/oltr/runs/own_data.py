"""A run's own images, wherever they are now, and whether other data fit the run."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from oltr.config import DataConfig
from oltr.console import console
from oltr.data.broken import read_skipped, without
from oltr.data.image_access import Images, open_images
from oltr.data.manifest import Manifest
from oltr.data.pack import Pack, open_pack
from oltr.data.sources import read_source
from oltr.data.validate import SPLITS
from oltr.errors import UserError
from oltr.wording import count

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

# What `data.resize` does to a picture.
SHAPES = {"stretch": "stretched", "crop": "cut to their middle", "short-side": "resized by their short side"}


def own_manifest(run: TrainedRun) -> Manifest:
    """The data that the run was trained on, from where run.yaml says they are."""
    source = run.facts.get("source")
    if source and _collected_before(run) is not None and run.folder.collected_manifest.is_file():
        source = str(run.folder.collected_manifest)
    try:
        if not source:
            raise UserError("run.yaml does not tell where they are.")
        manifest = as_own(run, read_source(source, run.facts.get("root")))
        if manifest is None:
            raise UserError(f"{source} holds other images now.")
    except UserError as problem:
        raise images_needed(run, problem) from None
    return manifest


def as_own(run: TrainedRun, manifest: Manifest) -> Manifest | None:
    """The data that the run was trained on, wherever they lie: without what it skipped, under the splits that
    it made; None: others."""
    skipped = read_skipped(run.folder.skipped)
    own = _as_split(run, without(manifest, skipped) if skipped else manifest)
    return _brought_along(run, own) if own.fingerprint() == run.facts["data"]["fingerprint"] else None


def _collected_before(run: TrainedRun) -> Path | None:
    """Where the run's folder of images collected before its training was then; None: it has none."""
    source = Path(run.facts.get("source") or "")
    usual = run.folder.collected_manifest.relative_to(run.folder.path)
    return source.parent if source.parts[-2:] == usual.parts else None


def _brought_along(run: TrainedRun, own: Manifest) -> Manifest:
    """The manifest with images that lie in the run's folder, wherever that is now."""
    before, now = _collected_before(run), run.folder.collected.absolute()
    if before is None or before == now:
        return own
    paths = [
        str(now / Path(path).name) if Path(path).parent == before else path for path in own.table["path"]
    ]
    return dataclasses.replace(own, table=own.table.assign(path=paths))


def _as_split(run: TrainedRun, manifest: Manifest) -> Manifest:
    """The manifest under the splits that the run keeps, if it made them itself and these are its images."""
    file = run.folder.splits
    if not file.is_file():
        return manifest
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        splits = {path: split for split in SPLITS for path in kept[split]}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise UserError(f"{file} cannot be read.", str(problem), "train the run again") from None
    paths = manifest.table["path"]
    return manifest if splits.keys() != set(paths) else manifest.with_splits(paths.map(splits).to_numpy())


def images_needed(run: TrainedRun, problem: UserError) -> UserError:
    """Why something cannot be made without the run's own images."""
    return UserError(
        f"The images that {run.path} was trained on are needed.",
        problem.what,
        "--source SOURCE, and --root DIR if it needs one: where they are now",
    )


def open_for(run: TrainedRun, manifest: Manifest, splits: Sequence[str]) -> dict[str, Images]:
    """The images of those splits, open for reading at the size the run learned from."""
    data = run.config.data
    if manifest.pack is not None:
        check_pack(open_pack(manifest.pack), data)
    with console.progress("reading images") as progress:
        return open_images(manifest, splits, data.frame, data.image_size, run.device, progress)


def check_pack(pack: Pack, data: DataConfig) -> None:
    """Refuse a pack of smaller pictures than the run learned from, and warn of others."""
    if pack.size < data.stored_size:
        raise UserError(
            f"{pack.path} holds images of {pack.size} px, the run learned from {data.stored_size} px.",
            try_this=f"oltr data pack SOURCE --size {data.stored_size}",
        )
    warn_of_frame(pack, data, "the run learned from images")


def warn_of_frame(pack: Pack, data: DataConfig, who: str) -> None:
    """Say where the pictures of a pack became squares in another way."""
    if pack.frame.resize != data.resize:
        console.warn(
            f"the images of {pack.path.name} are {SHAPES[pack.frame.resize]}; {who} {SHAPES[data.resize]} "
            f"(oltr data pack SOURCE --size {data.stored_size} --resize {data.resize})"
        )


def check_tests(manifest: Manifest) -> None:
    """Refuse data without test images."""
    if not manifest.sizes()["test"]:
        raise UserError("The source has no test images.", try_this="a source with a test split")


def check_classes(run: TrainedRun, manifest: Manifest) -> None:
    """Refuse data of other classes than the run knows, or was trained on."""
    labels = {*manifest.rows("test")["label"], *manifest.rows("val")["label"]}
    if strangers := sorted(labels - {*run.class_names, *run.changes.trained}):
        raise UserError(
            f"{count(len(strangers), 'class')} of the source {'is' if len(strangers) == 1 else 'are'} "
            "not among the run's.",
            f"The first: {', '.join(strangers[:5])}",
            "move their images to the open split",
        )


def as_many_images(run: TrainedRun, manifest: Manifest) -> bool:
    """Whether every class has as many training images there as the run had."""
    there = dict(zip(manifest.classes, manifest.train_counts().tolist(), strict=True))
    ours = zip(run.class_names, run.counts.tolist(), strict=True)
    return {name: number for name, number in there.items() if number} == {
        name: number for name, number in ours if number
    }
