"""Pictures of the classes that a run knows: collected ones first, then training images."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import lru_cache, partial
from urllib.parse import urlencode

import numpy as np
from PIL import Image

from oltr.data.images import UnreadableImage, read_bytes, small_copy
from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.runs.trained_run import TrainedRun

MOST = 6  # of a class
SIDE = 256
REMEMBERED = 1024


class Examples:
    """By class name and number, for one state of the run's classes."""

    def __init__(self, run: TrainedRun):
        self.run = run
        self._found: dict[str, list[Callable[[], bytes]]] = {
            added.name: [partial(self._of_file, file) for file in added.files[:MOST]]
            for added in run.changes.added
        }
        self._add_training_images()
        self.picture = lru_cache(REMEMBERED)(self._picture)

    def addresses(self, name: str) -> list[str]:
        """Where the pictures of a class are served; those that are there at all."""
        number, model = len(self._found.get(name, ())), self.run.model_version
        asked = [{"name": name, "number": i, "model": model} for i in range(number)]
        return [f"/examples?{urlencode(each)}" for each in asked]

    def _picture(self, name: str, number: int) -> bytes | None:
        """A JPEG; None where there is none, or no longer."""
        found = self._found.get(name, ())
        if number >= len(found):
            return None
        try:
            return found[number]()
        except (OSError, UnreadableImage):
            return None

    def _add_training_images(self) -> None:
        try:
            manifest = self.run.manifest
        except UserError:  # the data is gone
            return
        rows, positions = manifest.rows("train"), manifest.positions("train")
        for name, places in rows.reset_index(drop=True).groupby("label").indices.items():
            own = self._found.setdefault(str(name), [])
            for place in places[: MOST - len(own)]:
                own.append(self._training_image(str(rows["path"].iloc[place]), int(positions[place])))

    def _training_image(self, path: str, position: int) -> Callable[[], bytes]:
        manifest = self.run.manifest
        if manifest.pack is not None:
            pack = manifest.pack
            return lambda: _jpeg(np.asarray(open_pack(pack).images[position]))
        if manifest.items is not None:
            return lambda: _jpeg(manifest.read(path, SIDE))
        return lambda: small_copy(read_bytes(manifest.root / path), SIDE, path)

    def _of_file(self, file: str) -> bytes:
        return small_copy(read_bytes(self.run.path / file), SIDE, file)


def _jpeg(pixels: np.ndarray) -> bytes:
    with io.BytesIO() as file:
        Image.fromarray(pixels).save(file, "JPEG", quality=85)
        return file.getvalue()
