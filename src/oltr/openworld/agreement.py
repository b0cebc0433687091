"""Whether the images of a new class look like one class that is not known yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.nn.extended_head import centred_unit
from oltr.openworld.known_images import known_images
from oltr.runs.outputs import OPEN
from oltr.runs.trained_run import TrainedRun
from oltr.wording import count, first_few

SURE = 0.9  # calibrated probability from which an image passes for one of a known class
USUAL = 0.02  # share of known images that are less like the rest of their class than an odd one out


@dataclass(frozen=True)
class Disagreement:
    """A warning, and which of the images give rise to it."""

    text: str  # with the evidence
    rows: tuple[int, ...]


def disagreements(
    run: TrainedRun, name: str, paths: Sequence[str], features: Tensor
) -> Iterator[Disagreement]:
    """Warnings with their evidence: images unlike the others, images that look like a known class."""
    likeness = likeness_to_others(centred_unit(features, run.exemplars.centre))
    if likeness is not None:
        usual = usual_likeness(run, len(paths))
        odd = [row for row in range(len(paths)) if float(likeness[row]) < usual]
        if odd:
            named = [f"{paths[row] or f'image {row + 1}'} ({float(likeness[row]):.2f})" for row in odd]
            verb = "is" if len(odd) == 1 else "are"
            yield Disagreement(
                f"{count(len(odd), 'image')} of {len(paths)} {verb} unlike the others: "
                f"{first_few(named, 5)}. Of known images {100 * (1 - USUAL):.0f} % are at least {usual:.2f} "
                "like the rest of their class.",
                tuple(odd),
            )
    yield from _known_already(run, name, paths, features)


def _known_already(
    run: TrainedRun, name: str, paths: Sequence[str], features: Tensor
) -> Iterator[Disagreement]:
    with torch.inference_mode():
        logits = run.network.head(features.to(run.device)).logits.cpu().double()
    probabilities, labels = (logits / (run.temperature or 1.0)).softmax(dim=1).max(dim=1)
    for number in labels.unique().tolist():
        rows = ((labels == number) & (probabilities >= SURE)).nonzero()[:, 0].tolist()
        if rows and run.class_names[number] != name:
            named = [f"{paths[row] or f'image {row + 1}'} ({float(probabilities[row]):.2f})" for row in rows]
            known = run.class_names[number]
            verb = "looks" if len(rows) == 1 else "look"
            yield Disagreement(
                f"{count(len(rows), 'image')} of {len(paths)} {verb} like the known class {known!r}: "
                f"{first_few(named, 5)}.",
                tuple(rows),
            )


def likeness_to_others(units: Tensor) -> Tensor | None:
    """Cosine of each feature to the mean of the others, n; None for a single one."""
    if len(units) < 2:
        return None
    others = (units.sum(dim=0) - units) / (len(units) - 1)
    return F.cosine_similarity(units, others, dim=1)


def usual_likeness(run: TrainedRun, images: int) -> float:
    """The likeness that all but a few known images have to others of their class, `images` of it together;
    −1 without any."""
    known = known_images(run)
    units = centred_unit(known.features, run.exemplars.centre)
    parts = [likeness_to_others(units[known.labels == number][:images]) for number in known.labels.unique()]
    found = [part for part in parts if part is not None]
    return float(torch.cat(found).quantile(USUAL)) if found else float(OPEN)
