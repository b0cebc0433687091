"""t-SNE of a seeded sample: which images it holds, and that it is the same each time."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import silhouette_score

from oltr.errors import UserError
from oltr.figures.embedding import FIGURE, embedding, embedding_figure
from oltr.metrics.shots import shot_groups
from oltr.runs.outputs import Outputs
from tests.figures.few_outputs import MadeUpRun
from tests.helpers.separable import outputs, separable, strangers

COUNTS = [500, 300, 200, 40, 9, 5]
GROUPS = shot_groups(COUNTS)


def drawn(figure):
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue().startswith(b"\x89PNG")


def with_memory(plain: Outputs) -> Outputs:
    return replace(plain, embeddings=2 * plain.features, reachability=torch.ones(len(plain)))


@pytest.fixture(scope="module")
def splits():
    return with_memory(separable([12, 12, 12, 12, 12, 3], seed=0)), with_memory(strangers(40, 6, seed=1))


@pytest.fixture(scope="module")
def shown(splits):
    return embedding(*splits, GROUPS, classes=2, images=8, seed=3)


def test_the_sample(splits, shown):
    known = shown.kinds != "open"
    assert {kind: int((shown.kinds == kind).sum()) for kind in ("many", "few", "open")} == {
        "many": 16,
        "few": 11,  # 8 images of one class, and all 3 of the other
        "open": 16,
    }
    np.testing.assert_array_equal(splits[0].labels.numpy()[shown.rows[known]], shown.labels[known])
    assert (shown.labels[~known] == -1).all() and shown.rows[~known].max() < 40
    assert len(set(np.unique(shown.labels[shown.kinds == "many"]))) == 2
    assert set(shown.labels[shown.kinds == "few"]) == {4, 5}
    for rows in (shown.rows[known], shown.rows[~known]):
        assert len(np.unique(rows)) == len(rows)


def test_places_are_finite_and_keep_classes_together(shown):
    known = shown.kinds != "open"
    for places in (shown.direct, shown.meta):
        assert places.shape == (43, 2) and np.abs(places).max() == pytest.approx(1)
        assert silhouette_score(places[known], shown.labels[known]) > 0.3


def test_the_seed_decides(splits, shown):
    again = embedding(*splits, GROUPS, classes=2, images=8, seed=3)
    for name in ("kinds", "rows", "labels", "direct", "meta"):
        np.testing.assert_array_equal(getattr(again, name), getattr(shown, name))
    other = embedding(*splits, GROUPS, classes=2, images=8, seed=4)
    assert not np.array_equal(other.rows, shown.rows)
    with pytest.raises(UserError, match="different images"):
        embedding_figure({"a": shown, "b": other})


def test_the_sample_is_the_same_for_all_runs_on_the_data(splits, shown):
    test, unseen = (replace(part, embeddings=None, features=-part.features) for part in splits)
    plain = embedding(test, unseen, GROUPS, classes=2, images=8, seed=3)
    assert plain.meta is None
    np.testing.assert_array_equal(plain.rows, shown.rows)
    figure = embedding_figure({"plain": plain, "oltr": shown})
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [
        "plain\ndirect features (there is no memory)",
        "oltr\ndirect features",
        "oltr\nmeta-embeddings",
    ]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[0] == "head (many-shot): 16 images of 2 classes" and legend[2] == "open: 16 images"
    assert "seed 3" in figure.legends[0].get_title().get_text()
    assert all("no unit" in axes.get_xlabel() + axes.get_ylabel() for axes in figure.axes)
    assert drawn(figure)


@pytest.mark.parametrize("unseen", [None, outputs(torch.zeros(0, 1))])
@pytest.mark.parametrize("dims", [1, 2, 5])
def test_one_class_and_nothing_open(unseen, dims):
    test = outputs(torch.zeros(4, 1), features=torch.randn(4, dims))
    alone = embedding(test, unseen, np.array(["few"]))
    assert alone.kinds.tolist() == ["few"] * 4 and np.isfinite(alone.direct).all()
    assert drawn(embedding_figure({"alone": alone}))


@pytest.mark.parametrize(
    ("test", "group", "more", "message"),
    [
        (outputs(torch.zeros(1, 1)), "few", {}, "only 1 many-shot"),
        (outputs(torch.zeros(9, 1)), "medium", {}, "only 0 many-shot"),
        (outputs(torch.zeros(9, 1)), "few", {}, "the same feature"),
        (outputs(torch.zeros(9, 1), features=torch.full((9, 2), torch.nan)), "few", {}, "NaN"),
        (outputs(torch.zeros(9, 1)), "few", {"classes": 0}, "At least one class"),
    ],
)
def test_what_cannot_be_shown(test, group, more, message):
    with pytest.raises(UserError, match=message):
        embedding(test, None, np.array([group]), **more)
    with pytest.raises(UserError, match="no run"):
        embedding_figure({})


def test_the_figure_of_runs(splits):
    run = MadeUpRun(dict(zip(("test", "open"), splits, strict=True)), COUNTS, method="oltr")
    titles = [axes.get_title(loc="left") for axes in FIGURE.draw([run]).axes]
    assert titles == ["run\ndirect features", "run\nmeta-embeddings"]
