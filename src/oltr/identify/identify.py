"""`oltr identify` as a function: samples in, rates by shot and by group out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from oltr.console import console
from oltr.errors import UserError
from oltr.identify.groups import groupings
from oltr.identify.images import read_samples
from oltr.identify.left_out import say_left_out, warn_of_shared, warn_of_trained
from oltr.identify.pseudo_shots import SIMILAR, pseudo_shots
from oltr.identify.rates import Mates, identified, mate_pairs
from oltr.identify.result import Measured, Result
from oltr.identify.samples import GIVEN, Samples, check_widths, identities, own_rows
from oltr.identify.search import Search
from oltr.runs.trained_run import TrainedRun
from oltr.wording import count

Embedding = Literal["direct", "meta"]


def identify(
    probes: str | Samples,
    gallery: str | Samples,
    run: TrainedRun | None = None,
    *,
    distractors: str | Samples | None = None,
    train: str | Samples | None = None,
    shots_from: tuple[str, str] | None = None,
    shot_similarity: float = SIMILAR,
    groups: Path | None = None,
    by: Sequence[str] = (),
    embedding: Embedding | None = None,
    mates: Mates = "nearest",
    ranks: Sequence[int] = (1, 5),
    search: Search = "auto",
    device: torch.device | None = None,
) -> Result:
    """Identify probes in a gallery of their mates, other people and distractors; see docs/identify.md."""
    ranks = _checked(ranks, shot_similarity)
    if train is not None and shots_from is not None:
        raise UserError("--train and --shots-from do not go together.", "Both tell the training images.")
    asked = _read(probes, run)
    grouped = groupings(asked, groups, by)
    there = asked if _one_place(probes, gallery) else _read(gallery, run)
    far = None if distractors is None else _read(distractors, run)
    trained = None if train is None else _read(train, run, training=True)
    parts = [there] if far is None else [there, _nobody(far)]
    embeddings = _embeddings([asked, *parts], embedding)
    for name in embeddings:
        check_widths([asked, *parts], name)
    people = identities([asked, *parts])
    pairs = mate_pairs(people[0], people[1], own_rows(asked, there))
    say_left_out(asked, np.isin(np.arange(len(asked)), pairs[0]), grouped)
    _check_others(people[1:], mates)
    warn_of_trained(asked, run, trained)
    if far is not None:
        warn_of_shared(asked, far)
    if device is None:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    shots = _shots(asked, trained, shots_from, shot_similarity, embeddings[0], search, device)
    measured = {}
    for name in embeddings:
        with console.progress(f"searching ({name})", "blocks") as progress:
            found = identified(
                asked.of(name),
                [part.of(name) for part in parts],
                people,
                pairs,
                ranks=ranks,
                mates=mates,
                search=search,
                device=device,
                progress=progress,
            )
        measured[name] = Measured(found, shots, grouped)
    return Result(
        measured,
        run=None if run is None else run.name,
        mates=mates,
        shot_similarity=shot_similarity,
        gallery=len(there),
        distractors=sum(int((numbers < 0).sum()) for numbers in people[1:]),
        people=int(people[0].max(initial=-1)) + 1,
        people_found=len(np.unique(people[0][pairs[0]])),
    )


def _checked(ranks: Sequence[int], similarity: float) -> tuple[int, ...]:
    if not ranks or min(ranks) < 1:
        raise UserError(f"--ranks {' '.join(map(str, ranks))} must be 1 or more.")
    if not -1 <= similarity <= 1:
        raise UserError(f"--shot-similarity {similarity} is no cosine: it lies between -1 and 1.")
    return tuple(sorted({1, *ranks}))


def _check_others(gallery: Sequence[np.ndarray], mates: Mates) -> None:
    """Refuse a gallery in which a mate has nobody beside it."""
    there = np.unique(np.concatenate([np.unique(part) for part in gallery]))
    if -1 not in there and (mates == "each" or len(there) < 2):
        raise UserError(
            "Beside the mates nobody is in the gallery.",
            "With --mates each these are people who are no probes." if mates == "each" else "",
            "--distractors SOURCE",
        )


def _read(source: str | Samples, run: TrainedRun | None, training: bool = False) -> Samples:
    return source if isinstance(source, Samples) else read_samples(source, run, training)


def _one_place(probes: str | Samples, gallery: str | Samples) -> bool:
    if isinstance(probes, Samples) or isinstance(gallery, Samples):
        return probes is gallery
    return Path(probes).expanduser().absolute() == Path(gallery).expanduser().absolute()


def _nobody(samples: Samples) -> Samples:
    """The same as nobody, whatever they are called."""
    return Samples(samples.name, samples.features, np.full(len(samples), -1), samples.paths)


def _embeddings(parts: Sequence[Samples], wanted: Embedding | None) -> list[str]:
    """The embeddings to measure, the one for the headline first."""
    there = {name for part in parts for name in part.features if name != GIVEN}
    if not there:
        if wanted is not None:
            raise UserError(f"--embedding {wanted} was given, but all features come from files.")
        return [GIVEN]
    if wanted is None:
        return [name for name in ("meta", "direct") if name in there]
    if wanted not in there:
        raise UserError("The run has no meta-embedding.", "Its method has no memory.", "--embedding direct")
    return [wanted]


def _shots(
    probes: Samples,
    train: Samples | None,
    reference: tuple[str, str] | None,
    similar: float,
    embedding: str,
    search: Search,
    device: torch.device,
) -> np.ndarray | None:
    """The pseudo-shots of each probe, by the direct feature of the run or by features of another network."""
    if reference is not None:
        pair = [read_samples(each, None) for each in reference]
        if len(pair[0]) != len(probes):
            raise UserError(
                f"{pair[0].name} has {count(len(pair[0]), 'feature')} for {count(len(probes), 'probe')}.",
                "The first file of --shots-from has a row for each probe, in their order.",
            )
        name = GIVEN
    elif train is not None:
        pair, name = [probes, train], embedding if embedding == GIVEN else "direct"
    else:
        return None
    check_widths(pair, name)
    with console.progress("pseudo-shots", "blocks") as progress:
        return pseudo_shots(pair[0].of(name), pair[1].of(name), similar, search, device, progress)
