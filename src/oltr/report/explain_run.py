"""Why a trained run names an image as it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from oltr.console import Console
from oltr.data.augment import Augment
from oltr.data.image_access import Images
from oltr.data.images import read_image
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.figures.attention_maps import AttentionMaps, attention_maps
from oltr.figures.explanation import Candidate, Explanation, Missing, Verdict, part
from oltr.figures.score_place import ScorePlace, score_place
from oltr.metrics.shots import shot_groups
from oltr.nn.heads import Output
from oltr.report.explain_parts import OpenRun, concepts, nearest
from oltr.runs.decision import Decision, settle_decision
from oltr.runs.incomplete import no_test_outputs
from oltr.runs.outputs import Outputs
from oltr.runs.predict import predict
from oltr.runs.prepare_score import prepared_score, view_change
from oltr.runs.read_outputs import own_manifest
from oltr.runs.run_outputs import best_device, kept_outputs, load_network
from oltr.runs.views import pictures_of, views_of
from oltr.training.infer import ViewChange, collect_outputs
from oltr.training.precision import autocast
from oltr.training.run_folder import RunFolder

CANDIDATES = 5


class _Seen(NamedTuple):
    """One image on its way through the network."""

    views: Tensor  # 1×3×s×s
    outputs: Outputs  # of the image
    read: Outputs  # those that the score reads
    said: Output  # with the memory's parts


def explain(
    folder: RunFolder,
    image: Path,
    console: Console,
    *,
    manifest: Manifest | None = None,
    score: str | None = None,
    threshold: float | None = None,
    unknown_rate: float | None = None,
) -> Explanation:
    """The verdict on an image file and what led to it; `manifest` is where the run's images are now."""
    _check(folder, image, manifest)
    config = folder.config()
    pixels = read_image(image, config.data.stored_size)
    decision = settle_decision(folder, console, score, threshold, unknown_rate, manifest)
    network, classes = load_network(folder).to(best_device()), folder.classes()
    run = OpenRun(
        folder,
        config,
        network,
        [entry["name"] for entry in classes],
        [entry["train_count"] for entry in classes],
        manifest if manifest is not None else part(lambda: own_manifest(folder)),
        console,
    )
    seen = _look(run, pixels, decision)
    infusion, strongest = concepts(run, seen.said)
    return Explanation(
        image=str(image),
        run=str(folder.path),
        method=config.method,
        picture=pictures_of(seen.views, config.data)[0],
        candidates=_candidates(run, seen.outputs),
        verdict=_verdict(run, image, seen, decision),
        place=part(lambda: _place(run, seen, decision)),
        nearest=part(lambda: nearest(run, seen.outputs.features[0])),
        concepts=infusion,
        attention=part(lambda: _attention(run, seen.views)),
        strongest=strongest,
    )


def _check(folder: RunFolder, image: Path, manifest: Manifest | None) -> None:
    run = folder.run()
    if image.is_dir():
        raise UserError(f"{image} is a folder.", "One image is explained at a time.", "an image in it")
    if manifest is not None and manifest.fingerprint() != run["data"]["fingerprint"]:
        raise UserError(
            "The source holds other images than the run was trained on.",
            "Patches and examples would not be those that the network learned from.",
            "the source of its training, where it is now",
        )


def _look(run: OpenRun, pixels: np.ndarray, decision: Decision) -> _Seen:
    """The same views and passes as `predict` makes of the file."""
    device, config = best_device(), run.config
    image = Images(len(pixels), np.array([-1]), np.array([0]), torch.from_numpy(pixels[None]))
    augment, change = Augment(config.data, device), view_change(decision.score, config.data)

    def said(how: ViewChange | None) -> Outputs:
        return collect_outputs(run.network, image, augment, device, precision=config.precision, change=how)

    outputs = said(None)
    views = next(views_of(image, config, device))
    if not outputs.logits.isfinite().all():
        raise UserError(
            "The network's outputs are NaN or infinite.", "Its training probably went astray.", "another run"
        )
    with torch.inference_mode(), autocast(device, config.precision):
        whole = run.network(views)
    return _Seen(views, outputs, outputs if change is None else said(change), whole)


def _candidates(run: OpenRun, outputs: Outputs) -> list[Candidate]:
    groups = shot_groups(run.counts, run.config.shots)
    values, classes = outputs.probabilities()[0].topk(min(CANDIDATES, len(run.names)))
    return [
        Candidate(run.names[number], value, run.counts[number], str(groups[number]))
        for value, number in zip(values.tolist(), classes.tolist(), strict=True)
    ]


def _verdict(run: OpenRun, image: Path, seen: _Seen, decision: Decision) -> Verdict:
    """Decided by `predict` itself, so that both always say the same."""
    score, threshold = decision.score, decision.threshold
    row: Any = predict(run.network, run.config, run.names, [image], score, threshold).iloc[0]
    value = float(score.value(seen.read)[0])
    return Verdict(bool(row["unknown"]), score, value, threshold, decision.unknown_rate)


def _place(run: OpenRun, seen: _Seen, decision: Decision) -> ScorePlace:
    outputs = kept_outputs(run.folder, ("test", "open"))
    if "test" not in outputs:
        raise no_test_outputs(run.folder)
    manifest = None if isinstance(run.manifest, Missing) else run.manifest
    ready = prepared_score(run.folder, decision.score, outputs, manifest, run.console)
    return score_place(
        outputs,
        run.counts,
        decision.score,
        float(decision.score.value(seen.read)[0]),
        decision.threshold,
        shots=run.config.shots,
        read=ready.outputs,
    )


def _attention(run: OpenRun, views: Tensor) -> AttentionMaps:
    with autocast(views.device, run.config.precision):
        return attention_maps(run.network, views)
