"""The JSON that MegaDetector writes and Timelapse reads, version 1.6 of its format.

An image has one detection, the whole picture, as this network looks for no boxes; its classifications are the
likeliest classes. Before those of an unknown image stands `unknown`, with confidence 1: a decision, not a
probability.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from oltr.files import atomic_write
from oltr.runs.predictions.formats import Predictions

VERSION = "1.6"
ANIMAL, WHOLE_PICTURE = "1", [0.0, 0.0, 1.0, 1.0]


def write_timelapse(predictions: Predictions, out: Path) -> None:
    """Files are named from the folder that `out` is in, where they lie below it."""
    names = [*predictions.run.class_names, "unknown"]
    numbers = {name: str(number) for number, name in enumerate(names[:-1])}
    head = {
        "info": {
            "format_version": VERSION,
            "detector": "none",
            "classifier": predictions.maker,
            "classification_completion_time": predictions.begun.replace("T", " ").rstrip("Z"),
        },
        "detection_categories": {ANIMAL: "animal"},
        "classification_categories": {str(number): name for number, name in enumerate(names)},
    }
    with atomic_write(out) as part, part.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}") + ',\n "images": [')
        for place, row in enumerate(predictions.rows()):
            file_seen = {"file": predictions.seen_from(out.parent, row["path"])}
            image = file_seen | _seen(row, numbers, len(numbers))
            file.write((",\n  " if place else "\n  ") + json.dumps(image, ensure_ascii=False))
        file.write("\n ]\n}\n")


def _seen(row: dict[str, Any], numbers: dict[str, str], unknown: int) -> dict[str, Any]:
    if row["error"]:
        return {"failure": row["error"], "detections": None}
    found: list[list[Any]] = [[str(unknown), 1.0]] if row["unknown"] else []
    found += [[numbers[name], share] for name, share in row["top5"].items()]
    return {
        "detections": [{"category": ANIMAL, "conf": 1.0, "bbox": WHOLE_PICTURE, "classifications": found}]
    }
