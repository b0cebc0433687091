"""How far an exported model's answers are from those of its run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from oltr.console import Progress
from oltr.data.pixels import to_pixels
from oltr.errors import UserError
from oltr.export.check_images import CheckImages
from oltr.export.graph import in_float32
from oltr.runs.outputs import Outputs, scored_by
from oltr.runs.predict import as_images
from oltr.runs.split_outputs import compute_outputs

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

TOLERANCE = 1e-4  # of a probability
ON_THE_EDGE = 1e-5  # nearer to a threshold, or to the second class, rounding alone may decide
AT_A_TIME = 64


@dataclass(frozen=True)
class Answers:
    """What was said of n images."""

    probabilities: np.ndarray  # n×K
    values: np.ndarray  # n, the unknown score
    labels: np.ndarray  # n
    unknown: np.ndarray  # n


@dataclass(frozen=True)
class Difference:
    """Of two answers on the same images."""

    images: int
    probability: float  # the largest of any class and image
    unknown_score: float
    same_labels: int  # images of the same class
    same_decisions: int  # and of the same side of the threshold
    on_the_edge: int  # of the others, those that rounding alone decides

    @property
    def equal(self) -> bool:
        """Whether the two may stand for each other."""
        return self.probability <= TOLERANCE and self.same_decisions + self.on_the_edge == self.images

    def __str__(self) -> str:
        edge = f" ({self.on_the_edge} within rounding of the threshold)" if self.on_the_edge else ""
        return (
            f"probabilities differ by at most {self.probability:.1e}, "
            f"decisions are identical for {self.same_decisions} of {self.images}{edge}"
            + (f", labels for {self.same_labels}" if self.same_labels != self.same_decisions else "")
        )


@dataclass(frozen=True)
class Parity:
    """A model in onnxruntime against its run in torch, both in float32 on the CPU, from equal pixels."""

    what: str  # which images
    sizes: str
    difference: Difference
    predict: Difference | None  # of `oltr predict` on this machine where it computes otherwise
    predict_in: str  # how it computes

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self)

    def lines(self) -> list[str]:
        """For people."""
        found = [f"checked on {self.what}, {self.sizes}: {self.difference}"]
        if self.predict is not None:
            found.append(f"`oltr predict` here computes {self.predict_in}: {self.predict}")
        return found


def measure(run: TrainedRun, session: Any, images: CheckImages, progress: Progress) -> Parity:
    """Compare an onnxruntime session with the run that it was exported from."""
    exact, frame = in_float32(run), run.config.data.frame
    found, squares, sizes = [], [], []
    for done, picture in enumerate(images, start=1):
        found.append(in_onnx(session, picture))
        squares.append(to_pixels(Image.fromarray(picture), frame))
        sizes.append(picture.shape[:2])
        progress(done, len(images))
    if not found:
        raise UserError("There are no images to check the model on.", try_this="--check IMAGES")
    theirs, pixels = _joined(found), np.stack(squares)
    ours = in_torch(exact, pixels)
    how = _computes(run)
    return Parity(
        images.what,
        _told(sizes),
        difference(exact, ours, theirs),
        difference(exact, in_torch(run, pixels), theirs) if how else None,
        how,
    )


def in_onnx(session: Any, picture: np.ndarray) -> Answers:
    """What the model says of one picture, H×W×3."""
    names = ["probabilities", "unknown_score", "label_index", "unknown"]
    return Answers(*session.run(names, {"pixels": picture[None]}))


def in_torch(run: TrainedRun, pixels: np.ndarray) -> Answers:
    """What the run says of pictures in its frame, n×S×S×3."""
    parts = []
    for start in range(0, len(pixels), AT_A_TIME):
        outputs: Outputs = compute_outputs(run, as_images(pixels[start : start + AT_A_TIME]))
        probabilities, scored = outputs.probabilities(), scored_by(run.fitted(run.rule.score), outputs)
        unknown = run.rule.rejects(scored.values) | ~outputs.logits.isfinite().all(dim=1)
        parts.append(
            Answers(
                probabilities.numpy(),
                scored.unknown.numpy(),
                probabilities.argmax(dim=1).numpy(),
                unknown.numpy(),
            )
        )
    return _joined(parts)


def difference(run: TrainedRun, ours: Answers, theirs: Answers) -> Difference:
    """Of the run's answers and others."""
    same = (ours.labels == theirs.labels) & (ours.unknown == theirs.unknown)
    best = np.sort(ours.probabilities, axis=1)[:, ::-1]
    tied = best[:, 0] - best[:, 1] < ON_THE_EDGE if best.shape[1] > 1 else np.zeros(len(best), bool)
    scale = max(1.0, abs(run.rule.threshold))
    crossed = np.abs(ours.values - theirs.values) <= ON_THE_EDGE * scale
    edge = ~same & ((ours.labels == theirs.labels) | tied) & crossed
    return Difference(
        len(same),
        float(np.abs(ours.probabilities - theirs.probabilities).max()),
        float(np.abs(ours.values - theirs.values).max()),
        int((ours.labels == theirs.labels).sum()),
        int(same.sum()),
        int(edge.sum()),
    )


def _joined(parts: Iterable[Answers]) -> Answers:
    columns = zip(*(dataclasses.astuple(part) for part in parts), strict=True)
    return Answers(*(np.concatenate(column) for column in columns))


def _computes(run: TrainedRun) -> str:
    """How the run's network computes on this machine, empty where as its exported model does."""
    if run.device.type != "cpu":
        return "on the GPU"
    low = run.config.precision == "bfloat16" or getattr(run.network.backbone, "bfloat16_on_cpu", False)
    return "in bfloat16" if low else ""


def _told(sizes: list[tuple[int, ...]]) -> str:
    """The smallest and the largest picture."""
    least, most = (pick(sizes, key=lambda size: size[0] * size[1]) for pick in (min, max))
    different = len(set(sizes))
    if different == 1:
        return f"all {least[1]} × {least[0]} px"
    return f"{different} sizes from {least[1]} × {least[0]} to {most[1]} × {most[0]} px"
