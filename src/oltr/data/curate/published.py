"""Published numbers of the benchmarks, in the form of `stats`, for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Published:
    """Published numbers of a set, and remarks on them."""

    title: str
    facts: Mapping[str, Any]
    remarks: tuple[str, ...] = field(default=())


def _facts(
    images: dict[str, int],
    classes: int,
    largest: int | None = None,
    smallest: int | None = None,
    shots: tuple[int, int, int] | None = None,
) -> dict[str, Any]:
    facts: dict[str, Any] = {"images": images, "classes": classes, "max": largest, "min": smallest}
    if shots is not None:
        facts["shots"] = dict(zip(("many", "medium", "few"), shots, strict=True))
    return {name: value for name, value in facts.items() if value is not None}


IMAGENET_LT = Published(
    "ImageNet-LT",
    _facts({"train": 115_846, "val": 20_000, "test": 50_000, "open": 18_000}, 1000, 1280, 5, (385, 479, 136)),
)
PLACES_SIZE = (
    "The paper says 184.5K training images; the lists its authors released hold 62,500, "
    "and the results since are on those."
)
PLACES_LT_LISTS = Published(
    "Places-LT, the released lists",
    _facts({"train": 62_500, "val": 7_300, "test": 36_500, "open": 6_600}, 365, 4980, 5, (131, 163, 71)),
    (PLACES_SIZE,),
)
PLACES_LT_PAPER = Published(
    "Places-LT, as the paper describes it",
    _facts({"train": 184_500, "val": 7_300, "test": 36_500, "open": 6_600}, 365, 4980, 5),
    (PLACES_SIZE,),
)
SUN_LT = Published("SUN-LT", _facts({"val": 5 * 397, "test": 40 * 397}, 397, 1132, 1))
INATURALIST18 = Published(
    "iNaturalist 2018",
    _facts({"train": 437_513, "test": 24_426}, 8142, 1000, 2, (842, 4076, 3224)),
    ("The official validation images are the test split, as in the literature.",),
)

LIST_SETS = (IMAGENET_LT, PLACES_LT_LISTS, SUN_LT, INATURALIST18)


def recognised(facts: Mapping[str, Any]) -> Published | None:
    """The published set whose training split has these facts, if any."""
    train = facts["images"]["train"]
    for known in LIST_SETS:
        same = all(facts[key] == known.facts[key] for key in ("classes", "max", "min"))
        if same and train == known.facts["images"].get("train", train):
            return known
    return None
