"""What a memory of class means adds to a linear head on frozen features, and how it has to be fitted.

    python benchmarks/memory_head.py FLOWERS102 --development C100DEV --out results/memory-head.json

FLOWERS102 is a folder of class folders; of each of three draws 82 classes are known, with 55 down to 3
training images, and every image that is left over measures. They are other draws than those of photos.py:
settings were chosen here, and the result measured there. C100DEV is what `oltr data curate
cifar100-lt-development` wrote, at 128 px, measured on its validation images. Percent, mean over classes,
nothing rejected.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from record import record
from torch import Tensor
from torch.nn import functional as F

from oltr.data.features import Features
from oltr.data.sources import read_source
from oltr.methods.fit_beside_memory import fit_beside_memory
from oltr.methods.logit_adjusted import log_prior
from oltr.methods.other_folds import FOLDS, folds
from oltr.metrics import auroc
from oltr.metrics.accuracy import mean, per_class_accuracy
from oltr.nn import fit_linear
from oltr.nn.multilevel import MultilevelBackbone
from oltr.openset import SCORES
from oltr.openset.whitened_cosine import Directions, cosines, learn_directions
from oltr.training.build import build_backbone
from oltr.training.configure import configure
from oltr.training.features import frozen_features

KNOWN, MOST, LEAST, VALIDATION = 82, 55, 3, 4
TAU, DECAY, ITERATIONS = 1.25, 5e-3, 60
NEAREST = 15.0  # sharpness of the similarity to single training images
PARTS = ("train", "val", "test", "open")


class Split(NamedTuple):
    """Features and labels of one draw; `val` gives scores their units, `test` and `open` measure."""

    features: dict[str, Tensor]
    labels: dict[str, Tensor]


def descriptors(source: Path, size: int, folder: Path) -> dict[str, Features]:
    """What the frozen network says of every image of a source, by split."""
    config = configure("photos-frozen", "oltr2", image_size=size)
    return frozen_features(config, read_source(str(source)), torch.device("cpu"), folder)  # type: ignore[return-value]


def normalised(parts: dict[str, Tensor], labels: dict[str, Tensor]) -> Split:
    """Features of the parts by statistics of the training images, as in a run."""
    backbone = build_backbone(configure("photos-frozen", "oltr2"))
    assert isinstance(backbone, MultilevelBackbone)
    backbone.fit_statistics(parts["train"])
    return Split({name: backbone.normalise(values) for name, values in parts.items()}, labels)


def draw(every: Tensor, classes: np.ndarray, seed: int) -> Split:
    """A long-tailed draw of known classes, all images left over for test; the other classes are open."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(int(classes.max()) + 1)
    sizes = np.round(MOST * (MOST / LEAST) ** (-np.arange(KNOWN) / (KNOWN - 1))).astype(int)
    rows: dict[str, list[int]] = {name: [] for name in PARTS}
    for place, size in enumerate(sizes):
        own = rng.permutation(np.flatnonzero(classes == order[place]))
        size = min(size, len(own) - 3 * VALIDATION)
        rows["val"] += [*own[:VALIDATION]]
        rows["train"] += [*own[VALIDATION : VALIDATION + size]]
        rows["test"] += [*own[VALIDATION + size :]]
    rows["open"] = [*np.flatnonzero(np.isin(classes, order[KNOWN:]))]
    number = torch.from_numpy(np.argsort(order))[torch.from_numpy(classes)]
    labels = {name: number[rows[name]] for name in PARTS[:3]}
    return normalised({name: every[rows[name]] for name in PARTS}, labels)


def development(parts: dict[str, Features]) -> Split:
    """CIFAR-100-LT of training images: a few validation images of a class for units, the others measure."""
    val = parts["val"]
    rng, chosen = np.random.default_rng(0), np.zeros(len(val.labels), dtype=bool)
    for k in np.unique(val.labels):
        chosen[rng.permutation(np.flatnonzero(val.labels == k))[:VALIDATION]] = True
    values = {"train": parts["train"].values, "open": parts["open"].values}
    values |= {"val": val.values[chosen], "test": val.values[~chosen]}
    labels = {"train": parts["train"].labels, "val": val.labels[chosen], "test": val.labels[~chosen]}
    return normalised(values, {name: torch.from_numpy(each).long() for name, each in labels.items()})


