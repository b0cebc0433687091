"""A run's own images as thumbnails inside a page."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from oltr.data.images import UnreadableImage
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack
from oltr.report.page.data_uri import data_uri

SIDE = 112  # pixels; smaller images stay as they are


class OwnImages:
    """The test and open images of a manifest, by their row in the split."""

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self.pack = None if manifest.pack is None else open_pack(manifest.pack).images
        self.rows = {split: manifest.rows(split) for split in ("test", "open")}
        self.positions = {split: manifest.positions(split) for split in ("test", "open")}

    def path(self, split: str, row: int) -> str:
        return str(self.rows[split]["path"].iloc[row])

    def label(self, split: str, row: int) -> str:
        return str(self.rows[split]["label"].iloc[row])

    def thumbnail(self, split: str, row: int) -> str:
        """A WebP as data URI; empty where the file cannot be read."""
        if self.pack is not None:
            pixels = np.asarray(self.pack[self.positions[split][row]])
        else:
            try:
                pixels = self.manifest.read(self.path(split, row), SIDE)
            except UnreadableImage:
                return ""
        picture, file = Image.fromarray(pixels), io.BytesIO()
        if picture.width > SIDE:
            picture = picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, reducing_gap=3.0)
        picture.save(file, "WEBP", quality=85)
        return data_uri(file.getvalue(), "webp")
