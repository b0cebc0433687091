"""Checkpoints in the layout of the released code, with random weights, and its forward pass, slow."""

from __future__ import annotations

import math
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

WIDTHS = (64, 128, 256, 512)


class Weights(OrderedDict):
    """Random weights under the released names, each behind `module.`."""

    def __init__(self, seed: int = 0):
        super().__init__()
        self.random = torch.Generator().manual_seed(seed)

    def add(self, name: str, *shape: int, deviation: float) -> None:
        self[f"module.{name}"] = deviation * torch.randn(*shape, generator=self.random)

    def conv(self, name: str, outputs: int, inputs: int, kernel: int) -> None:
        self.add(f"{name}.weight", outputs, inputs, kernel, kernel, deviation=(inputs * kernel**2) ** -0.5)

    def linear(self, name: str, outputs: int, inputs: int) -> None:
        self.add(f"{name}.weight", outputs, inputs, deviation=inputs**-0.5)
        self.add(f"{name}.bias", outputs, deviation=0.1)

    def norm(self, name: str, channels: int) -> None:
        for part, middle in (("weight", 1.0), ("bias", 0.1), ("running_mean", 0.0), ("running_var", 1.0)):
            values = torch.rand(channels, generator=self.random) - 0.5
            self[f"module.{name}.{part}"] = middle + 0.2 * values
        self[f"module.{name}.num_batches_tracked"] = torch.tensor(7)


