"""What can be known of a run before it starts: whether its data, rule, network and weights would do."""

from __future__ import annotations

import torch

from oltr.config import RunConfig
from oltr.data.broken import check_readable
from oltr.data.image_access import open_images
from oltr.data.manifest import Manifest
from oltr.runs.rule import check_decision, own_score
from oltr.runs.train_run import as_packed
from oltr.training.build import build_method, build_network
from oltr.training.eval_size import check_eval_size
from oltr.training.teacher import load_teacher
from oltr.training.train import check_method, check_trainable
from oltr.wording import count


def check_run(config: RunConfig, manifest: Manifest) -> list[str]:
    """Refuse a run that could not be trained, and tell what was checked; nothing is downloaded or written."""
    check_trainable(manifest)
    config = as_packed(config, manifest)
    check_decision(config, bool(manifest.sizes()["val"]))
    data = config.data
    open_images(manifest, [], data.frame, data.image_size, torch.device("cpu"))  # the sizes alone
    firsts = list(manifest.table.drop_duplicates("label")["path"])
    check_readable(manifest, firsts)
    method = build_method(config, torch.from_numpy(manifest.train_counts()))
    check_method(method, config.method)
    check_eval_size(config, method.train_counts)
    load_teacher(config, manifest)
    downloads = config.weights == "pretrained"
    build_network(config, method, config.num_stages, weights=None if downloads else config.weights)
    start = "pretrained weights (not downloaded yet)" if downloads else config.weights or "no weights"
    taught = [] if config.distill.teacher is None else [f"the teacher {config.distill.teacher}"]
    return [
        f"the first image of each of {count(len(firsts), 'class')}",
        f"the rejection rule ({config.decision.score or own_score(config)})",
        f"{config.backbone} at {data.image_size} px with {start}",
        *taught,
    ]
