"""Finished run folders without any training: made-up outputs of images that really are in a pack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack, write_pack_from
from oltr.openset import RejectionRule
from oltr.runs.outputs import Outputs
from oltr.runs.trained_run import TrainedRun
from oltr.training.configure import configure
from oltr.training.run_folder import RunFolder

NAMES = ("ant", "bee", "cat", "dog")
COUNTS = (120, 30, 30, 3)


def made_pack(
    folder: Path,
    names: Sequence[str] = NAMES,
    counts: Sequence[int] = COUNTS,
    *,
    test: int = 6,
    val: int = 4,
    unseen: int = 8,
) -> Path:
    """So many test and validation images of each class and so many open ones, of 8 px."""
    rows = [("train", name) for name, count in zip(names, counts, strict=True) for _ in range(count)]
    rows += [("val", name) for name in names for _ in range(val)]
    rows += [("test", name) for name in names for _ in range(test)]
    rows += [("open", f"new {number % 2}") for number in range(unseen)]
    manifest = _manifest(rows, folder)
    folder.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(0).integers(0, 256, (len(rows), 8, 8, 3), dtype=np.uint8)
    return write_pack_from(manifest, pixels, 8, folder / "made.pack")


def made_run(
    path: Path,
    pack: Path,
    method: str = "plain",
    seed: int = 0,
    sure: float = 3.0,
    rule: RejectionRule | None = None,
) -> Path:
    """A run whose logits favour the right class by `sure`, and open images by nothing."""
    manifest, folder = open_pack(pack).manifest, RunFolder(path)
    config = configure("glyphs", method, seed=seed, changes=["data.stored_size=8", "data.image_size=8"])
    folder.begin(config, manifest, str(pack), torch.device("cpu"))
    random = torch.Generator().manual_seed(seed + 1)
    for split in ("val", "test", "open"):
        labels = torch.from_numpy(manifest.labels(split))
        if len(labels):
            logits = torch.randn(len(labels), len(manifest.classes), generator=random)
            known = labels >= 0
            logits[known, labels[known]] += sure
            features = torch.randn(len(labels), 5, generator=random)
            memory = {"embeddings": features / 2, "reachability": features.norm(dim=1)}
            outputs = Outputs(logits, labels, features, **(memory if method == "oltr" else {}))
            outputs.save(folder.outputs / f"{split}.safetensors")
    folder.finish(12.0)
    TrainedRun(path).keep_rule(rule)
    return path


def _manifest(rows: Sequence[tuple[str, str]], folder: Path) -> Manifest:
    table = pd.DataFrame(
        {"path": f"{number}.png", "label": label, "split": split}
        for number, (split, label) in enumerate(rows)
    )
    return Manifest.build(table, folder)