def forms(split: Split) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """The logits of every part by every form of the head; of training images those of the fit."""
    train, labels = split.features["train"], split.labels["train"]
    counts = labels.bincount()
    prior = log_prior(counts, TAU)

    def beside(offsets: dict[str, Tensor]) -> dict[str, Tensor]:
        weight, bias, _ = fit_linear(
            train, labels, prior + offsets["train"], decay=DECAY, iterations=ITERATIONS
        )
        return {name: x @ weight.T + bias + offsets[name] for name, x in split.features.items()}

    whole = learn_directions(train, labels, len(counts))
    alike = {name: cosines(x.double(), whole).float() for name, x in split.features.items()}
    linear = beside({name: torch.zeros_like(z) for name, z in alike.items()})
    yield "linear head alone", linear
    for scale in (10.0, 20.0, 40.0):
        fit = fit_beside_memory(train, labels, prior, scale=scale, decay=DECAY, iterations=ITERATIONS)
        logits = {
            name: x @ fit.weight.T + fit.bias + scale * alike[name] for name, x in split.features.items()
        }
        yield f"memory of class means, s = {scale:g}", logits
    yield "the same, images meet means they are part of", beside({k: 20 * z for k, z in alike.items()})
    yield "the same, added after the fit", {k: linear[k] + 20 * z for k, z in alike.items()}
    fold, near = folds(labels), torch.zeros_like(alike["train"])
    for own in (fold == number for number in range(FOLDS)):
        near[own] = nearest(train[own], train[~own], labels[~own], len(counts))
    others = {k: nearest(x, train, labels, len(counts)) for k, x in split.features.items() if k != "train"}
    yield "nearest training features instead", beside(others | {"train": near})


def nearest(x: Tensor, train: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """log mean exp(β(cos − 1)) over each class's training images, after whitening: B×D → B×K."""
    whitening, centre, _ = learn_directions(train, labels, num_classes)
    memory = Directions(whitening, centre, train.double() @ whitening - centre)
    kernel = (NEAREST * (cosines(x.double(), memory) - 1)).exp()
    sums = kernel @ F.one_hot(labels, num_classes).double()
    return (sums / labels.bincount(minlength=num_classes).clamp(min=1) + 1e-7).log().float()


def measured(split: Split, logits: dict[str, Tensor]) -> dict[str, float]:
    """Accuracy over all and few-shot classes, and AUROC by three scores."""
    counts, test = split.labels["train"].bincount(), split.labels["test"]
    accuracy = per_class_accuracy(logits["test"].argmax(dim=1), test, len(counts))
    few = [value for value, count in zip(accuracy, counts, strict=True) if count < 20]
    row = {"overall": 100 * float(mean(accuracy) or 0), "few": 100 * float(np.mean(few))}
    for name in ("max-logit", "scale-70", "scale-70+whitened-cosine"):
        score = SCORES[name]()
        if score.needs_fit:
            score.fit(split.features["train"], logits["train"], split.labels["train"])
            score.calibrate(split.features["val"], logits["val"])
        known, unknown = (score(split.features[part], logits[part]) for part in ("test", "open"))
        row[f"auroc {name}"] = 100 * auroc(known, unknown)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description="A memory of class means beside a linear head.")
    parser.add_argument("flowers", type=Path)
    parser.add_argument("--development", type=Path)
    parser.add_argument("--features", type=Path, default=Path("runs/features"), help="kept between runs")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    parts = descriptors(arguments.flowers, 288, arguments.features)
    every = torch.cat([part.values for part in parts.values()])
    classes = np.concatenate([part.labels for part in parts.values()])
    splits = {f"flowers, draw {seed}": draw(every, classes, seed) for seed in (10, 11, 12)}
    if arguments.development:
        splits["CIFAR-100-LT of training images"] = development(
            descriptors(arguments.development, 128, arguments.features)
        )
    rows = []
    for name, split in splits.items():
        for form, logits in forms(split):
            rows.append({"data": name, "head": form, **measured(split, logits)})
            print(
                *(f"{v:6.1f}" if isinstance(v, float) else f"{v:<46}" for v in rows[-1].values()), flush=True
            )
            record(arguments.out, rows)


if __name__ == "__main__":
    main()
