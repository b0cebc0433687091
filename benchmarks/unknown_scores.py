"""Every score on kept outputs of several networks, beside one of them, with the spread over classes.

    python benchmarks/unknown_scores.py "Flowers-102, split 0=runs/f0" ... --out FILE.json

NAME=FOLDER: FOLDER/outputs holds train, val, test and open.safetensors with features, logits and labels, as a
run folder does once a score has read its training images; those of open may hold `classes`, the true class of
each image. `gain` is the AUROC less that of `--beside`, every class counting alike; `gain_deviation` its
deviation over 300 draws of known and open classes with replacement; `gain_halves` the gain on every other
open class and on the rest. `rejected` and `found` are the shares of known test and of open images beyond the
threshold at 5 % of the known validation images: all of these, or `per_class` of them, drawn 30 times (mean
and deviation); they also give the units of a sum. Rows of other names are kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from record import record
from safetensors.torch import load_file
from torch import Tensor

from oltr.errors import UserError
from oltr.metrics.detection import auroc, detection_error_min
from oltr.openset import SCORES, Score, choose_threshold

DRAWS, THRESHOLD_DRAWS, PER_CLASS, RATE = 300, 30, (1, 2, 5), 0.05
NAMES = [name for name in SCORES if not SCORES[name]().view]
THRESHOLDS = ("softmax", "max-logit", "scale-70+whitened-cosine", "scale-70+spread-cosine")
Side = dict[str, Tensor]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sets", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--beside", default="max-logit+cosine")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = json.loads(asked.out.read_text())["rows"] if asked.out and asked.out.is_file() else []
    for name, folder in (words.split("=", 1) for words in asked.sets):
        found = measured(Path(folder), asked.beside)
        rows = [row for row in rows if row["set"] != name] + [{"set": name, **row} for row in found]
        record(asked.out, rows, torch.device("cpu"), beside=asked.beside, unknown_rate=RATE)
        print(name)
        for row in sorted(found, key=lambda row: -row["auroc"]):
            print(f"{row['score']:34}{row['auroc']:.3f}  {row['gain']:+.3f} ± {row['gain_deviation']:.3f}")


def measured(folder: Path, beside: str) -> list[dict[str, Any]]:
    """A row for each score that these outputs suffice for."""
    sides = {s: load_file(folder / "outputs" / f"{s}.safetensors") for s in ("train", "val", "test", "open")}
    scores = {}
    for name in NAMES:
        try:
            scores[name] = fit(name, sides)
        except UserError:  # reachability without a memory
            continue
    reference = by_class(scores[beside], sides)
    rows = []
    for name, score in scores.items():
        known, unknown = (of(score, sides[side]) for side in ("test", "open"))
        gain = by_class(score, sides) - reference
        rows.append(
            {
                "score": name,
                "auroc": auroc(known, unknown),
                "detection_error_min": detection_error_min(known, unknown),
                "gain": float(gain.mean()),
                "gain_deviation": spread(gain),
                "gain_halves": [float(gain[:, start::2].mean()) for start in range(min(2, gain.shape[1]))],
            }
        )
        if name in THRESHOLDS:
            rows[-1]["thresholds"] = [at_threshold(score, sides, few) for few in (None, *PER_CLASS)]
    return rows


def fit(name: str, sides: dict[str, Side]) -> Score:
    train = sides["train"]
    score = SCORES[name]().fit(train["features"], train["logits"], train["labels"])
    of(score, sides["test"])  # raises where something is missing
    return score.calibrate(*inputs(sides["val"])[:2])


def of(score: Score, side: Side) -> Tensor:
    return score(*inputs(side))


def inputs(side: Side) -> tuple[Tensor, Tensor, Tensor | None]:
    return side["features"], side["logits"], side.get("reachability")


def by_class(score: Score, sides: dict[str, Side]) -> Tensor:
    """The AUROC of each known class's test images and each open class's: K×O."""
    known, unknown = (of(score, sides[side]) for side in ("test", "open"))
    labels, classes = sides["test"]["labels"], sides["open"].get("classes", torch.zeros(len(unknown)))
    table = []
    for one in classes.unique():
        rising = unknown[classes == one].sort().values
        above = sum(torch.searchsorted(rising, known.contiguous(), right=right) for right in (False, True))
        table.append(
            1 - torch.stack([above[labels == k].double().mean() for k in labels.unique()]) / 2 / len(rising)
        )
    return torch.stack(table, dim=1)


def spread(gain: Tensor) -> float:
    random = torch.Generator().manual_seed(0)

    def draw(size: int) -> Tensor:
        return torch.randint(size, (size,), generator=random)

    known, unknown = gain.shape
    return float(torch.stack([gain[draw(known)][:, draw(unknown)].mean() for _ in range(DRAWS)]).std())


def at_threshold(score: Score, sides: dict[str, Side], few: int | None) -> dict[str, Any]:
    """What the threshold at 5 % of the validation images rejects: of all of them, or of a few per class."""
    random, shares = torch.Generator().manual_seed(0), []
    for _ in range(THRESHOLD_DRAWS if few else 1):
        val = drawn(sides["val"], few, random) if few else sides["val"]
        score.calibrate(val["features"], val["logits"])
        known, test, unknown = (score.value(*inputs(side)) for side in (val, sides["test"], sides["open"]))
        threshold = choose_threshold(score, known, RATE)
        shares.append([float(score.is_unknown(side, threshold).double().mean()) for side in (test, unknown)])
    score.calibrate(*inputs(sides["val"])[:2])
    rejected, found = torch.tensor(shares).T
    row = {"per_class": few or "all", "rejected": float(rejected.mean()), "found": float(found.mean())}
    if few is None:
        return row
    return row | {"rejected_deviation": float(rejected.std()), "found_deviation": float(found.std())}


def drawn(side: Side, few: int, random: torch.Generator) -> Side:
    order = torch.randperm(len(side["labels"]), generator=random)
    kept = torch.cat([order[side["labels"][order] == k][:few] for k in side["labels"].unique()])
    return {key: value[kept] for key, value in side.items()}


if __name__ == "__main__":
    main()
