"""Stages on a frozen backbone: features instead of images, and heads that are fitted without steps."""

from __future__ import annotations

import time

from oltr.console import console
from oltr.data.features import Features, as_features
from oltr.distributed import copy_from_first, rank
from oltr.nn.multilevel import MultilevelBackbone
from oltr.nn.network import Network
from oltr.training.inference import embed_images
from oltr.training.metrics_file import write_metrics
from oltr.training.stage import Run
from oltr.training.validation import validate


def prepare_features(run: Run, network: Network) -> None:
    """Where the backbone is frozen: its statistics, and from here on features in the place of images."""
    backbone = network.backbone
    if not isinstance(backbone, MultilevelBackbone):
        return
    network.to(run.device)
    for split, images in run.images.items():
        if isinstance(images, Features):
            continue
        with console.progress(f"features of {split}") as progress:
            values, _ = embed_images(
                network,
                images,
                run.config.data,
                run.device,
                precision=run.config.precision,
                workers=run.workers,
                progress=progress,
                embed=backbone.describe,
            )
        run.images[split] = as_features(images.labels, values.to(run.device))
    train = run.images["train"]
    assert isinstance(train, Features)
    backbone.fit_statistics(train.values)


def fit_stage(run: Run, number: int, network: Network) -> bool:
    """Fit the head to all training features at once; False where the method learns by steps."""
    if not isinstance(network.backbone, MultilevelBackbone):
        return False
    began = time.perf_counter()
    features, labels = embed_images(
        network, run.images["train"], run.config.data, run.device, precision="float32"
    )
    loss = run.method.fit(network, features.to(run.device), labels.to(run.device))
    if loss is None:
        return False
    copy_from_first(network)
    seconds = time.perf_counter() - began
    measured = validate(network, run.images, run.config, run.method.train_counts, run.device, run.workers)
    row = {"stage": number, "epoch": 1, "lr": 0.0, "loss": loss, **measured}
    row |= {"seconds": round(seconds, 3), "images_per_second": round(len(labels) / seconds, 1)}
    run.history.append(row)
    accuracy = (
        ""
        if measured["overall"] is None
        else f", accuracy {100 * measured['overall']:.1f} % on validation images (mean over classes)"
    )
    console.say(f"stage {number}: head fitted to {len(labels):,} features in {seconds:.1f} s{accuracy}")
    if rank() == 0:
        write_metrics(run.folder.metrics, run.history)
        run.folder.save_weights(run.folder.stage_weights(number), network.state_dict())
    return True
