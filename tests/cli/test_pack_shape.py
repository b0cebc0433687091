"""Packs whose pictures became squares in another way than the recipe or the run wants."""

from __future__ import annotations

import numpy as np
import pytest

from oltr.config import Frame
from oltr.data.pack import open_pack, write_pack_from
from oltr.training.run_folder import RunFolder
from tests.cli.conftest import QUICK


@pytest.fixture
def by_short_side(pack, tmp_path):
    """The same images, as a pack that was made otherwise."""
    made = open_pack(pack)
    frame = Frame(made.size, "short-side")
    return write_pack_from(made.manifest, np.asarray(made.images), frame, tmp_path / "short.pack")


def test_a_run_is_of_the_shape_of_its_pack_and_says_so(oltr, pack, by_short_side, tmp_path):
    wanted, out = ("--set", "data.resize=short-side"), tmp_path / "run"
    said = oltr("train", pack, *QUICK, *wanted, "--out", out)
    assert said.code == 0, said.err
    assert said.err.count("are stretched; recipe glyphs wants them resized by their short side") == 1
    assert "--resize short-side" in said.err
    assert RunFolder(out).run()["config"]["data"]["resize"] == "stretch"

    said = oltr("train", by_short_side, *QUICK, *wanted, "--out", tmp_path / "other")
    assert said.code == 0 and "warning" not in said.err
    assert RunFolder(tmp_path / "other").run()["config"]["data"]["resize"] == "short-side"

    warning = "short.pack are resized by their short side; the run learned from images stretched"
    assert warning in oltr("evaluate", out, "--source", by_short_side).err
    assert warning in oltr("predict", out, by_short_side, "--out", tmp_path / "p.csv").err
    assert "short side" not in oltr("predict", out, pack, "--out", tmp_path / "q.csv").err
