"""What a head fitted beside a memory of class means adds to a network trained by steps.

    python benchmarks/memory_after_training.py RUN ... --out benchmarks/results/memory-after-training.json

Each RUN is a finished run of `oltr2` that was trained from images. Its first stage is measured with the
classifier it was trained with, with a linear head fitted to the features of several levels of its backbone,
and with the same beside the memory. Percent: accuracy on test images, mean over classes, nothing rejected;
AUROC of test against open images. Nothing is chosen here. Rows are named after the run's folder;
`--eval-size` measures at another size than the run's.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import torch
from record import record
from torch import Tensor

from oltr.config import RunConfig
from oltr.data.image_access import Images, open_images
from oltr.methods import Method
from oltr.methods.logit_adjusted import log_prior
from oltr.metrics import auroc
from oltr.metrics.accuracy import group_means, per_class_accuracy
from oltr.metrics.shots import shot_groups
from oltr.nn import MultilevelBackbone, fit_linear
from oltr.nn.network import Network
from oltr.openset import SCORES
from oltr.runs.trained_run import TrainedRun
from oltr.training.build import build_method, build_network
from oltr.training.inference import embed_images, forward_batches

CPU = torch.device("cpu")
PARTS = ("train", "val", "test", "open")
UNKNOWN = ("softmax", "max-logit", "scale-70", "scale-70+whitened-cosine")
Outputs = dict[str, tuple[Tensor, Tensor]]  # features N×D and logits N×K of every part


def first_stage(run: TrainedRun, config: RunConfig, method: Method) -> Network:
    """The network as its steps left it."""
    network = build_network(config, method, 1)
    network.load_state_dict(run.folder.load_weights(run.folder.stage_weights(1)))
    return network.eval()


def forms(
    config: RunConfig, method: Method, network: Network, images: dict[str, Images]
) -> Iterator[tuple[str, Outputs]]:
    """Features and logits of every part, by every head."""
    trained = {}
    for part in PARTS:
        outputs = list(forward_batches(network, images[part], config.data, CPU, precision="float32"))
        trained[part] = (
            torch.cat([each.direct_feature for each in outputs]).float(),
            torch.cat([each.logits for each in outputs]).float(),
        )
    yield "as trained", trained

    levels = MultilevelBackbone(network.backbone)
    levels.mirrors = config.data.test_flip
    described = {
        part: embed_images(network, of, config.data, CPU, precision="float32", embed=levels.describe)[0]
        for part, of in images.items()
    }
    levels.fit_statistics(described["train"])
    features = {part: levels.normalise(values) for part, values in described.items()}
    labels, s = torch.from_numpy(images["train"].labels), method.settings
    prior = log_prior(method.train_counts, s.tau)
    weight, bias, _ = fit_linear(features["train"], labels, prior, decay=s.decay, iterations=s.iterations)
    yield "linear head, fitted", {part: (x, x @ weight.T + bias) for part, x in features.items()}

    method.backbone_frozen = True
    fitted = method.build_stage2(network)
    method.fit(fitted, features["train"], labels)
    with torch.inference_mode():
        yield "beside the memory, fitted", {part: (x, fitted.head(x).logits) for part, x in features.items()}


def measured(outputs: Outputs, images: dict[str, Images], counts: Tensor) -> dict[str, float]:
    """Accuracy over all, many-, medium- and few-shot classes, and AUROC by four scores."""
    predicted = outputs["test"][1].argmax(dim=1)
    accuracy = per_class_accuracy(predicted, torch.from_numpy(images["test"].labels), len(counts))
    means = group_means(accuracy, shot_groups(counts.numpy()))
    row = {name: 100 * value for name, value in means.items() if value is not None}
    for name in UNKNOWN:
        score = SCORES[name]()
        if score.needs_fit:
            score.fit(*outputs["train"], torch.from_numpy(images["train"].labels))
            score.calibrate(*outputs["val"])
        row[f"auroc {name}"] = 100 * auroc(score(*outputs["test"]), score(*outputs["open"]))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description="A memory beside the head of a network that was trained.")
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--eval-size", type=int, help="pixels; that of each run unless given")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = []
    for path in arguments.runs:
        run = TrainedRun(path)
        config = dataclasses.replace(run.config, stage2=None)
        if arguments.eval_size is not None:
            config = config.seen_at(arguments.eval_size)
        counts = torch.from_numpy(run.own_data.train_counts())
        method = build_method(config, counts)
        images = open_images(run.own_data, list(PARTS), config.data.frame, config.data.image_size, CPU)
        for head, outputs in forms(config, method, first_stage(run, config, method), images):
            rows.append({"run": path.name, "head": head, **measured(outputs, images, counts)})
            numbers = (f"{v:6.1f}" if isinstance(v, float) else f"{v:<26}" for v in rows[-1].values())
            print(*numbers, flush=True)
            record(arguments.out, rows)


if __name__ == "__main__":
    main()
