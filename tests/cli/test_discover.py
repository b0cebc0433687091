"""`discover`: the images that a run rejects, in clusters, as a table, a record and a page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from oltr.data.pack import open_pack
from oltr.openworld.discover import COLUMNS
from oltr.runs.trained_run import TrainedRun


@pytest.fixture(scope="module")
def photos(pack, tmp_path_factory) -> Path:
    """Every test and open image as a file, and one that is no image."""
    folder, opened = tmp_path_factory.mktemp("new photos"), open_pack(pack)
    for split in ("test", "open"):
        for place, row in enumerate(opened.manifest.positions(split)):
            Image.fromarray(np.asarray(opened.images[row])).save(folder / f"{split} {place}.png")
    (folder / "broken <i>.jpg").write_bytes(b"nothing")
    return folder


def test_unknown_images_are_those_that_predict_calls_so(oltr, trained, photos, tmp_path):
    out = tmp_path / "found here"
    said = oltr("discover", trained["oltr"], photos, "--out", out, "--json")
    assert said.code == 0, said.err
    told, table = json.loads(said.out), pd.read_csv(out / "clusters.csv")
    assert json.loads((out / "clusters.json").read_text(encoding="utf-8")) == told
    assert tuple(table.columns) == COLUMNS
    answers = TrainedRun(trained["oltr"]).predict(photos)
    unknown = answers[answers["unknown"].fillna(False).astype(bool)]
    assert sorted(table["path"]) == sorted(unknown["path"]) and len(table) == told["clustered"]
    assert list(told["errors"]) == [str(photos / "broken <i>.jpg")] and "broken <i>.jpg" in said.err
    assert sum(cluster["size"] for cluster in told["clusters"]) == len(table)


def test_all_images_in_clusters_with_ranks(oltr, trained, photos, tmp_path):
    said = oltr("discover", trained["plain"], photos, "--out", tmp_path, "--all")
    assert said.code == 0 and said.out.startswith("36 images in "), said.err
    table = pd.read_csv(tmp_path / "clusters.csv")
    told = json.loads((tmp_path / "clusters.json").read_text(encoding="utf-8"))
    assert sorted(table["label_first"]) == list(range(1, 37))
    sizes = table["cluster"].value_counts().sort_index()
    assert sizes.is_monotonic_decreasing
    for number, part in table.groupby("cluster"):
        assert part["rank"].tolist() == list(range(1, len(part) + 1))
        assert part["path"].tolist() == told["clusters"][number - 1]["paths"]
    first = table[table["label_first"] <= len(sizes)]
    assert sorted(first["cluster"]) == list(sizes.index)  # one of each cluster before any second


def test_the_page_is_one_file_that_loads_nothing(oltr, trained, photos, tmp_path):
    oltr("discover", trained["plain"], photos, "--out", tmp_path, "--all")
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert page.count('<section class="cluster"') == len(
        json.loads((tmp_path / "clusters.json").read_text(encoding="utf-8"))["clusters"]
    )
    assert "http://" not in page and "https://" not in page and "<script" not in page
    assert "data:image/webp" in page and f"oltr add-class {trained['plain']} NAME" in page
    assert "broken &lt;i&gt;.jpg" in page and "broken <i>" not in page


def test_nothing_unknown_and_bad_input(oltr, trained, photos, tmp_path, monkeypatch):
    from oltr.openset import RejectionRule

    monkeypatch.setattr(RejectionRule, "rejects", lambda self, values: values.isnan())
    said = oltr("discover", trained["plain"], photos / "test 0.png", "--out", tmp_path / "none")
    assert said.code == 0 and said.out.startswith("None of 1 image is unknown to plain.")
    assert "None of 1 image" in (tmp_path / "none" / "index.html").read_text(encoding="utf-8")
    assert len(pd.read_csv(tmp_path / "none" / "clusters.csv")) == 0
    oltr("discover", trained["plain"], tmp_path / "no such", "--out", tmp_path).refused("no such")
    (tmp_path / "file").write_text("")
    oltr("discover", trained["plain"], photos, "--out", tmp_path / "file" / "x").refused("file")
