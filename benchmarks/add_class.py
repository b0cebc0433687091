"""New classes from 1, 5 and 20 images: how well they are known, and what that costs the others.

    python benchmarks/add_class.py RUN [RUN ...] --data TEXT [--out FILE] [--known] [--together 5]

The open classes of each run's data, in groups, play classes that turn up: a group is added, class by class,
and the other open classes stay unknown. Of each class twenty images are there to learn from, the others
measure. With --known, classes of the run's own play them instead, measured on half of the validation images:
that is how settings were chosen. `refit` fits a whole linear head to all training images and the new ones.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
import yaml
from record import record
from torch import Tensor

from oltr.methods.logit_adjusted import Settings
from oltr.metrics.accuracy import mean, per_class_accuracy
from oltr.metrics.detection import auroc
from oltr.nn.extended_head import centred_unit
from oltr.nn.fit_linear import fit_linear
from oltr.openworld.class_row import class_row
from oltr.runs.class_changes import AddedClass, ClassChanges
from oltr.runs.outputs import Outputs
from oltr.runs.trained_run import TrainedRun

SHOTS, TO_LEARN = (1, 5, 20), 20
Pool = dict[str, Tensor]  # features of each class that plays a new one


def pool_of(run: TrainedRun, known: bool, seed: int) -> tuple[TrainedRun, Pool]:
    """The run, and the classes that play new ones."""
    draw = np.random.default_rng(seed)
    if not known:
        names, features = np.array(run.manifest.open_class_names()), run.outputs["open"].features
        rows = {name: draw.permutation(np.flatnonzero(names == name)) for name in sorted(set(names))}
        return run, {name: features[chosen] for name, chosen in rows.items()}
    common = [k for k in range(len(run.counts)) if run.counts[k] > TO_LEARN]
    chosen = sorted(draw.permutation(common)[:20].tolist())
    train, val, test = (run.own_outputs()[split] for split in ("train", "val", "test"))
    pool = {}
    for k in chosen:
        rows = draw.permutation(np.flatnonzero((train.labels == k).numpy()))[:TO_LEARN]
        unseen = [part.features[part.labels == k] for part in (val, test)]
        pool[run.class_names[k]] = torch.cat([train.features[rows], *unseen])
    rest = [k for k in range(len(run.class_names)) if k not in chosen]
    names = tuple(run.class_names)
    return run.with_changes(ClassChanges(names, tuple(rest), tuple(names[k] for k in rest))), pool


def halved(path: Path, folder: Path) -> Path:
    """A copy of a run that measures on every other of its validation images, and knows the rest.

    It does not find its data: what is kept of the images is all there is.
    """
    TrainedRun(path).own_outputs()["train"]
    copy = Path(shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("checkpoints")))
    val = Outputs.load(copy / "outputs/val.safetensors")
    rows = np.argsort(val.labels.numpy(), kind="stable")
    for split, part in (("val", rows[::2]), ("test", rows[1::2])):
        val.subset(part).save(copy / f"outputs/{split}.safetensors")
    facts = yaml.safe_load((copy / "run.yaml").read_text())
    (copy / "run.yaml").write_text(yaml.safe_dump(facts | {"source": str(copy / "nowhere")}))
    return copy


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
    weight, bias, _ = fit_linear(units, joined, Settings.tau * (counts / counts.sum()).log())
    return weight, bias


def rejected(run: TrainedRun, features: Tensor, logits: Tensor) -> float:
    """Percent that the run's rule calls unknown."""
    values = run.fitted(run.rule.score).value(features, logits)
    return 100 * float(run.rule.rejects(values).float().mean())


def right(logits: Tensor, labels: Tensor) -> float:
    """Percent named rightly, mean over classes."""
    found = mean(per_class_accuracy(logits.argmax(dim=1), labels, logits.shape[1]))
    assert found is not None
    return 100 * found


def measure(run: TrainedRun, pool: Pool, group: list[str], shots: int, refit: bool) -> dict[str, float]:
    """One group of classes added from so many images each."""
    learn = {name: pool[name][:shots] for name in group}
    test, old = run.outputs["test"], len(run.class_names)
    fresh = torch.cat([pool[name][TO_LEARN:] for name in group])
    labels = torch.cat([torch.full((len(pool[name]) - TO_LEARN,), old + k) for k, name in enumerate(group)])
    unknown = torch.cat([images for name, images in pool.items() if name not in group])
    after = added(run, learn)
    then, now = logits_of(run, unknown), logits_of(after, unknown)
    kept, new = logits_of(after, test.features), logits_of(after, fresh)
    known, score = torch.cat([test.features, fresh]), after.fitted(after.rule.score)
    row = {
        "new": right(new, labels),
        "old_before": right(test.logits, test.labels),
        "old_after": right(kept, test.labels),
        "auroc_before": 100 * auroc(score(test.features, test.logits), score(unknown, then)),
        "auroc_after": 100 * auroc(score(known, torch.cat([kept, new])), score(unknown, now)),
        "unknown_recall_before": rejected(run, unknown, then),
        "unknown_recall_after": rejected(after, unknown, now),
        "new_rejected": rejected(after, fresh, new),
        "old_rejected_after": rejected(after, test.features, kept),
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
    with tempfile.TemporaryDirectory() as folder:
        for seed, path in enumerate(arguments.runs):
            place = halved(path, Path(folder)) if arguments.known else path
            run, pool = pool_of(TrainedRun(place), arguments.known, seed)
            names = list(pool)
            groups = [names[i : i + arguments.together] for i in range(0, len(names), arguments.together)]
            for shots in SHOTS:
                found = [measure(run, pool, group, shots, not arguments.no_refit) for group in groups]
                means = {key: round(float(np.mean([each[key] for each in found])), 2) for key in found[0]}
                named = {"run": path.name, "method": run.method, "images": shots}
                rows.append(named | means)
                print(rows[-1], flush=True)
                facts = {"data": arguments.data, "together": arguments.together, "known": arguments.known}
                record(arguments.out, rows, **facts)
    for method in dict.fromkeys(row["method"] for row in rows):
        for shots in SHOTS:
            chosen = [row for row in rows if row["images"] == shots and row["method"] == method]
            numbers = [key for key in chosen[0] if key not in ("run", "method", "images")]
            means = {key: round(float(np.mean([row[key] for row in chosen])), 1) for key in numbers}
            print("mean", method, shots, means)


if __name__ == "__main__":
    main()
