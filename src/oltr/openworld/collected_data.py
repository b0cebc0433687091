"""All that a run was taught, as a manifest: its training data under the names of now, and what was added."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pandas as pd

from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.files import unwritable
from oltr.runs.current_splits import LEFT_OUT
from oltr.runs.trained_run import TrainedRun
from oltr.training.run_folder import RunFolder

ENOUGH, EVERY = 10, 5  # of so many collected images of a class, every fifth is for validation


def collected_manifest(run: TrainedRun, out: RunFolder) -> Path:
    """Write it to a new run's folder, with the collected images themselves; its path."""
    own = run.manifest
    if own.pack is not None or own.items is not None:
        raise UserError(
            f"{run.path} was trained on {'a pack' if own.pack is not None else 'a dataset'}.",
            "Its images and the collected files cannot be in one manifest.",
            "training on a folder or a manifest of image files",
        )
    added = _added(run, bool(own.sizes()["val"]))
    table = own.table[own.table["split"] != LEFT_OUT]
    # An image that was collected before, and again since, is what it was called last.
    table = pd.concat([table[~table["path"].isin(added["path"])], added], ignore_index=True)
    table["path"] = _brought(table["path"], run.folder.collected.absolute(), out.collected.absolute())
    Manifest.build(table.fillna(""), own.root).write(out.collected_manifest)
    return out.collected_manifest


def _added(run: TrainedRun, has_val: bool) -> pd.DataFrame:
    """Path, label and split of each image that a class was added from; of one added twice, the last."""
    rows = {}
    for added in run.changes.added:
        spare = EVERY if has_val and len(added.files) >= ENOUGH else len(added.files) + 1
        for number, file in enumerate(added.files, start=1):
            path = str((run.path / file).absolute())
            rows[path] = (path, added.name, "train" if number % spare else "val")
    return pd.DataFrame(list(rows.values()), columns=["path", "label", "split"])


def _brought(paths: pd.Series, old: Path, new: Path) -> list[str]:
    """The paths, with files of the old folder linked into the new one, or copied where no link can be."""
    found = []
    with unwritable(new):
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
    for path in map(Path, paths):
        if path.parent != old:
            found.append(str(path))
            continue
        if not path.is_file():
            raise UserError(f"{path} is missing.", "A class was added from this image.")
        with unwritable(new):
            try:
                os.link(path, new / path.name)
            except OSError:  # another disk, or one without links
                shutil.copy2(path, new / path.name)
        found.append(str(new / path.name))
    return found
