"""The images that a run gets most wrong, small, from its own data where they are still there."""

from __future__ import annotations

from dataclasses import dataclass

from oltr.errors import UserError
from oltr.figures.mistakes import Mistakes, confident_mistakes, open_taken_for_tail, tail_taken_for_open
from oltr.report.loaded_run import LoadedRun
from oltr.report.page.own_images import OwnImages
from oltr.runs.outputs import OPEN

MOST = 12  # images of a kind


@dataclass(frozen=True)
class WorstImage:
    """An image, what it is, what it was taken for, and how sure the network was of its likeliest class."""

    source: str  # a data URI; empty where the file is gone
    path: str
    truth: str
    taken_for: str
    confidence: float
    detail: str  # the score that decided, where it is another


@dataclass(frozen=True)
class WorstImages:
    """Images of one kind of mistake; `none` says why there are none."""

    title: str
    about: str
    images: tuple[WorstImage, ...]
    none: str = ""


def worst_images(run: LoadedRun) -> tuple[list[WorstImages], str]:
    """Three kinds of mistakes, and why there are no thumbnails where there are none."""
    decisions = run.decisions
    missing, own = "", None
    try:
        own = OwnImages(run.manifest())
    except UserError as problem:
        missing = " ".join(part for part in (problem.what, problem.why) if part)
    kinds = [
        (
            confident_mistakes(decisions, MOST),
            "Test images given another known class, the surest first: often wrong labels, or twins.",
            "No test image was given another known class.",
        ),
        (
            tail_taken_for_open(decisions, run.counts, run.shots, MOST),
            "Test images of few-shot classes called unknown, the least familiar first: rare taken for new.",
            "No image of a few-shot class was called unknown.",
        ),
        (
            open_taken_for_tail(decisions, run.counts, run.shots, MOST),
            "Open images given a few-shot class, the most familiar first: new taken for rare.",
            "There are no open images." if run.unseen is None else "No open image got a few-shot class.",
        ),
    ]
    return [_group(run, own, *kind) for kind in kinds], missing


def _group(run: LoadedRun, own: OwnImages | None, found: Mistakes, about: str, none: str) -> WorstImages:
    images = tuple(_image(run, own, found, place) for place in range(len(found.rows)))
    return WorstImages(found.title, about, images, "" if images else none)


def _image(run: LoadedRun, own: OwnImages | None, found: Mistakes, place: int) -> WorstImage:
    row, label, prediction = (int(of[place]) for of in (found.rows, found.labels, found.predictions))
    likeliest = run.class_names[int(found.likeliest[place])]
    source, path, truth = "", f"{found.split} row {row}", "open"
    if own is not None:
        path, truth = own.path(found.split, row), own.label(found.split, row)
        source = own.thumbnail(found.split, row)
    if label != OPEN:
        truth = run.class_names[label]
    return WorstImage(
        source,
        path,
        truth,
        f"unknown (likeliest: {likeliest})" if prediction == OPEN else run.class_names[prediction],
        float(found.confidence[place]),
        "" if found.score == "softmax" else f"{found.score} score {found.values[place]:.3g}",
    )
