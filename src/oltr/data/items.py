"""Images of map-style datasets, whose items are pairs of image and label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from oltr.config import Frame
from oltr.data.images import UnreadableImage
from oltr.data.pixels import to_pixels
from oltr.errors import UserError
from oltr.plugins import failure

FORMS = "a PIL image, a uint8 array H×W×3 or H×W, or a tensor 3×H×W (uint8, or float from 0 to 1)"


class Place(NamedTuple):
    """Location of an image: the split of its dataset, the index of the item, and its expected class."""

    split: str
    number: int
    label: str | None  # None: not compared


@dataclass(frozen=True)
class Items:
    """The datasets of a manifest by split ("" for one that is all splits), and each path's place in them."""

    datasets: Mapping[str, Any]
    classes: Mapping[str, list[str] | None]  # of each dataset, where it names them
    places: Mapping[str, Place]

    def picture(self, path: str) -> Image.Image:
        """The image of a path at its own size."""
        split, index, label = self.places[path]
        name = dataset_name(split)
        try:
            image, found = get_item(self.datasets[split], index, name)
            actual = None if label is None else class_name(found, self.classes[split], index, name)
        except UserError as problem:
            reason = " ".join(part.rstrip(".") for part in (problem.what, problem.why) if part)
            raise UnreadableImage(path, reason, problem.try_this) from problem
        if actual != label:
            reason = f"item {index} of {name} has the label {actual!r}, but its list of labels says {label!r}"
            raise UnreadableImage(path, reason, "a dataset whose labels agree")
        try:
            return as_picture(image)
        except ValueError as problem:
            raise UnreadableImage(path, f"the image of item {index} of {name} {problem}", FORMS) from None

    def read(self, path: str | Path, size: int | Frame) -> np.ndarray:
        """The image of a path as uint8 (size, size, 3), scaled as files are."""
        picture = self.picture(str(path))
        try:
            return to_pixels(picture, size)
        except Exception as problem:  # a file that PIL opens only now may be broken in any way
            raise UnreadableImage(path, failure(problem)) from problem


def dataset_name(split: str) -> str:
    """The name of a dataset in messages."""
    return f"the {split} dataset" if split else "the dataset"


def get_item(dataset: Any, index: int, name: str) -> tuple[Any, Any]:
    """One item as image and label; anything else, and an exception of the dataset, is a UserError."""
    try:
        item = dataset[index]
    except Exception as problem:
        raise UserError(f"Item {index} of {name} raised {failure(problem)}.") from problem
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        length = f" of {len(item)}" if isinstance(item, (tuple, list)) else ""
        raise UserError(
            f"Item {index} of {name} is a {type(item).__name__}{length}, not a pair of image and label.",
            try_this="a dataset whose items are (image, label)",
        )
    return item[0], item[1]


def class_name(label: Any, classes: list[str] | None, index: int, name: str) -> str:
    """The class that a label stands for: a name, a number into `classes`, or without these the number."""
    if isinstance(label, (np.generic, np.ndarray, Tensor)) and label.ndim == 0:
        label = label.item()
    what = f"Item {index} of {name} has the label {label!r}."
    if isinstance(label, str) and label.strip():
        return label.strip()
    if not isinstance(label, int):
        raise UserError(what, "A label is a whole number or a name.")
    if label < 0:
        raise UserError(what, "Labels are numbered from 0.", "a dataset `open` for images of no known class")
    if classes is None:
        return str(int(label))
    if label >= len(classes):
        raise UserError(what, f"Its `classes` are {len(classes)}, numbered from 0.")
    return classes[label]


def as_picture(image: Any) -> Image.Image:
    """An item's image as a picture of the same values; a ValueError says what else it is."""
    if isinstance(image, Image.Image):
        return image
    if not isinstance(image, (np.ndarray, Tensor)):
        raise ValueError(f"is a {type(image).__name__}")
    kind = "a tensor" if isinstance(image, Tensor) else "an array"
    form = f"is {kind} {'×'.join(map(str, image.shape))} of {str(image.dtype).removeprefix('torch.')}"
    if isinstance(image, Tensor):
        if image.ndim != 3 or image.shape[0] not in (1, 3) or not image.numel():
            raise ValueError(form)
        image = _bytes(image.detach().cpu(), form).expand(3, -1, -1).permute(1, 2, 0).contiguous().numpy()
    if image.ndim not in (2, 3) or image.shape[2:] not in ((), (3,)) or not image.size:
        raise ValueError(form)
    if image.dtype != np.uint8:
        raise ValueError(form)
    return Image.fromarray(image)


def _bytes(image: Tensor, form: str) -> Tensor:
    """Values from 0 to 1 as 0..255; those of other types stay, and are refused if they are not uint8."""
    if not image.is_floating_point():
        return image
    values = image.float()
    if not (values.isfinite().all() and values.min() >= 0 and values.max() <= 1):
        raise ValueError(f"{form} with values outside of 0 to 1 (without normalisation they are inside)")
    return (255 * values).round().to(torch.uint8)
