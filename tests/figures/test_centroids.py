"""The memory in the plane: which centroids and images, principal components another way, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.figures.centroids import (
    FIGURE,
    Memorised,
    centroid_plane,
    centroids_figure,
    find_centroids,
    principal_plane,
)
from oltr.metrics.shots import shot_groups
from oltr.nn.memory import Memory
from tests.figures.few_outputs import MadeUpRun, as_png
from tests.helpers.separable import outputs, separable, strangers

COUNTS = [500, 300, 200, 40, 9, 5]
GROUPS = shot_groups(COUNTS)


@pytest.fixture(scope="module")
def test():
    return separable([12, 12, 12, 12, 12, 3], seed=0)


def memory_of(test, known=None):
    means = torch.stack([test.features[test.labels == c].mean(dim=0) for c in range(6)])
    return Memorised(means, torch.ones(6, dtype=torch.bool) if known is None else known)


def test_the_memory_is_found_among_the_weights():
    memory = Memory(3, 2)
    memory.start_from(torch.arange(6.0).view(3, 2))
    weights = {f"head.meta.memory.{name}": tensor for name, tensor in memory.state_dict().items()}
    found = find_centroids({"head.classifier.weight": torch.zeros(3, 2), **weights})
    assert found.centroids.tolist() == [[0, 1], [2, 3], [4, 5]] and found.known.tolist() == [True] * 3
    assert find_centroids({"head.classifier.weight": torch.zeros(3, 2)}) is None


def test_the_plane_by_eigenvectors():
    points = np.random.default_rng(0).normal(size=(40, 5)) * [9, 1, 3, 1, 1]
    places, shares = principal_plane(points)
    values, vectors = np.linalg.eigh(np.cov(points.T))
    for axis in (0, 1):
        direction = vectors[:, -1 - axis] * np.sign(vectors[:, -1 - axis].sum())
        np.testing.assert_allclose(places[:, axis], (points - points.mean(axis=0)) @ direction, atol=1e-9)
        assert shares[axis] == pytest.approx(values[-1 - axis] / values.sum())


def test_points_of_a_plane_keep_their_distances():
    flat = np.array([[0.0, 0], [3, 4], [6, 0], [1, 1]])
    turned = flat @ np.array([[0, 0.6, 0.8], [1, 0, 0]])  # into three dimensions
    places, shares = principal_plane(turned)
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    np.testing.assert_allclose(apart, np.linalg.norm(flat[:, None] - flat, axis=2), atol=1e-9)
    assert sum(shares) == pytest.approx(1)
    on_a_line, shares = principal_plane(np.array([[0.0], [1], [5]]))
    np.testing.assert_allclose(on_a_line, [[-2, 0], [-1, 0], [3, 0]], atol=1e-9)
    assert shares == pytest.approx((1, 0))


def test_classes_images_and_their_centroids(test):
    plane = centroid_plane(memory_of(test), test, strangers(40, 6, seed=1), GROUPS, classes=2, images=8)
    assert {kind: int((plane.kinds == kind).sum()) for kind in ("many", "few", "open")} == {
        "many": 16,
        "few": 11,
        "open": 16,
    }
    assert plane.class_kinds.tolist() == ["many", "many", "few", "few"]
    assert sorted(plane.classes[2:]) == [4, 5] and len(plane.centroids) == 4
    known = plane.kinds != "open"
    np.testing.assert_array_equal(test.labels.numpy()[plane.rows[known]], plane.labels[known])
    assert plane.at_home == {"many": 1.0, "few": 1.0}
    for label, centre in zip(plane.classes, plane.centroids, strict=True):  # amid their own class
        own = plane.places[plane.labels == label].mean(axis=0)
        nearest = np.linalg.norm(plane.centroids - own, axis=1).argmin()
        assert plane.classes[nearest] == label and np.isfinite(centre).all()
    figure = centroids_figure({"oltr": plane})
    axes = figure.axes[0]
    assert f"{100 * plane.shares[0]:.0f} % of the variance" in axes.get_xlabel()
    stars = [line for line in axes.lines if line.get_marker() == "*"]
    np.testing.assert_allclose([star.get_xydata()[0] for star in stars], plane.centroids[[0, 1, 2, 3]])
    assert "many-shot 100 %, few-shot 100 %" in axes.get_title(loc="left")
    as_png(figure)
    as_png(centroids_figure({"a": plane, "b": plane, "c": plane}))


def test_how_many_are_at_home_by_a_loop(test):
    memory = memory_of(test)
    memory.centroids[4] = memory.centroids[5] + 0.1  # class 4 lives next to class 5 now
    plane = centroid_plane(memory, test, None, GROUPS)
    right = {"many": [], "few": []}
    for label, feature in zip(test.labels.tolist(), test.features, strict=True):
        group = {0: "many", 1: "many", 2: "many", 4: "few", 5: "few"}.get(label)
        if group:
            gaps = [float((feature - centre).norm()) for centre in memory.centroids]
            right[group].append(gaps.index(min(gaps)) == label)
    assert plane.at_home == pytest.approx({kind: np.mean(hits) for kind, hits in right.items()})
    assert plane.at_home["few"] < 1


def test_a_class_that_the_memory_has_not_met_has_no_star(test):
    known = torch.tensor([True, True, True, True, True, False])
    plane = centroid_plane(memory_of(test, known), test, None, GROUPS, classes=9)
    assert plane.classes.tolist() == [0, 1, 2, 4] and 5 in plane.labels
    as_png(centroids_figure({"a": plane}))


@pytest.mark.parametrize(
    ("part", "memory", "message"),
    [
        (outputs(torch.zeros(9, 1)), Memorised(torch.zeros(1, 3), torch.ones(1) > 0), "of two runs"),
        (outputs(torch.zeros(9, 1)), Memorised(torch.zeros(1, 2), torch.ones(1) > 0), "the same point"),
        (outputs(torch.zeros(9, 1)), Memorised(torch.full((1, 2), torch.nan), torch.ones(1) > 0), "NaN"),
        (outputs(torch.zeros(1, 1)), Memorised(torch.zeros(1, 2), torch.ones(1) > 0), "only 2 centroids"),
    ],
)
def test_what_cannot_be_shown(part, memory, message):
    with pytest.raises(UserError, match=message):
        centroid_plane(memory, part, None, np.array(["few"]))
    with pytest.raises(UserError, match="no memory"):
        centroids_figure({})


def test_centroids_are_those_of_runs_that_have_a_memory(tmp_path, test):
    runs = [MadeUpRun({"test": test}, COUNTS, name=str(tmp_path / name)) for name in "ab"]
    memory = memory_of(test)
    weights = {"head.meta.memory.centroids": memory.centroids, "head.meta.memory.known": memory.known}
    runs[0].folder.save_weights(runs[0].folder.model, {"head.classifier.weight": torch.eye(4)})
    runs[1].folder.save_weights(runs[1].folder.model, weights)
    figure = FIGURE.draw(runs)
    assert [axes.get_title(loc="left").split("\n")[0][-9:] for axes in figure.axes] == [runs[1].name[-9:]]
    for none in (runs[:1], []):
        with pytest.raises(UserError, match="no memory"):
            FIGURE.draw(none)
    with pytest.raises(UserError, match="is missing"):
        FIGURE.draw([MadeUpRun({"test": test}, COUNTS, name="nowhere")])
