"""A new class from a few images, without training: one row of the classifier, the others as they are."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from oltr.console import console
from oltr.data.images import read_bytes
from oltr.errors import UserError
from oltr.files import atomic_write
from oltr.openworld.agreement import disagreements
from oltr.openworld.class_row import class_row
from oltr.registry import unknown_name
from oltr.runs.given_images import Given, decoded, each_image
from oltr.runs.history import CollectedImage
from oltr.runs.learned_images import content_digest
from oltr.runs.predict import as_images
from oltr.runs.split_outputs import compute_outputs
from oltr.runs.stale_report import note_changes
from oltr.runs.trained_run import TrainedRun
from oltr.wording import count

RESERVED = "unknown"  # the answer for an image of no class


@dataclass(frozen=True)
class AddedFrom:
    """What came of adding a class."""

    name: str
    images: int
    action: int  # its number in the history
    warnings: tuple[str, ...]  # images that do not agree, with the evidence


@dataclass(frozen=True, eq=False)
class NewImages:
    """Images of a class to be added."""

    paths: list[str]
    features: Tensor  # n×D, direct features
    contents: list[bytes]  # the files' bytes


def add_class(
    run: TrainedRun, name: str, images: Iterable[Given] | Given, *, more: bool = False
) -> AddedFrom:
    """Let the run know a class from images of it; with `more`, a class that it knows already from more."""
    name = checked_new_name(run, name, more)
    new = read_new(run, images, _known_contents(run, name))
    warnings = tuple(disagreements(run, name, new.paths, new.features))
    for warning in warnings:
        console.warn(warning)
    weight, bias = class_row(run, name, new.features)
    kept = [_keep(run, path, content) for path, content in zip(new.paths, new.contents, strict=True)]
    columns = zip(new.paths, kept, new.features.numpy(), strict=True)
    action = run.history.record(
        "add",
        name,
        {"images": len(new.paths)} | ({"more": True} if more else {}),
        after=run.changes.last,
        weight=weight.numpy(),
        bias=float(bias),
        images=[CollectedImage(path, copy, feature) for path, copy, feature in columns],
    )
    run.reread_classes()
    note_changes(run)
    return AddedFrom(name, len(new.paths), action, warnings)


def checked_new_name(run: TrainedRun, name: str, more: bool = False) -> str:
    """A name for a class, refused where it is taken; with `more`, where it is not."""
    name = name.strip()
    if not name or name == RESERVED or any(not letter.isprintable() for letter in name):
        raise UserError(f"{name!r} is no name for a class.", try_this="a word for what the images show")
    if more and name not in run.class_names:
        raise unknown_name("class", name, run.class_names)
    if not more and name in run.class_names:
        raise UserError(
            f"The run knows a class {name!r} already.", try_this="--more to add images to it, or another name"
        )
    return name


def read_new(
    run: TrainedRun, images: Iterable[Given] | Given, known: frozenset[str] = frozenset()
) -> NewImages:
    """The images' features; one that cannot be read is refused, of equal files one is taken, of those whose
    content is known none."""
    names: list[str] = []
    problems: list[str] = []
    parts: list[Tensor] = []
    given = each_image(images)
    for some in decoded(given, run.config.data.frame):
        names += some.names
        problems += some.problems
        if some.pixels is not None and not any(problems):
            parts.append(compute_outputs(run.as_trained, as_images(some.pixels)).features)
    if not names:
        raise UserError("There are no images to learn the class from.")
    if broken := [f"  {n or 'an image'}: {p}" for n, p in zip(names, problems, strict=True) if p]:
        what = f"{count(len(broken), 'image')} of {len(names)} cannot be read."
        raise UserError(what, "\n".join(broken[:5]), "the same without them")
    features = torch.cat(parts)
    if not bool(features.isfinite().all()):
        raise UserError("The network's output for these images is NaN or infinite.")
    contents = [_content(image) for image in given]
    rows = list({content: row for row, content in reversed(list(enumerate(contents)))}.values())[::-1]
    rows = [row for row in rows if content_digest(contents[row]) not in known]
    if not rows:
        raise UserError("The class was learned from these images already.")
    if len(rows) < len(names):
        console.say(f"{count(len(names) - len(rows), 'image')} given twice: counted once")
    return NewImages([names[i] for i in rows], features[rows], [contents[i] for i in rows])


def _content(image: Path | Image.Image | np.ndarray) -> bytes:
    """The bytes of its file; of an image in no file, those of a PNG."""
    if isinstance(image, Path):
        return read_bytes(image)
    picture = Image.fromarray(image) if isinstance(image, np.ndarray) else ImageOps.exif_transpose(image)
    with io.BytesIO() as file:
        (picture if picture.mode in ("L", "RGB", "RGBA") else picture.convert("RGB")).save(file, "PNG")
        return file.getvalue()


def _known_contents(run: TrainedRun, name: str) -> frozenset[str]:
    """Digests of the images that a class was added from."""
    files = [file for added in run.changes.added if added.name == name for file in added.files]
    return frozenset(Path(file).stem for file in files)


def _keep(run: TrainedRun, path: str, content: bytes) -> str:
    """A copy of an image below the run folder, named by its content; its relative path."""
    kind = ".png" if content.startswith(b"\x89PNG") else Path(path).suffix.lower()
    place = run.folder.collected / f"{content_digest(content)}{kind}"
    if not place.is_file():
        with atomic_write(place) as part:
            part.write_bytes(content)
    return str(place.relative_to(run.path))
