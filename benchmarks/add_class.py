"""New classes from 1, 5 and 20 images: how well they are known, and what that costs the others.

    python benchmarks/add_class.py RUN [RUN ...] --data TEXT [--out FILE] [--known] [--together 5]

The open classes of each run's data, in groups, play classes that turn up: a group is added, class by class,
and the other open classes stay unknown. Of each class twenty images are there to learn from, the others
measure. With --known, classes of the run's own play them instead, measured on validation images: that is how
settings were chosen. `refit` fits a whole linear head to all training images and the new ones.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from record import record
from torch import Tensor

from oltr.metrics.accuracy import mean, per_class_accuracy
from oltr.metrics.detection import auroc
from oltr.nn.extended_head import centred_unit
from oltr.nn.fit_linear import fit_linear
from oltr.openworld.class_row import TAU, class_row
from oltr.runs.class_changes import AddedClass, ClassChanges, fold
from oltr.runs.outputs import OPEN
from oltr.runs.trained_run import TrainedRun

SHOTS, TO_LEARN = (1, 5, 20), 20
Pool = dict[str, Tensor]  # features of each class that plays a new one


def pool_of(run: TrainedRun, known: bool, seed: int) -> tuple[TrainedRun, Pool, str]:
    """The run, the classes that play new ones, and the split that the others are measured on."""
    draw = np.random.default_rng(seed)
    if not known:
        names, features = np.array(run.manifest.open_class_names()), run.outputs["open"].features
        return run, {name: features[draw.permutation(np.flatnonzero(names == name))] for name in sorted(set(names))}, "test"
    common = [k for k in range(len(run.counts)) if run.counts[k] > TO_LEARN]
    chosen = sorted(draw.permutation(common)[:20].tolist())
    train, val = run.own_outputs()["train"], run.own_outputs()["val"]
    pool = {}
    for k in chosen:
        rows = draw.permutation(np.flatnonzero((train.labels == k).numpy()))
        # Images of training measure too: validation images alone are few.
        pool[run.class_names[k]] = torch.cat([train.features[rows], val.features[val.labels == k]])
    rest = [k for k in range(len(run.class_names)) if k not in chosen]
    names = tuple(run.class_names)
    return run.with_changes(ClassChanges(names, tuple(rest), tuple(names[k] for k in rest))), pool, "val"


def added(run: TrainedRun, features: dict[str, Tensor]) -> TrainedRun:
    """The run with those classes added, one after another; its folder is not touched."""
    for name, images in features.items():
        weight, bias = class_row(run, name, images)
        new = AddedClass(name, weight.numpy(), float(bias), images.numpy())
        before = run.changes
        run = run.with_changes(
            ClassChanges(before.trained, before.kept, before.kept_names, (*before.added, new), 1)
        )
    return run


def logits_of(run: TrainedRun, features: Tensor) -> Tensor:
    with torch.inference_mode():
        return run.network.head(features.to(run.device)).logits.cpu()


def refitted(run: TrainedRun, features: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """W, b of a logit-adjusted linear head on all training images and the new ones."""
    train, old = run.own_outputs()["train"], len(run.class_names)
    parts, labels = [train.features], [train.labels]
    for place, images in enumerate(features.values(), start=old):
        parts.append(images)
        labels.append(torch.full((len(images),), place))
    joined = torch.cat(labels)
    counts = torch.bincount(joined, minlength=old + len(features)).float()
    units = centred_unit(torch.cat(parts), run.exemplars.centre)
    weight, bias, _ = fit_linear(units, joined, TAU * (counts / counts.sum()).log())
    return weight, bias


def right(logits: Tensor, labels: Tensor) -> float:
    """Percent named rightly, mean over classes."""
    found = mean(per_class_accuracy(logits.argmax(dim=1), labels, logits.shape[1]))
    assert found is not None
    return 100 * found


def measure(run: TrainedRun, pool: Pool, split: str, group: list[str], shots: int, refit: bool) -> dict[str, float]:
    """One group of classes added from so many images each."""
    learn = {name: pool[name][:shots] for name in group}
    test, old = run.outputs[split], len(run.class_names)
    fresh = torch.cat([pool[name][TO_LEARN:] for name in group])
    labels = torch.cat([torch.full((len(pool[name]) - TO_LEARN,), old + k) for k, name in enumerate(group)])
    unknown = torch.cat([images for name, images in pool.items() if name not in group])
    after = added(run, learn)
    rejects = lambda who, logits: 100 * float(who.rule.rejects(who.fitted(who.rule.score).value(None, logits)).float().mean())  # noqa: E731
    then, now = logits_of(run, unknown), logits_of(after, unknown)
    kept, new = logits_of(after, test.features), logits_of(after, fresh)
    score = after.fitted(after.rule.score)
    row = {
        "new": right(new, labels),
        "old_before": right(test.logits, test.labels),
        "old_after": right(kept, test.labels),
        "auroc_before": 100 * auroc(score(None, test.logits), score(None, then)),
        "auroc_after": 100 * auroc(score(None, torch.cat([kept, new])), score(None, now)),
        "unknown_recall_before": rejects(run, then),
        "unknown_recall_after": rejects(after, now),
        "new_rejected": rejects(after, new),
        "old_rejected_after": rejects(after, kept),
    }
    if refit:
        weight, bias = refitted(run, learn)
        of = lambda features: centred_unit(features, run.exemplars.centre) @ weight.T + bias  # noqa: E731
        row |= {"refit_new": right(of(fresh), labels), "refit_old": right(of(test.features), test.labels)}
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--data", default="")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--together", type=int, default=5)
    parser.add_argument("--no-refit", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for seed, path in enumerate(arguments.runs):
        run, pool, split = pool_of(TrainedRun(path), arguments.known, seed)
        names = list(pool)
        groups = [names[i : i + arguments.together] for i in range(0, len(names), arguments.together)]
        for shots in SHOTS:
            found = [measure(run, pool, split, group, shots, not arguments.no_refit) for group in groups]
            means = {key: round(float(np.mean([each[key] for each in found])), 2) for key in found[0]}
            rows.append({"run": path.name, "method": run.method, "seed": run.config.seed, "images": shots, **means})
            print(rows[-1], flush=True)
            record(arguments.out, rows, data=arguments.data, together=arguments.together, known=arguments.known)
    for shots in SHOTS:
        chosen = [row for row in rows if row["images"] == shots]
        means = {key: round(float(np.mean([row[key] for row in chosen])), 1) for key in chosen[0] if key not in ("run", "method", "seed")}
        print("mean", means)


if __name__ == "__main__":
    main()
