"""A new class from a few images, without training: one row of the classifier, the others as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from oltr.console import console
from oltr.errors import UserError
from oltr.openworld.agreement import Disagreement, disagreements
from oltr.openworld.change_classes import signed
from oltr.openworld.class_names import checked_new_name, known_class
from oltr.openworld.class_row import class_row
from oltr.openworld.kept_images import Picture, copied, digest_of
from oltr.runs.given_images import Given, decoded, each_image
from oltr.runs.history import CollectedImage
from oltr.runs.predict import as_images
from oltr.runs.split_outputs import compute_outputs
from oltr.runs.stale_report import note_changes
from oltr.runs.trained_run import TrainedRun
from oltr.wording import count


@dataclass(frozen=True)
class AddedFrom:
    """What came of adding a class."""

    name: str
    images: int
    action: int  # its number in the history
    warnings: tuple[Disagreement, ...]


@dataclass(frozen=True, eq=False)
class NewImages:
    """Images of a class to be added: n of them."""

    images: Sequence[Picture]  # as they were given
    paths: list[str]
    digests: list[str]  # of their content, taken before it was looked at
    features: Tensor  # n×D, direct features


def add_class(
    run: TrainedRun, name: str, images: Iterable[Given] | Given, *, more: bool = False
) -> AddedFrom:
    """Let the run know a class from images of it; with `more`, a class that it knows already from more.

    Copies of the images and the action are on disk when this returns; a refused or killed one changed
    nothing.
    """
    name = known_class(run, name) if more else checked_new_name(run, name)
    run.history.check(run.changes.last)
    return learn_class(run, name, read_new(run, images, known_contents(run, name)), more=more)


def learn_class(run: TrainedRun, name: str, new: NewImages, *, more: bool = False, by: str = "") -> AddedFrom:
    """The same from images whose features are at hand, for a name that was checked."""
    warnings = tuple(disagreements(run, name, new.paths, new.features))
    for warning in warnings:
        console.warn(warning.text)
    weight, bias = class_row(run, name, new.features)
    with copied(run.folder.collected, new.images, new.digests) as copies:
        action = run.history.record(
            "add",
            name,
            {"images": len(new.paths)} | ({"more": True} if more else {}) | signed(by),
            after=run.changes.last,
            weight=weight.numpy(),
            bias=float(bias),
            images=lambda: list(map(CollectedImage, new.paths, copies.put(), new.features.numpy())),
        )
    run.reread_classes()
    note_changes(run)
    return AddedFrom(name, len(new.paths), action, warnings)


def read_new(
    run: TrainedRun, images: Iterable[Given] | Given, known: frozenset[str] = frozenset()
) -> NewImages:
    """The images' features; one that cannot be read is refused, of equal files one is taken, of those whose
    content is known none. One file at a time is held in memory."""
    given = each_image(images)
    if not given:
        raise UserError("There are no images to learn the class from.")
    digests = [digest_of(image) for image in given]
    first = {digest or row: row for row, digest in reversed(list(enumerate(digests)))}
    rows = sorted(row for content, row in first.items() if content not in known)
    if not rows:
        raise UserError("The class was learned from these images already.")
    if len(rows) < len(given):
        console.say(f"{count(len(given) - len(rows), 'image')} given twice: counted once")
    given = [given[row] for row in rows]
    names: list[str] = []
    problems: list[str] = []
    parts: list[Tensor] = []
    with console.progress("reading images") as progress:
        for some in decoded(given, run.config.data.frame):
            names += some.names
            problems += some.problems
            if some.pixels is not None and not any(problems):
                parts.append(compute_outputs(run.as_trained, as_images(some.pixels)).features)
            progress(len(names), len(given))
    if broken := [f"  {n or 'an image'}: {p}" for n, p in zip(names, problems, strict=True) if p]:
        what = f"{count(len(broken), 'image')} of {len(names)} cannot be read."
        raise UserError(what, "\n".join(broken[:5]), "the same without them")
    features = torch.cat(parts)
    if not bool(features.isfinite().all()):
        raise UserError("The network's output for these images is NaN or infinite.")
    return NewImages(given, names, [digests[row] for row in rows], features)


def known_contents(run: TrainedRun, name: str) -> frozenset[str]:
    """Digests of the images that a class was added from."""
    files = [file for added in run.changes.added if added.name == name for file in added.files]
    return frozenset(Path(file).stem for file in files)
