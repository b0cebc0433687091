from functools import partial

import numpy as np
import pytest
from PIL import Image

from oltr.data.curate import CurateOptions, curate, glyphs
from oltr.data.sources import read_source
from oltr.errors import UserError

FEW = {"known": 4, "open_classes": 2, "largest": 6, "smallest": 2}
EACH = {"val_per_class": 1, "test_per_class": 2, "open_per_class": 2}


def test_glyphs_become_files_a_manifest_and_a_card(tmp_path, monkeypatch):
    few = partial(glyphs.make_glyphs, **FEW, **EACH)
    monkeypatch.setattr(glyphs, "make_glyphs", few)
    assert curate("glyphs", CurateOptions(out=tmp_path / "out", size=16, seed=5)).pack_size == 16
    made = read_source(tmp_path / "out")
    drawn = few(size=16, seed=5)
    assert made.sizes() | {"train": 0} == {"train": 0, "val": 4, "test": 8, "open": 4}
    assert len(made.classes) == 4
    for path, image in zip(made.table["path"], drawn.images, strict=True):
        np.testing.assert_array_equal(np.asarray(Image.open(made.root / path)), image)
    card = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert "16 × 16 pixels" in card
    assert "Seed: 5" in card


def test_options_that_mean_nothing_here_are_refused(tmp_path):
    with pytest.raises(UserError, match="takes no --root"):
        curate("glyphs", CurateOptions(out=tmp_path / "out", root=tmp_path))
