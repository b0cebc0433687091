"""Parts of the page against the run they are of: thumbnails, the worst images, and the lines of classes."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from oltr.data.pack import open_pack
from oltr.metrics import wilson_interval
from oltr.openset import RejectionRule
from oltr.report.page import chart, classes
from oltr.report.page.worst import Thumbnails, strip, worst_images
from oltr.runs.outputs import Outputs
from oltr.runs.trained_run import TrainedRun
from tests.report.made_run import NAMES, made_pack, made_run
from tests.report.test_page_verdict import measured, outputs


@pytest.mark.parametrize("split", ["test", "open"])
def test_a_thumbnail_is_of_its_image(tmp_path, split):
    opened = open_pack(made_pack(tmp_path))
    own, every = Thumbnails(opened.manifest), np.asarray(opened.images).astype(float)
    table = opened.manifest.table
    for row, place in enumerate(np.flatnonzero(table["split"] == split)):
        data = base64.b64decode(own.thumbnail(split, row).partition(",")[2])
        shown = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        assert np.abs(every - shown).mean(axis=(1, 2, 3)).argmin() == place  # the nearest: it is compressed
        assert (own.path(split, row), own.label(split, row)) == (f"{place}.png", table["label"][place])


@pytest.mark.parametrize("there", [True, False])
def test_what_the_worst_images_are_and_were_taken_for(tmp_path, there):
    pack = made_pack(tmp_path / "data")
    table = open_pack(pack).manifest.table
    run = made_run(tmp_path / "run", pack, sure=0.5, rule=RejectionRule("softmax", 0.1))
    said = {split: Outputs.load(run / "outputs" / f"{split}.safetensors") for split in ("test", "open")}
    if not there:
        pack.unlink()
    groups, missing = worst_images(TrainedRun(run))
    mistakes, unknown, taken = groups
    assert bool(missing) != there and mistakes.images and not unknown.images and taken.images
    for split, images in (("test", mistakes.images), ("open", taken.images)):
        places = np.flatnonzero(table["split"] == split)
        for image in images:
            row = places.tolist().index(int(image.path[:-4])) if there else int(image.path.split()[-1])
            assert there or image.path.split()[0] == split
            truth = table["label"][places[row]]
            assert image.truth == (truth if there or split == "test" else "open") != image.taken_for
            assert image.taken_for == NAMES[int(said[split].logits[row].argmax())]
            assert bool(image.source) == there


def named(*right):
    """Four test images of each class, so many of them given the right name, the others the next class."""
    labels = [number for number in range(len(right)) for _ in range(4)]
    taken = [number if place < right[number] else (number + 1) % 4 for number in range(len(right))
             for place in range(4)]  # fmt: skip
    return {"test": outputs(labels, taken, [1.0] * len(labels))}


COUNTS = (200, 50, 60, 3)
FIRST, BEST = (measured(named(*right), counts=COUNTS) for right in ((1, 2, 0), (4, 1, 2)))


def test_a_line_has_accuracy_and_f1_of_each_run():
    lines = {line.name: line for line in classes.class_lines([FIRST, BEST], BEST)}
    assert [(line.group, line.images) for line in lines.values()] == [
        ("many", 200), ("medium", 60), ("medium", 50), ("few", 3)
    ]  # fmt: skip
    # b: 2 of 4 right and 3 images of a taken for it; then 1 of 4 right, and none.
    assert lines["class 1"].values == pytest.approx((2 / 4, 4 / 9, 1 / 4, 2 / 5))
    assert lines["class 3"].values[::2] == (None, None)


def test_of_very_many_classes_the_worst_of_the_best_run_are_shown(monkeypatch):
    assert len(classes.class_lines([FIRST, BEST], BEST)) == 4
    monkeypatch.setattr(classes, "MOST", 2)
    assert [line.name for line in classes.class_lines([FIRST, BEST], BEST)] == [
        "class 2",
        "class 1",
    ]  # d has no images
    assert [line.name for line in classes.class_lines([FIRST, BEST], FIRST)] == ["class 0", "class 2"]


def test_the_strip_takes_the_kinds_of_mistakes_in_turn(tmp_path):
    run = made_run(
        tmp_path / "run", made_pack(tmp_path / "data"), sure=0.5, rule=RejectionRule("softmax", 0.4)
    )
    groups, _ = worst_images(TrainedRun(run))
    mistakes, unknown, taken = (group.images for group in groups)
    assert mistakes and unknown and taken
    shown = strip(groups, 4)
    assert shown[:3] == [mistakes[0], unknown[0], taken[0]] and len(shown) == 4
    assert shown[1].answer == "unknown" and shown[0].answer == shown[0].taken_for


def test_the_chart_has_a_bar_for_each_class_from_the_most_common_on(monkeypatch):
    found = chart.class_chart(BEST)
    assert [bar.label for bar in found.bars] == ["class 0", "class 2", "class 1", "class 3"] and found.named
    assert [bar.height for bar in found.bars] == [1.0, 0.5, 0.25, None]
    assert [bar.group for bar in found.bars] == ["many", "medium", "medium", "few"]
    low, high = wilson_interval(2, 4)
    assert found.bars[1].within == pytest.approx((low, high))
    assert found.bars[1].detail == (
        f"class 2: 50\u00a0% (95 % interval {100 * low:.0f} to {100 * high:.0f}), 60 training images"
    )
    assert found.bars[3].detail == "class 3: no test images, 3 training images"
    assert found.lowest == "class 1 25\u00a0%, class 2 50\u00a0%"
    assert found.groups[0] == ("many", "1 class", "100\u00a0%") and found.groups[2][2] == "–"
    monkeypatch.setattr(chart, "MOST", 2)
    monkeypatch.setattr(chart, "NAMED", 3)
    found = chart.class_chart(BEST)
    assert [bar.height for bar in found.bars] == [0.75, 0.25] and not found.named
    assert found.bars[1].detail == "2 classes: 25\u00a0%, 3 to 50 training images"
