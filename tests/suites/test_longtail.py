"""The sets of a longtail sweep, and what is trained on them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oltr.config import Frame
from oltr.data.curate.glyphs import make_glyphs
from oltr.data.longtail import pareto_counts
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack, write_pack_from
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.suites.longtail import longtail_sets, plan_longtail, save_set
from oltr.suites.suite_file import load_suite

FRAME = Frame(32, "short-side")
ALPHAS = (1.0, 6.0)


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """Six known characters of 30 images each, as a pack."""
    folder = tmp_path_factory.mktemp("full")
    sizes = {"known": 6, "open_classes": 2, "largest": 30, "smallest": 30}
    glyphs = make_glyphs(**sizes, val_per_class=2, test_per_class=2, open_per_class=3)
    return open_pack(
        write_pack_from(Manifest.build(glyphs.table, folder), glyphs.images, FRAME, folder / "full.pack")
    )


def test_the_counts_are_those_of_the_pareto_profile(full):
    for alpha, drawn in longtail_sets(full.manifest, ALPHAS).items():
        assert sorted(drawn.train_counts(), reverse=True) == pareto_counts(6, 30, 5, alpha).tolist()


def test_more_imbalance_takes_images_away_and_changes_nothing_else(full):
    steep, flat = longtail_sets(full.manifest, ALPHAS).values()
    for split in ("val", "test", "open"):
        pd.testing.assert_frame_equal(steep.rows(split), flat.rows(split))
    assert set(steep.rows("train")["path"]) < set(flat.rows("train")["path"])


def test_a_flat_source_of_unequal_classes_gives_one_set_aside(tmp_path):
    few = {"a": 40, "b": 30, "c": 25, "d": 12}
    rows = [("train", name, number) for name, images in few.items() for number in range(images)]
    rows += [("open", "x", 0)]
    table = pd.DataFrame(rows, columns=["split", "label", "number"])
    table["path"] = table["label"] + "/" + table.pop("number").astype(str)
    sets = longtail_sets(Manifest.build(table, tmp_path), (6.0, 0.5, 50.0))
    assert list(sets) == [0.5, 6.0, 50.0]
    flat = sets[50.0]
    assert flat.sizes()["val"] and flat.sizes()["test"] == 4 * 2
    for alpha, drawn in sets.items():
        counts = pareto_counts(4, flat.train_counts().max(), 5, alpha)
        assert sorted(drawn.train_counts(), reverse=True) == counts.tolist()
        for split in ("val", "test", "open"):
            pd.testing.assert_frame_equal(drawn.rows(split), flat.rows(split))
        assert set(drawn.rows("train")["path"]) <= set(flat.rows("train")["path"])


def test_counts_never_shrink_as_alpha_grows():
    alphas = [0.05, 0.3, 1, 1.1, 2, 6, 6.01, 100, 1e6]
    for classes, largest in ((2, 9), (7, 40), (100, 280), (1000, 1280)):
        counts = np.stack([pareto_counts(classes, largest, 5, alpha) for alpha in alphas])
        assert (np.diff(counts, axis=0) >= 0).all()


def test_a_set_is_kept_with_its_pixels_and_not_written_twice(full, tmp_path):
    drawn = longtail_sets(full.manifest, ALPHAS)[1.0]
    path = save_set(full.manifest, drawn, tmp_path)
    pack = open_pack(path)
    assert pack.manifest.fingerprint() == drawn.fingerprint() and pack.frame == FRAME
    where = {name: row for row, name in enumerate(full.manifest.table["path"])}
    for row, name in enumerate(pack.manifest.table["path"]):
        np.testing.assert_array_equal(pack.images[row], full.images[where[name]])
    before = (tmp_path / "images.pack").stat().st_mtime_ns
    assert save_set(full.manifest, drawn, tmp_path) == path
    assert (tmp_path / "images.pack").stat().st_mtime_ns == before
    with pytest.raises(UserError, match="drawn from other data"):
        save_set(full.manifest, longtail_sets(full.manifest, ALPHAS)[6.0], tmp_path)


def test_files_are_kept_as_a_manifest_that_finds_them(full, tmp_path):
    loose = Manifest.build(full.manifest.table, tmp_path / "images")
    drawn = longtail_sets(loose, ALPHAS)[1.0]
    kept = read_source(save_set(loose, drawn, tmp_path / "out"))
    assert kept.fingerprint() == drawn.fingerprint() and kept.root == tmp_path / "images"


def test_one_backbone_for_each_seed_and_frozen_runs_on_it(tmp_path):
    changes = ("backbone=test_resnet", "weights=pretrained")
    parts = plan_longtail(load_suite("sweep-longtail"), 2, (), changes, tmp_path)
    assert [part.alpha for part in parts] == [6, 1, 2, 4, 6]
    assert [part.backbone for part in parts] == [True, False, False, False, False]
    backbone, *swept = parts
    assert [run.name for run in backbone.runs] == ["plain-0", "plain-1"]
    for run in backbone.runs:
        config = run.config
        assert config.weights == "pretrained" and config.stage2 is None and not config.stage1.frozen
    for part in swept:
        assert [run.name for run in part.runs] == ["plain-0", "oltr-0", "plain-1", "oltr-1"]
        assert part.runs[0].stage1_key == part.runs[1].stage1_key != part.runs[2].stage1_key
        for run in part.runs:
            model = tmp_path / "backbone" / f"plain-{run.config.seed}" / "model.safetensors"
            assert run.config.weights == str(model)
            for stage in (run.config.stage1, run.config.stage2):
                assert stage.frozen == ("backbone",) and stage.freeze_statistics
    assert len({part.out for part in parts}) == 5


def test_a_recipe_with_one_stage_stays_so(tmp_path):
    suite = load_suite("sweep-longtail")
    single = type(suite)(**{**vars(suite), "rows": suite.rows[:1]})
    _, first, *_ = plan_longtail(single, 1, (), ("stage2=null",), tmp_path)
    assert first.runs[0].config.stage2 is None and first.runs[0].config.stage1.frozen == ("backbone",)
