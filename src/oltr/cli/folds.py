"""`oltr train --folds K`: a run for each fold, and one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oltr.cli.options import print_json

if TYPE_CHECKING:
    from oltr.config import RunConfig
    from oltr.data.manifest import Manifest
    from oltr.training.options import TrainOptions


def train_in_folds(
    config: RunConfig,
    manifest: Manifest,
    folds: int,
    group_by: str | None,
    out: Path,
    options: TrainOptions,
    source: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make the folds, train them (or say what would be), print the table."""
    from oltr.console import console
    from oltr.data.folds import make_folds
    from oltr.data.groups import find_groups
    from oltr.runs.folds import check_folds, train_folds

    check_folds(out, options)
    made = make_folds(manifest, folds, None if group_by is None else find_groups(manifest, group_by))
    console.notes(made.notes)
    if dry_run:
        _tell_plan([each.sizes() for each in made.manifests], out, as_json)
        return
    result = train_folds(config, made, out, options, source)
    if as_json:
        print_json(result.to_json())
    else:
        print(result.table().text())
    console.say(f"run folders: {out}/fold-1 to fold-{folds}; numbers: {out}/folds.json")


def _tell_plan(sizes: list[dict[str, int]], out: Path, as_json: bool) -> None:
    """The images of each fold."""
    if as_json:
        print_json({"folds": sizes, "out": str(out)})
        return
    for number, images in enumerate(sizes, start=1):
        print(f"fold {number}: {', '.join(f'{split} {n:,}' for split, n in images.items())}")
    print(f"would be trained into {out}/fold-1 to fold-{len(sizes)}")
