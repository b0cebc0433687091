"""All images of a manifest decoded to one size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from oltr.data.images import UnreadableImage, is_there, read_image
from oltr.data.manifest import Manifest
from oltr.errors import UserError

Progress = Callable[[int, int], None]
AT_A_TIME = 256  # bounds what waits in memory


def decode_all(
    manifest: Manifest, paths: Sequence[str], size: int, progress: Progress | None = None
) -> Iterator[np.ndarray]:
    """The images of those rows as size×size×3 uint8, in order."""
    if manifest.items is None:
        return decode_files([manifest.root / path for path in paths], size, progress)
    from oltr.data.loader import decode_items  # with torch, which files do not need

    return decode_items(manifest.items, paths, size, progress)


def decode_files(files: Sequence[Path], size: int, progress: Progress | None = None) -> Iterator[np.ndarray]:
    """Every file as size×size×3 uint8, in order, by a few threads; all unreadable ones in one error."""
    broken: list[str] = []
    nowhere = 0  # of the broken, those that are not there at all

    def read(file: Path) -> np.ndarray | UnreadableImage:
        try:
            return read_image(file, size)
        except UnreadableImage as problem:
            return problem

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
        for start in range(0, len(files), AT_A_TIME):
            for result in threads.map(read, files[start : start + AT_A_TIME]):
                if isinstance(result, UnreadableImage):
                    nowhere += not is_there(result.path)
                    broken.append(f"{result.path}: {result.reason}")
                elif not broken:
                    yield result
            if progress:
                progress(min(start + AT_A_TIME, len(files)), len(files))
    if broken:
        shown = "\n".join(f"  {line}" for line in broken[:5])
        raise UserError(
            f"{len(broken)} of {len(files)} images cannot be read.",
            shown + ("\n  ..." if len(broken) > 5 else ""),
            "--root with the folder that the paths start from"
            if nowhere == len(files)
            else "remove or replace them; `oltr data check SOURCE` lists all",
        )