def feature_model(
    blocks: tuple[int, ...] = (1, 1, 1, 1),
    bottleneck: bool = False,
    attention: bool = False,
    fc: bool = False,
    seed: int = 0,
) -> Weights:
    """The weights of `feat_model`."""
    weights, inputs, expansion = Weights(seed), 64, 4 if bottleneck else 1
    weights.conv("conv1", 64, 3, 7)
    weights.norm("bn1", 64)
    for stage, (number, width) in enumerate(zip(blocks, WIDTHS, strict=True), start=1):
        for block in range(number):
            name, outputs = f"layer{stage}.{block}", width * expansion
            kernels = (1, 3, 1) if bottleneck else (3, 3)
            channels = (inputs, width, width) if bottleneck else (inputs, width)
            for part, (kernel, before) in enumerate(zip(kernels, channels, strict=True), start=1):
                after = outputs if part == len(kernels) else width
                weights.conv(f"{name}.conv{part}", after, before, kernel)
                weights.norm(f"{name}.bn{part}", after)
            if block == 0 and (stage > 1 or inputs != outputs):
                weights.conv(f"{name}.downsample.0", outputs, inputs, 1)
                weights.norm(f"{name}.downsample.1", outputs)
            inputs = outputs
    if attention:
        for part in ("g", "theta", "phi"):
            weights.conv(f"modulatedatt.{part}", inputs // 2, inputs, 1)
            weights.add(f"modulatedatt.{part}.bias", inputs // 2, deviation=0.1)
        weights.conv("modulatedatt.conv_mask", inputs, inputs // 2, 1)
        weights.linear("modulatedatt.fc_spatial", 49, 49 * inputs)
    if fc:
        weights.linear("fc_add", 512, inputs)
    return weights


def checkpoint(
    stage: int = 2, classes: int = 5, attention: bool = True, fc: bool = True, **network: Any
) -> dict[str, Any]:
    """What the released code saves at the end of a stage; `network`: see `feature_model`."""
    features = feature_model(attention=attention and stage == 2, fc=fc, **network)
    dims = 512 if fc or not network.get("bottleneck") else 2048
    classifier = Weights(1)
    if stage == 1:
        classifier.linear("fc", classes, dims)
    else:
        classifier.linear("fc_hallucinator", classes, dims)
        classifier.linear("fc_selector", dims, dims)
        classifier.add("cosnorm_classifier.weight", classes, dims, deviation=0.03)
    centroids = torch.rand(classes, dims, generator=torch.Generator().manual_seed(2)) if stage == 2 else None
    best = {"feat_model": OrderedDict(features), "classifier": OrderedDict(classifier)}
    return {
        "epoch": 60,
        "best_epoch": 54,
        "state_dict_best": best,
        "best_acc": 0.356,
        "centroids": centroids,
    }


def write_checkpoint(path: Path, saved: dict[str, Any] | None = None, old_format: bool = False) -> Path:
    """The file; with `old_format` as torch wrote it in 2019."""
    torch.save(saved or checkpoint(), path, _use_new_zipfile_serialization=not old_format)
    return path


def released_forward(saved: dict[str, Any], images: Tensor) -> tuple[Tensor, Tensor]:
    """Direct features and logits of the released code for images, in the images' precision."""
    best = saved["state_dict_best"]
    weights, head = (
        {name.removeprefix("module."): value.to(images.dtype) for name, value in best[part].items()}
        for part in ("feat_model", "classifier")
    )
    x = F.relu(norm(weights, "bn1", F.conv2d(images, weights["conv1.weight"], stride=2, padding=3)))
    x = F.max_pool2d(x, 3, stride=2, padding=1)
    for stage in range(1, 5):
        number = 0
        while f"layer{stage}.{number}.conv1.weight" in weights:
            x = residual(weights, f"layer{stage}.{number}", x, 2 if stage > 1 and number == 0 else 1)
            number += 1
    if "modulatedatt.g.weight" in weights:
        x = torch.stack([modulated(weights, f) for f in x])
    direct = x.mean(dim=(2, 3))
    if "fc_add.weight" in weights:
        direct = F.relu(direct @ weights["fc_add.weight"].T + weights["fc_add.bias"])
    if "fc.weight" in head:
        return direct, direct @ head["fc.weight"].T + head["fc.bias"]
    centroids = saved["centroids"].to(images.dtype)
    return direct, torch.stack([meta_logits(head, centroids, v) for v in direct])


def norm(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    """Batch normalisation by its running statistics."""
    mean, variance, weight, bias = (
        weights[f"{name}.{part}"][:, None, None] for part in ("running_mean", "running_var", "weight", "bias")
    )
    return (x - mean) / torch.sqrt(variance + 1e-5) * weight + bias


def residual(weights: dict[str, Tensor], name: str, x: Tensor, stride: int) -> Tensor:
    """A block of two 3×3 convolutions, or of 1×1, 3×3 and 1×1; the first 3×3 one has the stride."""
    bottleneck, y = f"{name}.conv3.weight" in weights, x
    for part in range(1, 4 if bottleneck else 3):
        kernel = weights[f"{name}.conv{part}.weight"]
        step = stride if part == (2 if bottleneck else 1) else 1
        y = norm(weights, f"{name}.bn{part}", F.conv2d(y, kernel, stride=step, padding=kernel.shape[2] // 2))
        y = y if part == (3 if bottleneck else 2) else F.relu(y)
    if f"{name}.downsample.0.weight" in weights:
        x = norm(
            weights,
            f"{name}.downsample.1",
            F.conv2d(x, weights[f"{name}.downsample.0.weight"], stride=stride),
        )
    return F.relu(x + y)


def modulated(weights: dict[str, Tensor], f: Tensor) -> Tensor:
    """f + MA(f) ⊗ SA(f) of one image, position by position: C×7×7 → C×7×7."""
    positions = f.flatten(1).T  # 49×C

    def part(name: str, v: Tensor) -> Tensor:
        bias = weights.get(f"modulatedatt.{name}.bias")
        mapped = weights[f"modulatedatt.{name}.weight"][:, :, 0, 0] @ v
        return mapped if bias is None else mapped + bias

    keys, values = ([part(name, v) for v in positions] for name in ("phi", "g"))
    scores = weights["modulatedatt.fc_spatial.weight"] @ f.flatten() + weights["modulatedatt.fc_spatial.bias"]
    where, rows = scores.softmax(dim=0), []
    for i, v in enumerate(positions):
        query = part("theta", v)
        shares = torch.stack([query @ key for key in keys]).softmax(dim=0)
        context = sum(share * value for share, value in zip(shares, values, strict=True))
        rows.append(v + where[i] * part("conv_mask", context))
    return torch.stack(rows, dim=1).reshape(f.shape)


def meta_logits(head: dict[str, Tensor], centroids: Tensor, v: Tensor) -> Tensor:
    """The logits of one direct feature: memory, selector, reachability, cosine classifier of scale 16."""
    distances = [math.sqrt(((v - c) ** 2).sum().item()) for c in centroids]
    coefficients = (head["fc_hallucinator.weight"] @ v + head["fc_hallucinator.bias"]).softmax(dim=0)
    memory = sum(o * c for o, c in zip(coefficients, centroids, strict=True))
    selector = torch.tanh(head["fc_selector.weight"] @ v + head["fc_selector.bias"])
    meta = 10 / min(distances) * (v + selector * memory)
    length = meta.norm()
    squashed = length / (1 + length) * meta / length
    return torch.stack([16 * squashed @ (w / w.norm()) for w in head["cosnorm_classifier.weight"]])
