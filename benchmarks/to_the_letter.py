"""Old and new forms of what was brought to the letter, trained side by side on a small set of glyphs.

    python benchmarks/to_the_letter.py --out benchmarks/results/to-the-letter.json

*Crops*: a random part that does not fit into the picture is drawn again, as in torchvision, or cut to fit,
the form of all results before 16 November 2026; method plain, recipe glyphs with `crop: resized`. *Schedule*:
the paper's supplement prints one stage, rate 0.1, and a tenth of it after each third of the epochs; beside it
two stages, and one stage at a fifth of the rate; method oltr-paper. Every seed draws glyphs of its own, the
same for all forms: 20 classes of 150 to 8 images and 6 open ones, easier than the demo's, so that 16 epochs
suffice. Pictures are squares, so that stretching them and cropping their longer side are the same here.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from record import record
from torch import Tensor

from oltr.console import console
from oltr.data import augment
from oltr.data.curate.glyph_drawing import Variety
from oltr.data.curate.glyphs import make_glyphs
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack, write_pack_from
from oltr.runs.train_run import train_run
from oltr.training.configure import configure
from oltr.training.options import TrainOptions

EPOCHS = 16
BATCHES = ["stage1.batch_size=16", "stage2.batch_size=16"]
TWO_STAGES = [*BATCHES, "stage1.epochs=12", "stage2.epochs=4", "stage1.lr=0.05", "stage1.classifier_lr=0.05"]
EASIER = Variety(
    height=(0.6, 0.85),
    rotation=10.0,
    shear=0.2,
    contrast=(0.5, 0.7),
    light_ink=1.0,
    texture=(0.1, 0.3),
    scratches=1,
)
CLOSED, OPEN = ("overall", "many", "medium", "few"), ("f_measure", "auroc")


def one_stage(rate: float) -> list[str]:
    """The printed schedule with that rate for all weights."""
    rates = [f"stage2.{name}={rate}" for name in ("lr", "classifier_lr", "memory_lr")]
    drops = f"stage2.lr_milestones={{{EPOCHS // 3}: 0.1, {2 * EPOCHS // 3}: 0.01}}"
    return [*BATCHES, "stage1.epochs=0", f"stage2.epochs={EPOCHS}", "stage2.schedule=step", drops, *rates]


CROPPED = [*TWO_STAGES, "data.crop=resized"]
FORMS: dict[str, tuple[str, list[str]]] = {
    "crops drawn again": ("plain", CROPPED),
    "crops cut to fit": ("plain", CROPPED),
    "two stages": ("oltr-paper", TWO_STAGES),
    "one stage, rate 0.1": ("oltr-paper", one_stage(0.1)),
    "one stage, rate 0.02": ("oltr-paper", one_stage(0.02)),
}


def cut_boxes(draws: Tensor, side: int, smallest: float) -> Tensor:
    """`crop_boxes` as it was: a rectangle of random area and shape, no side longer than the picture's."""
    area = smallest + (1 - smallest) * draws[:, 0]
    shape = torch.exp((2 * draws[:, 1] - 1) * math.log(4 / 3))
    sides = torch.stack([(area * shape).sqrt(), (area / shape).sqrt()], dim=1).clamp(max=1)
    return side * torch.cat([draws[:, 2:4] * (1 - sides), sides], dim=1)


@contextmanager
def form_of_crops(form: str) -> Iterator[None]:
    if form != "crops cut to fit":
        yield
        return
    with mock.patch.object(augment, "crop_boxes", cut_boxes):
        yield


def glyphs(seed: int, folder: Path) -> Path:
    """A small long-tailed set of characters, as a pack."""
    pack = folder / f"glyphs-{seed}.pack"
    if not pack.exists():
        made = make_glyphs(
            known=20,
            open_classes=6,
            largest=150,
            smallest=8,
            val_per_class=5,
            test_per_class=50,
            open_per_class=50,
            seed=seed,
            variety=EASIER,
        )
        write_pack_from(Manifest.build(made.table, folder), made.images, 32, pack)
    return pack


def measured(form: str, seed: int, folder: Path) -> dict[str, Any]:
    """A row: what report.json says, and the loss of the first and the last epoch."""
    method, changes = FORMS[form]
    pack, out = glyphs(seed, folder), folder / f"{form}-{seed}"
    config = configure("glyphs", method, changes=[*changes, f"seed={seed}"])
    with form_of_crops(form), console.silent():
        train_run(config, open_pack(pack).manifest, out, TrainOptions(), str(pack))
    report = json.loads((out / "report.json").read_text())
    losses = [line.split(",")[3] for line in (out / "metrics.csv").read_text().splitlines()[1:]]
    return {
        "form": form,
        "method": method,
        "seed": seed,
        **{f"closed_{name}": report["closed"][name] for name in CLOSED},
        **{f"open_{name}": report["open"][name] for name in OPEN},
        "first_loss": float(losses[0]),
        "last_loss": float(losses[-1]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 0 on")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        for seed in range(asked.seeds):
            for form in FORMS:
                rows.append(measured(form, seed, Path(temporary)))
                record(asked.out, rows, epochs=EPOCHS)
                print(rows[-1], flush=True)
    numbers = [name for name in rows[0] if name not in ("form", "method", "seed")]
    for form in FORMS:
        columns = [[row[name] for row in rows if row["form"] == form] for name in numbers]
        cells = zip(numbers, columns, strict=True)
        print(form, {name: f"{statistics.mean(c):.4f} ± {statistics.stdev(c):.4f}" for name, c in cells})


if __name__ == "__main__":
    main()
