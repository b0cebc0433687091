"""The images that a run gets most wrong, small, from its own data where they are still there."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from PIL import Image

from oltr.data.images import UnreadableImage
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.figures.run_images import own_data
from oltr.report.page.mistakes import (
    Mistakes,
    confident_mistakes,
    open_taken_for_tail,
    tail_taken_for_open,
)
from oltr.report.page.pictures import data_uri
from oltr.runs.outputs import OPEN
from oltr.runs.trained_run import TrainedRun

MOST = 12  # images of a kind
SIDE = 112  # pixels of a thumbnail; smaller images stay as they are


@dataclass(frozen=True)
class WorstImage:
    """An image, what it is, what it was taken for, and how sure the network was of its likeliest class."""

    source: str  # a data URI; empty where the file is gone
    path: str
    truth: str
    taken_for: str
    confidence: float
    detail: str  # the score that decided, where it is another
    answer: str  # the class, or "unknown"


@dataclass(frozen=True)
class WorstImages:
    """Images of one kind of mistake; `none` says why there are none."""

    title: str
    about: str
    images: tuple[WorstImage, ...]
    none: str = ""


def worst_images(run: TrainedRun) -> tuple[list[WorstImages], str]:
    """Three kinds of mistakes, and why there are no thumbnails where there are none."""
    decisions = run.decisions
    missing, own = "", None
    try:
        own = Thumbnails(own_data(run))
    except UserError as problem:
        missing = " ".join(part for part in (problem.what, problem.why) if part)
    kinds = [
        (
            confident_mistakes(decisions, MOST),
            "Test images assigned to another known class, highest confidence first: often wrong labels, or "
            "classes that look alike.",
            "No test image was assigned to another known class.",
        ),
        (
            tail_taken_for_open(decisions, run.groups, MOST),
            "Test images of classes with few training images, the highest unknown score first.",
            "No image of a few-shot class was called unknown.",
        ),
        (
            open_taken_for_tail(decisions, run.groups, MOST),
            "Images of classes that are not in the training data, the lowest unknown score first.",
            "There are no open images." if run.unseen is None else "No open image got a few-shot class.",
        ),
    ]
    return [_group(run, own, *kind) for kind in kinds], missing


def strip(groups: Sequence[WorstImages], most: int = MOST) -> list[WorstImage]:
    """The worst of each kind in turn, for a first look; images whose file is gone are left out."""
    turns = zip_longest(*([image for image in group.images if image.source] for group in groups))
    return [image for turn in turns for image in turn if image is not None][:most]


def _group(run: TrainedRun, own: Thumbnails | None, found: Mistakes, about: str, none: str) -> WorstImages:
    images = tuple(_image(run, own, found, place) for place in range(len(found.rows)))
    return WorstImages(found.title, about, images, "" if images else none)


def _image(run: TrainedRun, own: Thumbnails | None, found: Mistakes, place: int) -> WorstImage:
    row, label, prediction = (int(of[place]) for of in (found.rows, found.labels, found.predictions))
    likeliest = run.class_names[int(found.likeliest[place])]
    source, path, truth = "", f"{found.split} row {row}", "open"
    if own is not None:
        path, truth = own.path(found.split, row), own.label(found.split, row)
        source = own.thumbnail(found.split, row)
    if label != OPEN:
        truth = run.class_names[label]
    answer = "unknown" if prediction == OPEN else run.class_names[prediction]
    return WorstImage(
        source,
        path,
        truth,
        f"unknown (likeliest: {likeliest})" if prediction == OPEN else answer,
        float(found.confidence[place]),
        "" if found.score == "softmax" else f"{found.score} score {found.values[place]:.3g}",
        answer,
    )


class Thumbnails:
    """The images of some splits of a manifest, by their row in the split."""

    def __init__(self, manifest: Manifest, splits: Sequence[str] = ("test", "open")):
        self.manifest = manifest
        self.pack = None if manifest.pack is None else open_pack(manifest.pack).images
        self.rows = {split: manifest.rows(split) for split in splits}
        self.positions = {split: manifest.positions(split) for split in splits}

    def path(self, split: str, row: int) -> str:
        return str(self.rows[split]["path"].iloc[row])

    def label(self, split: str, row: int) -> str:
        return str(self.rows[split]["label"].iloc[row])

    def thumbnail(self, split: str, row: int) -> str:
        """A WebP as data URI; empty where the file cannot be read."""
        if self.pack is not None:
            pixels = np.asarray(self.pack[self.positions[split][row]])
        else:
            try:
                pixels = self.manifest.read(self.path(split, row), SIDE)
            except UnreadableImage:
                return ""
        return small_picture(pixels)


def small_picture(pixels: np.ndarray) -> str:
    """Pixels S×S×3 as a WebP of at most SIDE pixels, in a data URI."""
    picture, file = Image.fromarray(pixels), io.BytesIO()
    if picture.width > SIDE:
        picture = picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, reducing_gap=3.0)
    picture.save(file, "WEBP", quality=85)
    return data_uri(file.getvalue(), "webp")
