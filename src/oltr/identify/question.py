"""What identification is asked: who in which gallery, checked before any feature is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from oltr.errors import UserError
from oltr.identify.groups import Grouping, groupings
from oltr.identify.images import list_samples
from oltr.identify.left_out import say_left_out, warn_of_shared, warn_of_trained
from oltr.identify.mates import mate_counts
from oltr.identify.pseudo_shots import SIMILAR
from oltr.identify.rates import Mates
from oltr.identify.samples import GIVEN, Samples, check_widths, identities, own_rows
from oltr.wording import count


@dataclass(frozen=True, eq=False)
class Question:
    """Probes and the parts of a gallery, who they are, and how they are to be compared.

    The parts are images with mates, then distractors if there are any. `shots` are probes and training
    images, by features of another network if these come from files.
    """

    probes: Samples
    gallery: list[Samples]
    people: list[np.ndarray]  # an identity number for each probe, then each row of each part; < 0: nobody
    own_rows: np.ndarray  # the row of the first part that is the probe itself; −1: none
    mated: np.ndarray  # whether a probe has a mate
    groups: list[Grouping]
    shots: tuple[Samples, Samples] | None
    shot_similarity: float
    mates: Mates
    ranks: tuple[int, ...]


def ask(
    probes: str | Samples,
    gallery: str | Samples,
    *,
    by_run: bool,
    distractors: str | Samples | None = None,
    train: str | Samples | None = None,
    shots_from: tuple[str, str] | None = None,
    shot_similarity: float = SIMILAR,
    groups: Path | None = None,
    by: Sequence[str] = (),
    mates: Mates = "nearest",
    ranks: Sequence[int] = (1, 5),
) -> Question:
    """Read the sources and refuse what could not be answered; `by_run`: a run will compute features."""
    ranks = _checked(ranks, shot_similarity)
    if train is not None and shots_from is not None:
        raise UserError("--train and --shots-from do not go together.", "Both tell the training images.")

    asked = _read(probes, by_run)
    grouped = groupings(asked, groups, by)
    there = asked if _one_place(probes, gallery) else _read(gallery, by_run)
    far = None if distractors is None else _read(distractors, by_run)
    shots = _shots_from(asked, shots_from)
    if train is not None:
        shots = asked, _read(train, by_run, training=True)
    parts = [there] if far is None else [there, _nobody(far)]
    check_widths([part for part in (asked, *parts) if GIVEN in part.features], GIVEN)
    people, own = identities([asked, *parts]), own_rows(asked, there)
    # An image without a name in both, which would else be most similar to itself.
    unnamed = np.flatnonzero((people[0] == -1) & (own >= 0) & (people[1][own] == -1))
    people[0][unnamed] = people[1][own[unnamed]] = -2 - np.arange(len(unnamed))
    mated = mate_counts(people[0], people[1], own) > 0
    say_left_out(asked, there, mated, grouped)
    _check_others(people[1:], mates)
    if train is not None and shots is not None:
        warn_of_trained(asked, shots[1].people)
    if far is not None:
        warn_of_shared(asked, far)
    return Question(asked, parts, people, own, mated, grouped, shots, shot_similarity, mates, ranks)


def _read(source: str | Samples, by_run: bool, training: bool = False) -> Samples:
    samples = source if isinstance(source, Samples) else list_samples(source, by_run, training)
    if not len(samples):
        raise UserError(f"{samples.name} is empty.", "It has no features and no labels.")
    return samples


def _checked(ranks: Sequence[int], similarity: float) -> tuple[int, ...]:
    if not ranks or min(ranks) < 1:
        raise UserError(f"--ranks {' '.join(map(str, ranks))} must be 1 or more.")
    if not -1 <= similarity <= 1:
        raise UserError(f"--shot-similarity {similarity} is no cosine: it lies between -1 and 1.")
    return tuple(sorted({1, *ranks}))


def _check_others(gallery: Sequence[np.ndarray], mates: Mates) -> None:
    """Refuse a gallery in which a mate has nobody beside it."""
    there = np.unique(np.concatenate([np.unique(part) for part in gallery]))
    if there.min() >= 0 and (mates == "each" or len(there) < 2):
        raise UserError(
            "Beside the mates nobody is in the gallery.",
            "With --mates each these are people who are no probes." if mates == "each" else "",
            "--distractors SOURCE",
        )


def _one_place(probes: str | Samples, gallery: str | Samples) -> bool:
    if isinstance(probes, Samples) or isinstance(gallery, Samples):
        return probes is gallery
    return Path(probes).expanduser().absolute() == Path(gallery).expanduser().absolute()


def _nobody(samples: Samples) -> Samples:
    """The same as nobody, whatever they are called."""
    return replace(samples, labels=np.full(len(samples), -1))


def _shots_from(probes: Samples, files: tuple[str, str] | None) -> tuple[Samples, Samples] | None:
    """Probes and training images by the features of another network."""
    if files is None:
        return None
    first, second = (_read(each, by_run=False) for each in files)
    if len(first) != len(probes):
        raise UserError(
            f"{first.name} has {count(len(first), 'feature')} for {count(len(probes), 'probe')}.",
            "The first file of --shots-from has a row for each probe, in their order.",
        )
    check_widths([first, second], GIVEN)
    return first, second
