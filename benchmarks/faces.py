"""The whole face protocol on a folder of people: some are trained on, long-tailed, and others are identified.

    python benchmarks/faces.py PEOPLE --out benchmarks/results/faces.json          # PEOPLE/PERSON/IMAGE
    python benchmarks/faces.py PEOPLE --runs runs/faces --seeds 1 --epochs 4 2     # a quick look

People are drawn with a fixed seed: of one half images are kept for training, from all to `--smallest` of them
(exponentially falling); of the other half, three in four are identified: `--enrolled` images of each are in
the gallery, beside all images of the rest, the others are probes. Recipe ms1m-lt made small (and every method
in two stages, the first of which they share), `oltr suite` with several seeds: these are of training, the
people stay the same. Beside it, what is found without a network: pixels, less the mean of their image.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from record import record

from oltr.data.manifest import Manifest
from oltr.data.sources import read_source
from oltr.identify.identify import identify
from oltr.identify.samples import GIVEN, Samples
from oltr.suites.plan import IdentifySources, SuiteOptions
from oltr.suites.run_suite import run_suite

COLUMNS = ("many", "few", "one", "zero", "rank1", "rank5")
SETTINGS = ("backbone", "image_size", "batch_size", "epochs", "smallest", "enrolled", "shot_similarity")
RECIPE = "base: ms1m-lt\n"  # without its published rows, which are of other people
SUITE = """about: people who were not trained on
recipe: {recipe}
identify: {{mates: nearest, shot_similarity: {similar}}}
rows:
  - {{method: plain}}
  - {{method: range}}
  - {{method: oltr}}
  - {{method: oltr, label: "oltr, direct feature", embedding: direct}}
"""


def draw(table: pd.DataFrame, smallest: int, enrolled: int) -> dict[str, pd.DataFrame]:
    """Images for training, probes, gallery and distractors; no person is in training and another."""
    rng = np.random.default_rng(0)
    people = rng.permutation(sorted(set(table["label"])))
    images = {person: rng.permutation(rows["path"]) for person, rows in table.groupby("label")}
    trained, held_out = np.array_split(people, 2)
    asked = held_out[: 3 * len(held_out) // 4]
    most = np.array([len(images[person]) for person in trained])
    sizes = np.rint(most * (smallest / most) ** np.linspace(0, 1, len(trained))).astype(int)
    parts = {
        "train": {person: images[person][:size] for person, size in zip(trained, sizes, strict=True)},
        "probes": {person: images[person][enrolled:] for person in asked},
        "gallery": {person: images[person][:enrolled] for person in asked},
        "distractors": {person: images[person] for person in held_out[len(asked) :]},
    }
    return {
        name: pd.DataFrame(
            [(path, person) for person in part for path in part[person]], columns=["path", "label"]
        )
        for name, part in parts.items()
    }


def write_parts(manifest: Manifest, parts: dict[str, pd.DataFrame], folder: Path) -> dict[str, str]:
    """A manifest each, of one split."""
    files = {}
    for name, rows in parts.items():
        split = "train" if name == "train" else "test"
        Manifest.build(rows.assign(split=split), manifest.root).write(folder / f"{name}.csv")
        files[name] = str(folder / f"{name}.csv")
    return files


def options(asked: argparse.Namespace, files: dict[str, str], folder: Path) -> SuiteOptions:
    """The suite, with the recipe made small."""
    recipe = (folder / "small.yaml").absolute()
    recipe.write_text(RECIPE, encoding="utf-8")
    suite = SUITE.format(recipe=recipe, similar=asked.shot_similarity)
    (folder / "faces.yaml").write_text(suite, encoding="utf-8")
    size = (f"data.image_size={asked.image_size}", f"data.stored_size={asked.image_size}")
    rates = ("lr", "classifier_lr", "memory_lr")
    batch = [f"stage{stage}.batch_size={asked.batch_size}" for stage in (1, 2)]
    batch += [f"stage1.{rate}=0.02" for rate in rates[:2]] + ["stage2.classifier_lr=0.02"]
    batch += [f"stage2.{rate}=0.002" for rate in (rates[0], rates[2])]
    return SuiteOptions(
        name=str(folder / "faces.yaml"),
        source=files["train"],
        seeds=asked.seeds,
        epochs=tuple(asked.epochs),
        changes=(f"backbone={asked.backbone}", *size, *batch),
        out=folder / "suite",
        faces=IdentifySources(files["probes"], files["gallery"], files["distractors"]),
    )


def rows_of(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Mean, deviation and every seed of each row; the sizes of the pseudo-shots."""
    found = []
    for row in values["rows"]:
        seeds = {seed: each["identify"] for seed, each in row["seeds"].items()}
        entry = {"label": row["label"], "method": row["method"]}
        for name in ("mean", "deviation"):
            entry[name] = {key: row[name].get(f"identify.{key}") for key in COLUMNS}
        entry["seeds"] = {seed: {key: each.get(key) for key in COLUMNS} for seed, each in seeds.items()}
        entry["sizes"] = {seed: each["counts"]["by_shot"] for seed, each in seeds.items()}
        found.append(entry)
    return found


def pixels(manifest: Manifest, parts: dict[str, pd.DataFrame], size: int) -> dict[str, Any]:
    """The rates of pixels; pseudo-shots would be of other subsets."""
    asked = []
    for name in ("probes", "gallery", "distractors"):
        rows = [manifest.read(path, size).mean(axis=2).ravel() for path in parts[name]["path"]]
        features = torch.from_numpy(np.array(rows, np.float32))
        labels = parts[name]["label"].to_numpy(dtype=object)
        asked.append(Samples(name, {GIVEN: features - features.mean(dim=1, keepdim=True)}, labels))
    found = identify(*asked[:2], distractors=asked[2]).to_dict()
    return {"label": "pixels", "method": None, "mean": {key: found.get(key) for key in COLUMNS}}


def main() -> None:
    """Draw, train, identify, print, write JSON."""
    parser = argparse.ArgumentParser(description="Faces, end to end.")
    parser.add_argument("source")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--runs", type=Path, help="keep the runs here, and resume")
    parser.add_argument("--data", default="", help="what the images are, in words")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--backbone", default="resnet10")
    parser.add_argument("--image-size", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, nargs="+", default=[40, 20])
    parser.add_argument("--smallest", type=int, default=2)
    parser.add_argument("--enrolled", type=int, default=1, help="images of each person in the gallery")
    parser.add_argument("--shot-similarity", type=float, default=0.9)
    asked = parser.parse_args()
    manifest = read_source(asked.source, flat="test")
    parts = draw(manifest.table, asked.smallest, asked.enrolled)
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.runs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        outcome = run_suite(options(asked, write_parts(manifest, parts, folder), folder))
    print(outcome.text)
    sizes = {name: {"people": part["label"].nunique(), "images": len(part)} for name, part in parts.items()}
    settings = {name: getattr(asked, name) for name in SETTINGS}
    rows = [*rows_of(outcome.values), pixels(manifest, parts, asked.image_size)]
    print(f"pixels: rank 1 {100 * rows[-1]['mean']['rank1']:.2f}")
    record(asked.out, rows, data=asked.data, drawn=sizes, settings={**settings, "mates": "nearest"})


if __name__ == "__main__":
    main()
