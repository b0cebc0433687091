"""Ward clustering of unknown images, with the cut chosen on known classes and never on unknown ones."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from oltr.openworld.metric import Metric, class_means

AT_ONCE = 6_000  # images that Ward sees together: its distances take a few times n² · 8 bytes, 0.3 GB
DRAWS, HEIGHTS = 12, 60
GROWTH = 0.25  # power of the images by which the cut grows beyond what known ones can try; chosen on these
FEWEST = 5  # classes among unknown images, unless there are fewer known ones to try


def ward_clusters(features: np.ndarray, cut: float, seed: int = 0) -> np.ndarray:
    """Cluster numbers N of features N×D, the largest cluster 0: Ward's tree cut at that height.

    Of more than AT_ONCE images a random part is clustered, and the others join the nearest cluster mean.
    """
    if len(features) < 2:
        return np.zeros(len(features), dtype=np.int64)
    if len(features) <= AT_ONCE:
        return _largest_first(fcluster(ward_tree(features), cut, "distance") - 1)
    part = np.sort(np.random.default_rng(seed).choice(len(features), AT_ONCE, replace=False))
    found = ward_clusters(features[part], cut)
    means = class_means(features[part], found, found.max() + 1)
    halves = (means**2).sum(axis=1) / 2
    blocks = np.array_split(features, len(features) // AT_ONCE + 1)
    clusters = np.concatenate([(block @ means.T - halves).argmax(axis=1) for block in blocks])
    clusters[part] = found
    return _largest_first(clusters)


def ward_tree(features: np.ndarray) -> np.ndarray:
    """Ward's tree of N×D features as SciPy has it, (N−1)×4, its distances by one matrix product."""
    halves = (features**2).sum(axis=1) / 2
    squares = features @ features.T
    squares -= halves[:, None]
    squares -= halves
    squares *= -2
    between = squareform(squares, checks=False)
    return linkage(np.sqrt(np.maximum(between, 0)), "ward")


def choose_cut(features: np.ndarray, labels: np.ndarray, images: int, seed: int = 0) -> float:
    """The height that would serve best to name `images` unknown images, found on known classes.

    Known classes N×D play unknown: a metric is learned from half of them, and so many images of the other
    half are clustered. One image of a cluster, its medoid, is asked about and names the others: the best
    height names most images rightly without asking about them. Ward's heights grow with the images per class,
    and how many classes the unknown images have is not known: draws have from FEWEST to half of the known
    classes. For more images than that half has, the height found on all of them is raised.
    """
    random = np.random.default_rng(seed)
    names = random.permutation(np.unique(labels))
    halves = [names[: len(names) // 2], names[len(names) // 2 :]]
    trees, most = [], AT_ONCE
    for ours, others in (halves, halves[::-1]):
        there, here = np.isin(labels, others), np.isin(labels, ours)
        if there.sum() < 2 or here.sum() < 2:
            continue
        most = min(most, int(here.sum()))
        space = Metric.fit(features[there], labels[there])
        for _ in range(DRAWS // 2):
            rows = _some(labels, ours, images, random)
            placed = space(features[rows])
            trees.append((placed, labels[rows], ward_tree(placed)))
    if not trees:
        return 1.5  # between the √2 of two unlike images and the heights of groups of these
    heights = np.linspace(0, max(tree[-1, 2] for _, _, tree in trees), HEIGHTS + 1)[1:]
    gains = [
        [named_for_free(placed, truth, fcluster(tree, height, "distance") - 1) for height in heights]
        for placed, truth, tree in trees
    ]
    beyond = max(min(images, AT_ONCE) / most, 1.0)
    return float(heights[np.mean(gains, axis=0).argmax()] * beyond**GROWTH)


def named_for_free(features: np.ndarray, truth: np.ndarray, clusters: np.ndarray) -> float:
    """The share of images that get their right name when only the medoid of each cluster is asked about."""
    answers = truth[medoids(features, clusters)]
    return float(((answers[clusters] == truth).sum() - len(answers)) / len(truth))


def medoids(features: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """The image next to the mean of each cluster 0..C-1, C int64."""
    means = class_means(features, clusters, clusters.max() + 1)
    away = ((features - means[clusters]) ** 2).sum(axis=1)
    order = np.lexsort((away, clusters))
    return order[np.searchsorted(clusters[order], np.arange(len(means)))]


def _some(labels: np.ndarray, names: np.ndarray, images: int, random: np.random.Generator) -> np.ndarray:
    """Rows of so many images, or of all there are, of a random number of randomly chosen classes."""
    few = min(FEWEST, len(names))
    classes = round(np.exp(random.uniform(np.log(few), np.log(len(names)))))
    rows = random.permutation(np.flatnonzero(np.isin(labels, random.permutation(names)[:classes])))
    return rows[: min(max(images, 2), AT_ONCE)]


def _largest_first(clusters: np.ndarray) -> np.ndarray:
    """The same clusters numbered by falling size, equal ones by their first image."""
    _, first, numbers, sizes = np.unique(clusters, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -sizes))
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places[numbers]
