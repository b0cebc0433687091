"""A curated set onto disk, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image

from oltr.data.curate.benchmark import Curated
from oltr.data.curate.card import card_mark, card_text
from oltr.errors import UserError
from oltr.wording import first_few

FIGURE = "classes.png"
WRITTEN = ("card.md", FIGURE, "manifest.csv", "images")  # all that a curated folder holds


def check_out(out: Path, name: str) -> None:
    """Refuse to write over anything but nothing or an earlier curation of the same name."""
    out = out.expanduser()
    if not out.exists():
        return
    if not out.is_dir():
        raise UserError(f"{out} is a file.", try_this="--out with the name of a new folder")
    present = sorted(entry.name for entry in out.iterdir())
    if not present:
        return
    card = out / "card.md"
    first_line = card.read_text(encoding="utf-8", errors="replace").split("\n")[0] if card.is_file() else ""
    strangers = [entry for entry in present if entry not in WRITTEN]
    if first_line != card_mark(name) or strangers:
        holds = f"It holds {first_few(strangers or present)}."
        raise UserError(f"The folder {out} is not empty.", holds, "a new folder, or remove what is in it")


def write_curation(curated: Curated, out: Path, progress: Callable[[int, int], None] | None = None) -> None:
    """Write manifest.csv, card.md and the pictures; `progress(done, total)` counts pictures."""
    check_out(out, curated.name)
    out = out.expanduser().resolve()
    building = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        building.mkdir(parents=True)
        _write_pictures(curated, building, progress)
        curated.manifest.write(building / "manifest.csv", record_root=curated.manifest.root.resolve() != out)
        has_figure = _draw_figure(curated, building / FIGURE)
        (building / "card.md").write_text(
            card_text(curated, FIGURE if has_figure else None), encoding="utf-8"
        )
        if out.exists():
            _swap(building, out)
        else:
            building.rename(out)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"{out} could not be written: {reason}.", "Nothing was left behind.") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _draw_figure(curated: Curated, path: Path) -> bool:
    """The class distribution as in the paper's appendix, where there are training images."""
    counts = curated.manifest.train_counts()
    if not counts.any():
        return False
    from oltr.figures.distribution import (
        class_distribution,  # drawing is the analysis room's, and slow to load
    )
    from oltr.figures.save import save_figure

    save_figure(class_distribution(counts), path)
    return True


def _swap(building: Path, out: Path) -> None:
    """New contents for a folder that stays itself: it may be where the user's shell is."""
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


def _write_pictures(curated: Curated, folder: Path, progress: Callable[[int, int], None] | None) -> None:
    for parent in {(folder / path).parent for path in curated.pictures}:
        parent.mkdir(parents=True, exist_ok=True)

    def save(path: str) -> None:
        Image.fromarray(curated.pictures[path]).save(folder / path, compress_level=1)

    with ThreadPoolExecutor() as threads:
        for done, _ in enumerate(threads.map(save, curated.pictures), start=1):
            if progress is not None and (done % 100 == 0 or done == len(curated.pictures)):
                progress(done, len(curated.pictures))
