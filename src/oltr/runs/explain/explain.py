"""Why a trained run names an image as it does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from oltr.data.images import read_image
from oltr.errors import UserError
from oltr.nn.heads import MetaEmbeddingHead, Output
from oltr.openset.moments import class_means
from oltr.runs.class_changes import with_collected
from oltr.runs.explain.attention_maps import recorded_attention
from oltr.runs.explain.explanation import Candidate, Explanation, Missing, Nearest, Strong, Verdict, part
from oltr.runs.explain.infused import Concepts, infused
from oltr.runs.explain.nearest_classes import NearestClasses, nearest_classes
from oltr.runs.explain.score_place import score_place
from oltr.runs.explain.training_sample import TrainingSample, training_sample
from oltr.runs.outputs import Outputs
from oltr.runs.pictures import as_pictures, chosen_images, pictures_of, views_of
from oltr.runs.predict import answers, as_images
from oltr.runs.split_outputs import compute_outputs
from oltr.runs.trained_run import TrainedRun
from oltr.training.at_test import forward_at_test
from oltr.training.precision import autocast

CANDIDATES = 5
_MEANS = {"train": "training", "val": "validation", "test": "test"}


def explain(run: TrainedRun, image: Path) -> Explanation:
    """The verdict on an image file and what led to it, from one pass through the network."""
    if image.is_dir():
        raise UserError(f"{image} is a folder.", "One image is explained at a time.", "an image in it")
    pixels = as_images(read_image(image, run.config.data.frame)[None])
    views = next(views_of(run, pixels))
    with (
        torch.inference_mode(),
        autocast(run.device, run.config.precision),
        recorded_attention(run.network) as maps,
    ):
        said = forward_at_test(run.network, views, run.config.data)
    outputs = _as_outputs(said)
    score = run.fitted(run.rule.score)
    read = compute_outputs(run, pixels, score) if score.view else outputs
    value = float(score.value(*read.inputs)[0])
    unknown = bool(next(answers(run, outputs, read))["unknown"])
    concepts, strongest = _concepts(run, said)
    return Explanation(
        image=str(image),
        run=str(run.path),
        method=run.method,
        picture=as_pictures(views, run.config.data)[0],
        candidates=_candidates(run, outputs),
        verdict=Verdict(unknown, run.rule, value),
        place=part(lambda: score_place(run, value)),
        nearest=part(lambda: _nearest(run, outputs.features[0])),
        concepts=concepts,
        attention=part(maps),
        strongest=strongest,
    )


def _as_outputs(said: Output) -> Outputs:
    outputs = Outputs(
        said.logits, torch.tensor([-1]), said.direct_feature, said.meta_embedding, said.reachability
    )
    if not outputs.logits.isfinite().all():
        raise UserError(
            "The network's outputs are NaN or infinite.", "Its training probably diverged.", "another run"
        )
    return outputs


def _candidates(run: TrainedRun, outputs: Outputs) -> list[Candidate]:
    values, classes = outputs.probabilities()[0].topk(min(CANDIDATES, len(run.class_names)))
    return [
        Candidate(run.class_names[number], value, int(run.counts[number]), str(run.groups[number]))
        for value, number in zip(values.tolist(), classes.tolist(), strict=True)
    ]


def _nearest(run: TrainedRun, direct: Tensor) -> Nearest:
    """The classes next to an image's direct feature (D), with a training image of each."""
    found = _nearest_centres(run, direct)
    examples = part(lambda: _examples(run, found.classes))
    return Nearest(found, [run.class_names[number] for number in found.classes], examples)


def _nearest_centres(run: TrainedRun, direct: Tensor) -> NearestClasses:
    """By the memory's centroids; without a memory, by class means of outputs that were kept."""
    memory = run.added_rows.memory if run.changes else None
    head = run.trained_network.head
    if memory is None and isinstance(head, MetaEmbeddingHead):
        memory = head.meta.memory
    if memory is not None:
        centroids = memory.centroids.detach().float().cpu()
        return nearest_classes(direct, centroids, memory.known.cpu(), "centroids of the memory")
    for split, words in _MEANS.items():
        if split in run.own_outputs():
            features, _, labels = with_collected(run, run.own_outputs()[split])
            means, images = class_means(features, labels, len(run.class_names))
            of = f"class means of the {words} images{', and of those collected' if run.changes.added else ''}"
            return nearest_classes(direct, means, images > 0, of)
    raise UserError("There is no memory, and no outputs are kept of which class means could be taken.")


def _examples(run: TrainedRun, classes: Sequence[int] | np.ndarray) -> np.ndarray:
    """The first training image of each class; of one without any, the first that was collected."""
    rows = dict(zip(*np.unique(run.manifest.labels("train"), return_index=True), strict=True))
    firsts = np.array([rows[number] for number in classes if number in rows], dtype=np.int64)
    own = iter(pictures_of(run, chosen_images(run, "train", firsts)) if len(firsts) else ())
    return np.stack([next(own) if number in rows else _collected(run, number) for number in classes])


def _collected(run: TrainedRun, number: int) -> np.ndarray:
    """The first image that a class was added from."""
    file = run.path / run.changes.added[number - len(run.changes.kept)].files[0]
    return pictures_of(run, as_images(read_image(file, run.config.data.frame)[None]))[0]


def _concepts(run: TrainedRun, said: Output) -> tuple[Concepts | Missing, dict[int, list[Strong]]]:
    """What the memory infuses into an image, and the training images that show these neurons."""
    given = part(lambda: infused(said))
    if isinstance(given, Missing):
        return given, {}
    sample = part(lambda: training_sample(run))
    if isinstance(sample, Missing):
        return Concepts(given, {}, whole=True, missing=sample.why), {}
    paths = run.manifest.rows("train")["path"].tolist()
    strongest = {int(neuron): _strongest(sample, neuron, paths) for neuron in given.neurons[0]}
    return sample.concepts(given), strongest


def _strongest(sample: TrainingSample, neuron: int, paths: list[str]) -> list[Strong]:
    squares = sample.squares(neuron)
    side, peaks = squares.side, sample.found.peaks[neuron].tolist()
    rows = zip(squares.images.tolist(), squares.corners.tolist(), peaks, strict=True)
    return [
        Strong(paths[int(sample.rows[number])], peak, (left, top, left + side, top + side))
        for number, (left, top), peak in rows
    ]
