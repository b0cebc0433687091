"""`oltr identify`: who is it, among a million."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from oltr.cli.options import By, Json, print_json

Source = Annotated[str, tyro.conf.arg(metavar="SOURCE")]
OptionalSource = Annotated[str | None, tyro.conf.arg(metavar="SOURCE")]
ShotsFrom = Annotated[tuple[str, str] | None, tyro.conf.arg(metavar="PROBES TRAIN")]


def identify(
    probes: Source,
    gallery: Source,
    run: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = None,
    distractors: OptionalSource = None,
    train: OptionalSource = None,
    shots_from: ShotsFrom = None,
    shot_similarity: float = 0.7,
    groups: Path | None = None,
    by: By = (),
    embedding: Literal["direct", "meta"] | None = None,
    mates: Literal["nearest", "each"] = "nearest",
    ranks: Annotated[tuple[int, ...], tyro.conf.arg(metavar="K [K ...]")] = (1, 5),
    search: Literal["auto", "blocks", "faiss"] = "auto",
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    markdown: Annotated[bool, tyro.conf.arg(help="print the table as Markdown")] = False,
    as_json: Json = False,
) -> None:
    """Identify probes in a gallery: how often the right person is among the k most similar images.

    A SOURCE is a folder of identities or a manifest, whose features RUN computes, or a feature file, for
    which no RUN is needed: .npz with `features` and `labels`, or MegaFace's .bin with a .txt of labels.

    Args:
        probes: the images to identify
        gallery: images of the same people and of others; an image is not its own mate
        run: a run folder; may be left out where every SOURCE is a feature file
        distractors: more images for the gallery, of people who are none of the probes
        train: training images or their features: rates by the number of them that are similar to a probe
        shots_from: the same by another network: its features of the probes, in order, and of training images
        shot_similarity: the cosine above which a training image is similar
        groups: a table of groups by path, index or label: rates, gap and worst group of each further column
        by: one of its columns; without --groups a further column of the probes' manifest, or folder; may be
            repeated
        embedding: the direct feature or the meta-embedding; both unless given
        mates: the gallery as it stands, or each mate in turn beside those who are no probes (MegaFace)
        ranks: how many nearest
        search: by matrix products in blocks, or by faiss; auto: faiss if installed and there is no GPU; the
            result is the same
        out: leave identify.json, table.md and, where there are groups, by-group.svg and .png here
    """
    from oltr.files import check_writable
    from oltr.identify.identify import identify as identified
    from oltr.runs.trained_run import TrainedRun

    if out is not None:
        check_writable(out / "identify.json")
    found = identified(
        probes,
        gallery,
        None if run is None else TrainedRun(run),
        distractors=distractors,
        train=train,
        shots_from=shots_from,
        shot_similarity=shot_similarity,
        groups=groups,
        by=by,
        embedding=embedding,
        mates=mates,
        ranks=ranks,
        search=search,
    )
    if out is not None:
        from oltr.console import console
        from oltr.identify.files import write_result

        written = write_result(out, found)
        console.say(f"written: {', '.join([str(out / written[0]), *written[1:]])}")
    if as_json:
        print_json(found.to_dict())
    else:
        print(found.table().markdown() if markdown else found.table().text())
