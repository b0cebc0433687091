"""What is said of probes that the rates leave out, or that should not be among them."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np
import torch

from oltr.console import console
from oltr.errors import UserError
from oltr.identify.groups import Grouping
from oltr.identify.samples import Samples
from oltr.wording import count, first_few


def warn_of_trained(probes: Samples, trained: Set[str]) -> None:
    """Say how many people of the probes were trained on, by their names."""
    if both := sorted(probes.people & trained):
        console.warn(f"{_people(len(both))} of the probes in the training images too: {first_few(both)}")


def warn_of_shared(probes: Samples, distractors: Samples) -> None:
    """Say how many people of the probes are called so among the distractors, where they count as others."""
    both = sorted(probes.people & distractors.people)
    if both:
        console.warn(f"{_people(len(both))} of the probes among the distractors too: {first_few(both)}")


def warn_of_same(probes: int) -> None:
    """Say how many probes meet their own feature in the gallery, whatever the files are called."""
    if probes:
        verb = "has" if probes == 1 else "have"
        console.warn(f"{count(probes, 'probe')} {verb} a mate with the very same feature: the same image?")


def warn_of_zeros(samples: Samples, embedding: str) -> None:
    """Say how many features are zeros, as of images in which no face was found."""
    features = samples.of(embedding)
    short = features[torch.linalg.vector_norm(features, dim=1) == 0]  # or so short that float32 has no square
    if zeros := len(short) - int(short.any(dim=1).sum()):
        verb = "is" if zeros == 1 else "are"
        console.warn(f"{count(zeros, 'feature')} of {samples.name} {verb} all zeros, similar to nobody")


def say_left_out(probes: Samples, gallery: Samples, mated: np.ndarray, groups: Sequence[Grouping]) -> None:
    """Say which probes have no mate and which groups no probe; refuse where none has one."""
    absent = sorted(set(probes.labels[~mated & probes.named].astype(str)))
    if not mated.any():
        names = (
            f"{what} are {first_few(sorted(samples.people)) or 'without names'}"
            for what, samples in (("the probes", probes), ("those in the gallery", gallery))
        )
        raise UserError(
            "No probe has a mate in the gallery.",
            f"A mate is another image with the probe's label; {', '.join(names)}.",
            "--gallery with images of the same people, and --distractors for those of others",
        )
    if not mated.all():
        number, verb = int((~mated).sum()), "has" if (~mated).sum() == 1 else "have"
        parts = [f"{_people(len(absent))} absent from the gallery: {first_few(absent)}"] if absent else []
        parts += (
            [f"{count(unnamed, 'probe')} without a name"] if (unnamed := int((~probes.named).sum())) else []
        )
        console.say(
            f"{count(number, 'probe')} of {len(mated):,} {verb} no mate and no part in the ranks "
            f"({'; '.join(parts)}); on them false alarms are counted"
        )
    for each in groups:
        if empty := [name for name, number in each.sizes(mated).items() if not number]:
            console.warn(f"{each.column}: no probe with a mate is in {first_few(empty)}")
        if missing := int(((each.of == "") & mated).sum()):
            console.say(f"{each.column}: {count(missing, 'probe')} in no group")


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number:,} people"
