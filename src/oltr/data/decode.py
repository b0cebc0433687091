"""All images of a manifest decoded to one size."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from oltr.config import Frame
from oltr.console import Progress
from oltr.data.broken import Broken, unreadable
from oltr.data.images import UnreadableImage
from oltr.data.manifest import Manifest

AT_A_TIME = 256  # bounds what waits in memory


def decode_all(
    manifest: Manifest,
    paths: Sequence[str],
    size: int | Frame,
    progress: Progress | None = None,
    total: int = 0,
) -> Iterator[np.ndarray]:
    """The images of those rows as size×size×3 uint8, in order; files by a few threads.

    All files that cannot be read are one error, at the end; `total` is of how many, if others are known.
    """
    if manifest.items is not None:
        from oltr.data.loader import decode_items  # with torch, which files do not need

        yield from decode_items(manifest.items, paths, size, progress)
        return
    broken: list[Broken] = []

    def read(path: str) -> np.ndarray | Broken:
        try:
            return manifest.read(path, size)
        except UnreadableImage as problem:
            return Broken(path, problem.reason)

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
        for start in range(0, len(paths), AT_A_TIME):
            for result in threads.map(read, paths[start : start + AT_A_TIME]):
                if isinstance(result, Broken):
                    broken.append(result)
                elif not broken:
                    yield result
            if progress:
                progress(min(start + AT_A_TIME, len(paths)), len(paths))
    if broken:
        raise unreadable(manifest, broken, total or len(paths))
