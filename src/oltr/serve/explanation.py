"""The picture of `oltr explain` for an image that is kept."""

from __future__ import annotations

import tempfile
from pathlib import Path

from oltr.figures.explanation_figure import explanation_figure
from oltr.figures.save import save_figure
from oltr.runs.explain.explain import explain
from oltr.serve.state import State


def explanation_png(state: State, image: Path) -> bytes:
    """A PNG; made in the thread that has the network, whose attention is watched meanwhile."""

    def made() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "explanation.png"
            save_figure(explanation_figure(explain(state.snapshot.run, image)), place)
            return place.read_bytes()

    return state.batcher.call(made)
