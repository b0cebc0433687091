"""A tiny long-tailed set and configuration that trains in a second or two."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from oltr.config import RunConfig
from oltr.data.curate.glyphs import make_glyphs
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack, write_pack_from
from oltr.training.configure import configure

# On so little data the recipe's rates let the loss blow up, on one machine or another.
SMALL_STEPS = ("stage1.lr=0.01", "stage1.classifier_lr=0.01", "stage2.lr=0.002", "stage2.classifier_lr=0.01")


def tiny_pack(folder: Path, seed: int = 0, size: int = 32) -> Path:
    """Six known and two open characters, 64 training images, as a pack."""
    glyphs = make_glyphs(
        known=6,
        open_classes=2,
        largest=24,
        smallest=4,
        val_per_class=3,
        test_per_class=4,
        open_per_class=6,
        seed=seed,
        size=size,
    )
    folder.mkdir(parents=True, exist_ok=True)
    return write_pack_from(Manifest.build(glyphs.table, folder), glyphs.images, size, folder / "tiny.pack")


def tiny_manifest(folder: Path, seed: int = 0) -> Manifest:
    return open_pack(tiny_pack(folder, seed)).manifest


def tiny_config(method: str = "oltr", epochs: tuple[int, ...] = (2, 2), **changes) -> RunConfig:
    """The glyphs recipe with batches of 8, in float32."""
    changed = [f"stage{n}.batch_size=8" for n in (1, 2)] + ["precision=float32", *SMALL_STEPS]
    config = configure("glyphs", method, epochs=epochs, changes=changed)
    return dataclasses.replace(config, **changes)
