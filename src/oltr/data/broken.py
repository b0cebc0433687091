"""Images that cannot be read: found before any work, and then refused together or left out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from oltr.console import Progress
from oltr.data.images import NO_FILE, UnreadableImage
from oltr.data.manifest import Manifest
from oltr.data.validate import class_notes, natural_order
from oltr.errors import UserError
from oltr.files import atomic_write
from oltr.wording import Caution, count, first_few

SIZE = 16  # what images are decoded to: small, so that a JPEG is decoded at 1/8
AT_A_TIME = 1024  # bounds what waits in memory
NAMED = 10  # images that a message names


class Broken(NamedTuple):
    """An image of a manifest that cannot be read, and why."""

    path: str
    reason: str


def find_broken(
    manifest: Manifest, paths: Sequence[str] | None = None, progress: Progress | None = None
) -> list[Broken]:
    """Decode every image, or those of some rows, and list those that cannot be read; a pack has none."""
    if manifest.pack is not None:
        return []
    paths = list(manifest.table["path"]) if paths is None else paths

    def reason(path: str) -> str:
        try:
            manifest.read(path, SIZE)
        except UnreadableImage as problem:
            return problem.reason
        return ""

    def reasons() -> Iterator[str]:
        if manifest.items is not None:  # a dataset need not be safe for threads
            yield from map(reason, paths)
            return
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
            for start in range(0, len(paths), AT_A_TIME):
                yield from threads.map(reason, paths[start : start + AT_A_TIME])

    broken = []
    for done, (path, found) in enumerate(zip(paths, reasons(), strict=True), start=1):
        if found:
            broken.append(Broken(path, found))
        if progress is not None:
            progress(done, len(paths))
    return broken


def check_readable(
    manifest: Manifest, paths: Sequence[str] | None = None, progress: Progress | None = None
) -> None:
    """Refuse a manifest with images that cannot be read; all of them are counted."""
    if broken := find_broken(manifest, paths, progress):
        raise unreadable(manifest, broken, len(manifest.table) if paths is None else len(paths))


def drop_broken(manifest: Manifest, progress: Progress | None = None) -> Manifest:
    """The manifest without the images that cannot be read, which are then its `skipped`."""
    broken = find_broken(manifest, progress=progress)
    if broken and len(broken) == len(manifest.table):
        raise unreadable(manifest, broken, len(broken))
    return without(manifest, broken)


def without(manifest: Manifest, skipped: Sequence[Broken]) -> Manifest:
    """The manifest without those images, and without classes that lose all their training images."""
    table, before = manifest.table, set(manifest.rows("train")["label"])
    table = table[~table["path"].isin({path for path, _ in skipped})]
    if len(table) == len(manifest.table):
        return replace(manifest, skipped=())
    notes = [note for note in manifest.notes if note not in class_notes(manifest.table, manifest.classes)]
    verb = "is" if len(skipped) == 1 else "are"
    head = f"{count(len(skipped), 'image')} cannot be read and {verb} left out:"
    notes.append(Caution("\n".join([head, *_lines(skipped)])))
    lost = natural_order(before - set(table.loc[table["split"] == "train", "label"]))
    if lost and len(lost) == len(before):
        raise UserError("No training image can be read.", "\n".join(_lines(skipped)))
    if lost:
        gone = table["label"].isin(lost) & table["split"].isin(("val", "test"))
        table = table[~gone]
        also = f", with {count(int(gone.sum()), 'val or test image')}" if gone.any() else ""
        text = f"Left out without training images: {count(len(lost), 'class')}, {first_few(lost)}{also}."
        notes.append(Caution(text))
    built = Manifest.build(
        table, manifest.root, tuple(notes), items=manifest.items, split_made=manifest.split_made
    )
    return replace(built, skipped=tuple(skipped))


def unreadable(manifest: Manifest, broken: Sequence[Broken], total: int) -> UserError:
    """The error for images that cannot be read, of so many."""
    named = broken
    if manifest.items is None:  # whole paths, which can be copied from the screen
        named = [Broken(str(manifest.root / path), reason) for path, reason in broken]
    moved = len(broken) == total and all(reason == NO_FILE for _, reason in broken)
    return UserError(
        f"{len(broken):,} of {total:,} images cannot be read.",
        "\n".join(_lines(named)),
        "--root with the folder that the paths start from"
        if moved
        else "replace them, or go on without them with --skip-broken (train, evaluate, data pack); "
        "`oltr data check SOURCE` lists all",
    )


def write_skipped(skipped: Sequence[Broken], file: Path) -> None:
    """A line for each image: path, tab, reason."""
    with atomic_write(file) as part:
        part.write_text("".join(f"{path}\t{reason}\n" for path, reason in skipped), encoding="utf-8")


def read_skipped(file: Path) -> list[Broken]:
    """What `write_skipped` wrote; nothing where there is no such file."""
    if not file.is_file():
        return []
    parts = (line.rpartition("\t") for line in file.read_text(encoding="utf-8").split("\n") if line)
    return [Broken(path, reason) for path, _, reason in parts]


def _lines(broken: Sequence[Broken]) -> list[str]:
    more = [f"  and {len(broken) - NAMED:,} more"] if len(broken) > NAMED else []
    return [*(f"  {path}: {reason}" for path, reason in broken[:NAMED]), *more]
