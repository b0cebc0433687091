"""`oltr identify` as a function: samples in, rates by shot and by group out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from oltr.console import console
from oltr.device import best_device
from oltr.errors import UserError
from oltr.identify.images import embedded
from oltr.identify.left_out import warn_of_same, warn_of_trained, warn_of_zeros
from oltr.identify.pseudo_shots import SIMILAR, pseudo_shots
from oltr.identify.question import Question, ask
from oltr.identify.rates import Mates, identified
from oltr.identify.result import Measured, Result
from oltr.identify.samples import GIVEN, Samples, check_widths
from oltr.identify.search import Search
from oltr.runs.trained_run import TrainedRun

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
    question = ask(
        probes,
        gallery,
        by_run=run is not None,
        distractors=distractors,
        train=train,
        shots_from=shots_from,
        shot_similarity=shot_similarity,
        groups=groups,
        by=by,
        mates=mates,
        ranks=ranks,
    )
    if run is not None and train is None:
        known = zip(run.class_names, run.counts, strict=True)
        warn_of_trained(question.probes, {name for name, images in known if images})
    return answer(question, run, embedding=embedding, search=search, device=device)


def answer(
    question: Question,
    run: TrainedRun | None = None,
    *,
    embedding: Embedding | None = None,
    search: Search = "auto",
    device: torch.device | None = None,
) -> Result:
    """The rates of a run, or of features from files; a source that is asked for twice is computed once."""
    done: dict[int, Samples] = {}

    def filled(samples: Samples) -> Samples:
        if id(samples) not in done:
            done[id(samples)] = embedded(samples, run)
        return done[id(samples)]

    asked, parts = filled(question.probes), [filled(part) for part in question.gallery]
    embeddings = _embeddings([asked, *parts], embedding)
    for name in embeddings:
        check_widths([asked, *parts], name)
    for part in (asked, *(each for each in parts if each is not asked)):
        warn_of_zeros(part, embeddings[0])
    if device is None:
        device = best_device()
    shots = None
    if question.shots is not None:
        pair = [filled(each) for each in question.shots]
        shots = _shots(pair, question.shot_similarity, search, device)
    measured: dict[str, Measured] = {}
    for name in embeddings:
        with console.progress(f"searching ({name})") as progress:
            found = identified(
                asked.of(name),
                [part.of(name) for part in parts],
                question.people,
                question.own_rows,
                ranks=question.ranks,
                mates=question.mates,
                search=search,
                device=device,
                progress=progress,
            )
        if not measured:
            warn_of_same(found.same)
        measured[name] = Measured(found, shots, question.groups, question.people[0])
    people = question.people
    return Result(
        measured,
        run=None if run is None else run.name,
        mates=question.mates,
        shot_similarity=question.shot_similarity,
        gallery=len(parts[0]),
        distractors=sum(int((numbers < 0).sum()) for numbers in people[1:]),
        people=int(people[0].max(initial=-1)) + 1,
        people_found=len(np.unique(people[0][question.mated])),
    )


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


def _shots(pair: Sequence[Samples], similar: float, search: Search, device: torch.device) -> np.ndarray:
    """The pseudo-shots of each probe, by the direct feature of the run or by features from files."""
    check_widths(pair, "direct")
    probes, train = (each.of("direct") for each in pair)
    with console.progress("pseudo-shots") as progress:
        return pseudo_shots(probes, train, similar, search, device, progress)
