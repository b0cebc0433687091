"""Answers by parents: does the precision that was asked for come out on test images, and what of open ones?

    python benchmarks/parents.py RUN RUN RUN --table benchmarks/tables/flowers102-genus-family.csv \
        --out benchmarks/results/parents-flowers102.json

Runs are those of `oltr data longtail FOLDER --imbalance 18 --max 55 --min 3 --open 0.2 --seed S` (for the
10,000 test images of CIFAR-100 --max 70) and `oltr train`. Beside the roll-up: classes alone at the same
precision, a hand-set threshold, and the run's own rejection rule. Then validation and test images are drawn
again from both, calibration, rule and thresholds fitted anew, and the promise is checked on each draw.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from record import record
from torch import Tensor

from oltr.metrics import fit_temperature
from oltr.openset import choose_threshold, rollup
from oltr.runs.parents import Parents, read_parents
from oltr.runs.predict import calibrated
from oltr.runs.trained_run import TrainedRun

PRECISIONS = (0.9, 0.95, 0.99)
BY_HAND = 0.65


def validation_alone(right: np.ndarray, answers: np.ndarray, _: np.ndarray, precision: float) -> np.ndarray:
    """The share of right answers on validation images, taken at its word."""
    return right >= precision * answers - 1e-9


def one_more_wrong(right: np.ndarray, answers: np.ndarray, _: np.ndarray, precision: float) -> np.ndarray:
    """The same as if one more answer had been wrong."""
    return answers - right + 1 <= (1 - precision) * (answers + 1) + 1e-9


CHECKS: dict[str, Callable[..., np.ndarray]] = {
    "as it stands": rollup.keeps_precision,
    "validation images alone": validation_alone,
    "one more wrong": one_more_wrong,
}


def tally(answers: rollup.Answers, truth: Tensor, levels: int) -> list[list[int]]:
    """Answers and right answers by level, unknown last."""
    rows = []
    for level in range(levels):
        here = answers.levels == level
        rows.append([int(here.sum()), int((answers.groups == truth[:, level])[here].sum())])
    return [*rows, [int((answers.levels == rollup.NONE).sum()), 0]]


def beside(answers: rollup.Answers, probabilities: Tensor, lineage: Tensor) -> int:
    """How many answers do not stand above the likeliest class."""
    above = lineage[probabilities.argmax(dim=1)].gather(1, answers.levels.clamp(min=0)[:, None])[:, 0]
    return int(((answers.levels != rollup.NONE) & (answers.groups != above)).sum())


def as_trained(run: TrainedRun, parents: Parents) -> Iterator[dict[str, Any]]:
    """The run as it stands, at each precision, beside what else could be done."""
    probabilities = {split: calibrated(run, run.outputs[split]) for split in ("val", "test", "open")}
    rejected = {split: run.rule.rejects(run.scored(split).values) for split in probabilities}
    labels, lineage = run.outputs["val"].labels, parents.lineage
    levels = lineage.shape[1]
    truth = {
        "test": lineage[run.outputs["test"].labels],
        "open": parents.lineage_of(run.manifest.rows("open")["label"].tolist()),
    }
    few = torch.from_numpy(run.groups == "few")[run.outputs["test"].labels]
    best, _ = rollup.best_groups(probabilities["test"], lineage)
    accuracy = [
        float((best == truth["test"])[truth["test"][:, level] != rollup.NONE, level].double().mean())
        for level in range(levels)
    ]
    nothing = [float("inf")] * (levels - 1)
    for precision in PRECISIONS:
        found = rollup.fit_thresholds(probabilities["val"], labels, lineage, precision, rejected["val"])
        kinds = {"roll-up": found, "classes alone": [found[0], *nothing]}
        if precision == PRECISIONS[0]:  # these do not hang on it
            kinds |= {f"{BY_HAND} by hand": [BY_HAND] * levels, "own rule": [0.0, *nothing]}
        for kind, thresholds in kinds.items():
            answers = {
                split: rollup.roll_up(probabilities[split], lineage, thresholds, rejected[split])
                for split in truth
            }
            rare = rollup.Answers(*(part[few] for part in answers["test"]))
            yield {
                "run": run.name,
                "kind": kind,
                "groups": [len(names) for names in parents.names],
                "accuracy": accuracy,
                "precision": precision if kind in ("roll-up", "classes alone") else None,
                "thresholds": [value if np.isfinite(value) else None for value in thresholds],
                "test": tally(answers["test"], truth["test"], levels),
                "few": tally(rare, truth["test"][few], levels),
                "open": tally(answers["open"], truth["open"], levels),
                # Parents that are not above the likeliest class; answers to images that the rule rejects.
                "beside_likeliest": {
                    split: beside(found, probabilities[split], lineage) for split, found in answers.items()
                },
                "rejected_answered": {
                    split: int((found.levels[rejected[split]] != rollup.NONE).sum())
                    for split, found in answers.items()
                },
                "open_within": int((truth["open"][:, 1:] != rollup.NONE).any(dim=1).sum()),
            }


def drawn(run: TrainedRun, parents: Parents, draws: int) -> Iterator[dict[str, Any]]:
    """Answers by level, and right ones, on each draw of validation and test images."""
    parts = [run.outputs[split] for split in ("val", "test")]
    logits, labels = (torch.cat([getattr(part, name) for part in parts]) for name in ("logits", "labels"))
    values = torch.cat([run.scored(split).values for split in ("val", "test")])
    random, lineage, score = np.random.default_rng(0), parents.lineage, run.fitted(run.rule.score)
    share = len(parts[0]) / len(labels)
    for draw in range(draws):
        val = torch.zeros(len(labels), dtype=torch.bool)
        for number in range(len(lineage)):
            own = np.flatnonzero(labels.numpy() == number)
            val[random.choice(own, round(share * len(own)), replace=False)] = True
        probabilities = (logits.double() / fit_temperature(logits[val], labels[val])).softmax(dim=1)
        rejected = score.is_unknown(
            values, choose_threshold(score, values[val], run.rule.unknown_rate or 0.05)
        )
        for precision in PRECISIONS:
            for name, check in CHECKS.items():
                with mock.patch.object(rollup, "keeps_precision", check):
                    thresholds = rollup.fit_thresholds(
                        probabilities[val], labels[val], lineage, precision, rejected[val]
                    )
                answers = rollup.roll_up(probabilities[~val], lineage, thresholds, rejected[~val])
                found = tally(answers, lineage[labels[~val]], lineage.shape[1])
                yield {"run": run.name, "draw": draw, "check": name, "precision": precision, "test": found}


def summed(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """All draws of a check and precision as one row."""
    for name in CHECKS:
        for precision in PRECISIONS:
            counts = np.array([r["test"] for r in rows if (r["check"], r["precision"]) == (name, precision)])
            answers, right = counts[:, :-1, 0].sum(axis=1), counts[:, :-1, 1].sum(axis=1)
            kept = right[answers > 0] / answers[answers > 0]  # no answer breaks no promise
            yield {
                "check": name,
                "precision": precision,
                "draws": len(counts),
                "test": counts.sum(axis=0).tolist(),
                "short": float((kept < precision).sum() / len(counts)),
            }


def main() -> None:
    """Every run as it stands, then the draws."""
    parser = argparse.ArgumentParser(description="Answers by parents where the class is unsure.")
    parser.add_argument("runs", type=Path, nargs="+", help="run folders")
    parser.add_argument("--table", type=Path, required=True, help="label,parent")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    draws: list[dict[str, Any]] = []
    for path in arguments.runs:
        run = TrainedRun(path)
        parents = read_parents(arguments.table, run.class_names)
        rows += as_trained(run, parents)
        draws += drawn(run, parents, arguments.draws)
    rows += summed(draws)
    record(arguments.out, rows, table=arguments.table.name)
    for row in rows:
        images = sum(count for count, _ in row["test"])
        cells = [f"{100 * n / images:5.1f} {100 * r / max(n, 1):5.1f}" for n, r in row["test"]]
        name = row.get("kind") or row["check"]
        print(f"{row.get('run', 'draws'):<8} {name:<24} {row['precision'] or '':>5}  {' │ '.join(cells)}")


if __name__ == "__main__":
    main()
