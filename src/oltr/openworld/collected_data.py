"""All that a run was taught, as a manifest: its training data under the names of now, and what was added."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from oltr.data.images import read_bytes
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.openworld.kept_images import content_digest
from oltr.runs.trained_run import TrainedRun


def collected_manifest(run: TrainedRun) -> Path:
    """Write it to RUN/collected, one file for each state of the classes; its path."""
    own = run.manifest
    if own.pack is not None or own.items is not None:
        raise UserError(
            f"{run.path} was trained on {'a pack' if own.pack is not None else 'a dataset'}.",
            "Its images and the collected files cannot be in one manifest.",
            "training on a folder or a manifest of image files",
        )
    files = [
        {"path": str((run.path / file).absolute()), "label": added.name, "split": "train"}
        for added in run.changes.added
        for file in added.files
    ]
    if missing := [row["path"] for row in files if not Path(row["path"]).is_file()]:
        raise UserError(f"{missing[0]} is missing.", "A class was added from this image.")
    table = _with_named_strangers(own, run.class_names, {Path(row["path"]).stem for row in files})
    table = pd.concat([table, pd.DataFrame(files, columns=["path", "label", "split"])], ignore_index=True)
    place = run.folder.collected / f"manifest-{run.changes.version}.csv"
    Manifest.build(table.fillna(""), own.root).write(place)
    return place


def _with_named_strangers(own: Manifest, known: list[str], collected: set[str]) -> pd.DataFrame:
    """Open images of a class that has a name now are test images of it, but for those it was learned from."""
    named = (own.table["split"] == "open") & own.table["label"].isin(known)
    table = own.table.assign(split=own.table["split"].mask(named, "test"))
    learned = [content_digest(read_bytes(own.root / path)) in collected for path in table["path"][named]]
    return table.drop(index=table.index[named][learned])
