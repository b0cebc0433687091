"""A curated set written to a folder, atomically."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

from oltr.console import Progress
from oltr.data.curate.benchmark import Curated
from oltr.data.curate.card import card_mark, card_text
from oltr.errors import UserError
from oltr.files import check_writable
from oltr.wording import first_few

FIGURE = "classes.png"
Draw = Callable[[np.ndarray, Path], None]  # training images per class, into a file
WRITTEN = ("card.md", FIGURE, "manifest.csv", "images")  # all that a curated folder holds


def check_out(out: Path, name: str) -> None:
    """Refuse a folder that is not empty, unless it holds an earlier curation of the same name."""
    out = out.expanduser()
    check_writable(out)
    if not out.exists():
        return
    if not out.is_dir():
        raise UserError(f"{out} is a file.", try_this="--out with the name of a new folder")
    present = sorted(entry.name for entry in out.iterdir())
    if not present:
        return
    card = out / "card.md"
    first_line = card.read_text(encoding="utf-8", errors="replace").split("\n")[0] if card.is_file() else ""
    others = [entry for entry in present if entry not in WRITTEN]
    if first_line != card_mark(name) or others:
        holds = f"It holds {first_few(others or present)}."
        raise UserError(f"The folder {out} is not empty.", holds, "a new folder, or remove what is in it")


def write_curation(
    curated: Curated,
    out: Path,
    progress: Progress | None = None,
    draw: Draw | None = None,
) -> None:
    """Write manifest.csv, card.md, the pictures and, with `draw`, a figure of the class sizes.

    `progress(done, total)` counts pictures.
    """
    check_out(out, curated.name)
    out = out.expanduser().resolve()
    building = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        building.mkdir(parents=True)
        _write_pictures(curated, building, progress)
        curated.manifest.write(building / "manifest.csv", record_root=curated.manifest.root.resolve() != out)
        counts = curated.manifest.train_counts()
        figure = FIGURE if draw is not None and counts.any() else None
        if draw is not None and figure is not None:
            draw(counts, building / figure)
        (building / "card.md").write_text(card_text(curated, figure), encoding="utf-8")
        if out.exists():
            _swap(building, out)
        else:
            building.rename(out)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"{out} could not be written: {reason}.", "Nothing was left behind.") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _swap(building: Path, out: Path) -> None:
    """Replace what a folder holds, but not the folder: a shell may be in it."""
    earlier = building.with_suffix(".old")
    earlier.mkdir()
    try:
        for old in list(out.iterdir()):
            old.rename(earlier / old.name)
        for new in list(building.iterdir()):
            new.rename(out / new.name)
    except BaseException:
        for old in list(earlier.iterdir()):
            if (out / old.name).exists():
                (out / old.name).rename(building / old.name)
            old.rename(out / old.name)
        earlier.rmdir()
        raise
    shutil.rmtree(earlier, ignore_errors=True)


def _write_pictures(curated: Curated, folder: Path, progress: Progress | None) -> None:
    for parent in {(folder / path).parent for path in curated.pictures}:
        parent.mkdir(parents=True, exist_ok=True)

    def save(path: str) -> None:
        Image.fromarray(curated.pictures[path]).save(folder / path, compress_level=1)

    with ThreadPoolExecutor() as threads:
        for done, _ in enumerate(threads.map(save, curated.pictures), start=1):
            if progress is not None:
                progress(done, len(curated.pictures))
