"""COCO JSON with labels of whole images, as COCO Camera Traps has them: annotations without boxes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from oltr.data.heif import SUFFIXES, register_heif
from oltr.data.pack import open_pack
from oltr.files import atomic_write
from oltr.runs.predictions.formats import Predictions

UNKNOWN = "unknown"


def write_coco(predictions: Predictions, out: Path) -> None:
    """Files are named from the folder that `out` is in, where they lie below it; those that failed apart."""
    names = predictions.run.class_names
    other = UNKNOWN if UNKNOWN not in names else f"{UNKNOWN} (none of the classes)"
    # 0 is left out: camera-trap people read it as an empty picture.
    numbers = {name: number for number, name in enumerate([*names, other], start=1)}
    parts = {
        "images": _images(predictions, out.parent),
        "annotations": _annotations(predictions, numbers, other),
        "failures": _failures(predictions, out.parent),
    }
    head = {
        "info": {"description": f"Predictions of {predictions.maker}", "date_created": predictions.begun},
        "licenses": [],
        "categories": [{"id": number, "name": name} for name, number in numbers.items()],
    }
    with atomic_write(out) as part, part.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}"))
        for name, entries in parts.items():
            file.write(f',\n "{name}": [')
            for place, entry in enumerate(entries):
                file.write((",\n  " if place else "\n  ") + json.dumps(entry, ensure_ascii=False))
            file.write("\n ]")
        file.write("\n}\n")


def _numbered(predictions: Predictions) -> Iterator[tuple[int, dict[str, Any]]]:
    return ((number, row) for number, row in enumerate(predictions.rows(), start=1) if not row["error"])


def _images(predictions: Predictions, folder: Path) -> Iterator[dict[str, Any]]:
    pack = predictions.images.pack
    side = open_pack(pack).size if pack is not None else 0
    for number, row in _numbered(predictions):
        width, height = (side, side) if side else _size(row["path"])
        name = predictions.seen_from(folder, row["path"])
        yield {"id": number, "file_name": name, "width": width, "height": height}


def _annotations(predictions: Predictions, numbers: dict[str, int], other: str) -> Iterator[dict[str, Any]]:
    for number, row in _numbered(predictions):
        yield {
            "id": number,
            "image_id": number,
            "category_id": numbers[other if row["unknown"] else row["label"]],
            "score": row["probability"],
            "unknown_score": row["unknown_score"],
            "likeliest_category_id": numbers[row["label"]],
        }


def _failures(predictions: Predictions, folder: Path) -> Iterator[dict[str, Any]]:
    for row in predictions.rows():
        if row["error"]:
            yield {"file_name": predictions.seen_from(folder, row["path"]), "error": row["error"]}


def _size(path: str) -> tuple[int | None, int | None]:
    """Width and height as stored; None for a file that has gone meanwhile."""
    try:
        if Path(path).suffix.lower() in SUFFIXES:
            register_heif()
        with Image.open(path) as image:
            return image.size
    except Exception:  # it was read a moment ago: whatever it is, the label stands
        return None, None
