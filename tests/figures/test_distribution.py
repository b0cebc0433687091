import io
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.colors import to_hex

from oltr.data.longtail import pareto_counts
from oltr.errors import UserError
from oltr.figures.distribution import FIGURE, class_distribution
from oltr.figures.style import SHOT_COLOURS
from tests.figures.few_outputs import COUNTS, MadeUpRun, splits


def test_few_classes_are_bars_of_their_counts_in_order():
    axes = class_distribution([7, 120, 40]).axes[0]
    assert [bar.get_height() for bar in axes.patches] == [120, 40, 7]
    colours = [to_hex(bar.get_facecolor()).upper() for bar in axes.patches]
    assert colours == [SHOT_COLOURS[group] for group in ("many", "medium", "few")]
    assert axes.get_yscale() == "linear"
    assert "training images" in axes.get_ylabel()
    assert "class" in axes.get_xlabel()


def test_many_classes_are_one_area_per_group_on_a_log_axis():
    counts = pareto_counts(1000, 1280, 5)
    figure = class_distribution(counts)
    axes = figure.axes[0]
    assert len(axes.patches) == 3
    np.testing.assert_array_equal(np.concatenate([area.get_data().values for area in axes.patches]), counts)
    assert axes.get_yscale() == "log"
    legend = " ".join(text.get_text() for text in figure.legends[0].get_texts())
    assert f"{(counts > 100).sum()} classes" in legend
    assert f"{counts.sum():,} training images" in axes.get_title(loc="left")


def test_the_shot_rule_moves_the_border():
    assert len(class_distribution([100, 20]).axes[0].containers) == 1
    assert len(class_distribution([100, 20], shots="released").axes[0].containers) == 2


@pytest.mark.parametrize("counts", [[1], [5, 0], [3, 3, 3], list(range(1, 200))])
def test_odd_sets_are_drawn(counts):
    picture = io.BytesIO()
    class_distribution(counts).savefig(picture, format="png")
    assert picture.getvalue().startswith(b"\x89PNG")


def test_one_is_one():
    figure = class_distribution([1])
    assert figure.axes[0].get_title(loc="left") == "1 training image, 1 class"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["few-shot: 1 class\n1 image"]
    title = class_distribution([1200, 3]).axes[0].get_title(loc="left")
    assert title == "1,203 training images, 2 classes of 1,200 to 3"


def test_nothing_to_draw():
    with pytest.raises(UserError):
        class_distribution([0, 0])


def test_runs_share_one_distribution_or_none():
    runs = [MadeUpRun(splits(), name=name) for name in "ab"]
    title = f"{sum(COUNTS)} training images, 4 classes"
    assert FIGURE.draw(runs).axes[0].get_title(loc="left").startswith(title)
    with pytest.raises(UserError, match="different numbers"):
        FIGURE.draw([*runs, MadeUpRun(splits(), [9, 9, 9, 9])])


@pytest.mark.parametrize("heavy", ["matplotlib.pyplot", "torch"])
def test_neither_a_window_toolkit_nor_torch_is_needed(heavy):
    code = f"import sys, oltr.figures.distribution; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
