"""The classifier's row for a new class, beside all classes that a run knows."""

from __future__ import annotations

import dataclasses
import math

import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.methods.logit_adjusted import Settings
from oltr.nn.extended_head import centred_unit
from oltr.nn.fit_rows import fit_rows
from oltr.nn.memory_head import ClassMeans, MemoryHead
from oltr.openset.moments import class_means
from oltr.openworld.known_images import known_images
from oltr.runs.outputs import OPEN
from oltr.runs.trained_run import TrainedRun

TAKEN = 0.0025  # share of validation images, right before, that one new class may take
# What is added to the new logit, for one image and per log of further ones: chosen on known classes that
# played new ones, such that five of them together cost the others one point.
MARGIN, GROWTH = 0.35, 0.15
# The same beside class means of that weight, whose cosine is added to the row afterwards: the row alone may
# be bolder, and the less so the more images the mean is of.
MARGIN_BESIDE_MEANS, GROWTH_BESIDE_MEANS, WEIGHT_OF_MEANS = 2.5, -0.4, 20.0
STRENGTHS = torch.linspace(0, 2, 41)
LOOKED_AT = 4096  # validation images that tell how the run's logits depend on class frequencies


def class_row(run: TrainedRun, name: str, features: Tensor) -> tuple[Tensor, Tensor]:
    """w (D) and b of a class from direct features of its images (n×D), all other rows as they are.

    Of a class that is known already, the images it was learned from join the new ones.
    """
    number = run.class_names.index(name) if name in run.class_names else OPEN
    known = known_images(run)
    own, rest = known.of(number), known.without(number)
    others = [place for place in range(len(run.class_names)) if place != number]
    images = len(features) + (int(run.counts[number]) if number != OPEN else 0)
    usual = max(float(run.counts[others].mean()), 1.0)
    frequencies = torch.from_numpy(run.counts[others].clip(min=1) / usual).float().log()
    everything = torch.cat([rest.features, own.features, features])
    # Known images agree with means that they are part of far more than new ones will. Where the head was
    # fitted beside class means, the row is fitted without them, and that of the new class is added to it
    # afterwards. Means added to a trained head stay in its logits: without them new classes were known less.
    logits = without_class_means(run, everything)[:, others]
    # Beside logits that are too sure of themselves a new row could not be heard.
    scale = max(run.temperature or 1.0, 1.0)
    logits = logits / scale
    units = centred_unit(everything, run.exemplars.centre)
    mean = class_mean(run, name, features)
    share = 0.0 if mean is None else min(mean.scale / WEIGHT_OF_MEANS, 1.0)
    margin = (1 - share) * MARGIN + share * MARGIN_BESIDE_MEANS
    growth = (1 - share) * GROWTH + share * GROWTH_BESIDE_MEANS
    weight, bias = fit_rows(
        units,
        logits + prior_strength(run, others, frequencies, scale) * frequencies,
        torch.cat([rest.labels, torch.full((len(everything) - len(rest.labels),), len(others))]),
        torch.cat([rest.weights, own.weights, torch.ones(len(features))]),
        torch.tensor([Settings.tau * math.log(images / usual) - margin - growth * math.log(images)]),
        within_classes(units[: len(rest.labels)], rest.labels),
    )
    weight, bias = scale * weight[0], scale * bias[0]
    return weight, bias - excess(run, others, weight, bias, mean)


def without_class_means(run: TrainedRun, features: Tensor) -> Tensor:
    """The run's logits without what class means add: N×D → N×K, on the CPU."""
    with torch.inference_mode():
        return run.network.head.without_class_means(features.to(run.device)).cpu()


def class_mean(run: TrainedRun, name: str, features: Tensor) -> ClassMeans | None:
    """The memory of the class with these images (n×D) more, alone; None where the run's head has no means."""
    added = run.changes.with_images(name, features.numpy())
    return run.class_means(dataclasses.replace(run.changes, added=(added,)))


def excess(
    run: TrainedRun, others: list[int], weight: Tensor, bias: Tensor, mean: ClassMeans | None = None
) -> Tensor:
    """By how much the new logit must fall until it takes no more than `TAKEN` of the validation images.

    A network is surer of the images it was trained on than of others: beside those alone, a new class would
    seem to cost nothing.
    """
    if "val" not in run.outputs:
        return torch.zeros(())
    val = run.outputs["val"]
    rows = torch.isin(val.labels, torch.tensor(others))
    best, likeliest = val.logits[rows][:, others].max(dim=1)
    right = torch.tensor(others)[likeliest] == val.labels[rows]
    new = centred_unit(val.features[rows], run.exemplars.centre) @ weight + bias
    if mean is not None:
        new = new + mean(val.features[rows])[:, 0]
    leads = (new - best)[right].sort(descending=True).values
    if not len(leads):
        return torch.zeros(())
    # At least one: a single odd image must not decide.
    place = min(max(TAKEN * int(rows.sum()), 1.0), len(leads) - 1.0)
    before, after = leads[math.floor(place)], leads[math.ceil(place)]
    return (before + (place - math.floor(place)) * (after - before)).clamp(min=0)


def within_classes(units: Tensor, labels: Tensor) -> Tensor:
    """What the images of classes with at least two differ from their means by: N×D, N → R×D."""
    means, counts = class_means(units, labels, int(labels.max()) + 1)
    return (units - means[labels].float())[counts[labels] > 1]


def prior_strength(run: TrainedRun, others: list[int], frequencies: Tensor, scale: float = 1.0) -> float:
    """How much the run's logits z lack of log frequencies: t that makes softmax(z/scale + t log n) likeliest.

    Plain training gives logits that hold the class frequencies (t = 0), balanced training or logit
    adjustment such that do not (about 1). Seen on validation images; without any, 1.
    """
    if "val" not in run.outputs:
        return 1.0
    val = run.outputs["val"]
    numbers = torch.full((len(run.class_names) + 1,), OPEN)
    numbers[others] = torch.arange(len(others))
    labels = numbers[val.labels]  # −1, open, finds the last, which is −1
    rows = (labels != OPEN).nonzero()[:, 0][:LOOKED_AT]
    if not len(rows):
        return 1.0
    logits = val.logits[rows]
    if isinstance(run.trained_network.head, MemoryHead):
        logits = without_class_means(run, val.features[rows])
    labels, logits = labels[rows], logits[:, others].double() / scale
    weights = frequencies.exp()[labels] / torch.bincount(labels, minlength=len(others))[labels]
    shifted = (logits + t * frequencies for t in STRENGTHS)
    losses = [weights.double() @ F.cross_entropy(each, labels, reduction="none") for each in shifted]
    return float(STRENGTHS[torch.stack(losses).argmin()])
