"""What to label first: one image of each cluster, then the images least like those already listed."""

from __future__ import annotations

import numpy as np

from oltr.openworld.cluster import medoids


def label_first(
    features: np.ndarray, clusters: np.ndarray, novelty: np.ndarray, uncertainty: np.ndarray
) -> np.ndarray:
    """All N images, the one to label first first: unit features N×D, clusters N from 0, the rest N.

    First the medoid of every cluster, by size × mean novelty (as a rank from 0 to 1): the clusters in which
    an answer names most new images. Then, one by one, the image that is farthest from those listed
    (k-centre), weighed by its uncertainty (0 to 1), so that doubtful images come before clear ones.
    """
    if len(features) == 0:
        return np.zeros(0, dtype=np.int64)
    sizes = np.bincount(clusters)
    new = np.bincount(clusters, weights=_ranks(novelty)) / sizes
    chosen = medoids(features, clusters)[np.argsort(-sizes * new, kind="stable")]
    features = features.astype(np.float32)  # each image listed costs a pass over all
    nearest = (features @ features[chosen].T).max(axis=1)
    order, left = list(chosen), np.ones(len(features), dtype=bool)
    left[chosen] = False
    while left.any():
        if len(order) >= MOST:  # by then they are all alike, and each costs a pass over all
            rest = np.flatnonzero(left)
            order += list(rest[np.argsort(nearest[rest], kind="stable")])
            break
        worth = np.where(left, (1 - nearest) * (0.5 + uncertainty), -np.inf)
        image = int(worth.argmax())
        order.append(image)
        left[image] = False
        np.maximum(nearest, features @ features[image], out=nearest)
    return np.array(order, dtype=np.int64)


MOST = 2_000  # images ranked one by one


def _ranks(values: np.ndarray) -> np.ndarray:
    """Places in rising order, over the number of values: N → N in (0, 1]."""
    return (np.argsort(np.argsort(values, kind="stable"), kind="stable") + 1) / len(values)
