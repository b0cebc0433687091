"""The picture of `oltr explain` for an image that is kept."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from oltr.figures.explanation_figure import explanation_figure
from oltr.figures.save import save_figure
from oltr.runs.explain.explain import explain
from oltr.serve.state import State


def explanation_png(state: State, number: str) -> bytes:
    """A PNG; made in the thread that has the network, whose attention is watched meanwhile."""

    now = state.snapshot
    upload = now.upload(number)

    def made() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "explanation.png"
            told = replace(explain(now.run, now.run.path / upload.kept), image=upload.name)
            save_figure(explanation_figure(told), place)
            return place.read_bytes()

    return state.batcher.call(made)
