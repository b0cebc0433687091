"""What `group_accuracy` finds, and reports hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GroupNumbers:
    """One group; None where it has no images of that kind."""

    name: str
    images: int  # known ones
    classes: int  # among them
    accuracy: float | None  # of the known images, whatever their class
    class_mean: float | None  # the mean of the accuracies of its classes
    expected: float | None  # accuracy if each class did as well here as over all groups
    rejected: float | None  # of the known images
    open_images: int
    unknown_recall: float | None  # of the open images
    interval: dict[str, list[float] | None]  # 95 %, of the four numbers above that are measured


@dataclass(frozen=True)
class GroupAccuracy:
    """Groups from the lowest accuracy to the highest, then those without known images.

    `gap` is the accuracy of `best` less that of `worst`, among the groups with `few` known images and more,
    or among all where fewer than two have as many; None where there are not two to compare.
    """

    groups: list[GroupNumbers]
    overall: GroupNumbers
    worst: str | None
    best: str | None
    gap: float | None
    gap_interval: list[float] | None  # 95 %, between these two groups
    gap_by_chance: float | None  # that 95 % of random groups of the same sizes and classes stay below
    few: int
