"""A run's unknown images in clusters: sizes, nearest known classes, and what to label first."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from oltr.errors import UserError
from oltr.openworld.cluster import choose_cut, ward_clusters
from oltr.openworld.judge import judge
from oltr.openworld.known_places import KnownPlaces, known_features
from oltr.openworld.metric import Metric, class_means, unit
from oltr.openworld.rank import label_first
from oltr.runs.given_images import each_image

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

NEAREST = 3  # known classes told of each cluster


@dataclass(frozen=True)
class Nearest:
    """A known class near a cluster."""

    name: str
    similarity: float  # cosine of the means
    share: float  # of the cluster's images that are nearest to it


@dataclass(frozen=True)
class Cluster:
    """Images that look alike."""

    number: int  # from 1, the largest first
    size: int
    novelty: float  # mean unknown score
    nearest: tuple[Nearest, ...]  # known classes, the nearest first
    looks_known: str  # the known class that it may be; empty where none is so near
    label_first: int  # where its first image stands in the order of labelling
    paths: tuple[str, ...]  # from the middle outwards
    name: str = ""  # for people to fill in


@dataclass(frozen=True, eq=False)
class Discovery:
    """Unknown images in clusters."""

    run: str
    everything: bool  # whether images of known classes were clustered too
    judged: int  # images that were given and could be read
    errors: dict[str, str]  # path → why an image has no answer
    cut: float  # the height at which Ward's tree is cut
    clusters: tuple[Cluster, ...]
    table: pd.DataFrame  # clusters.csv: one row per clustered image

    def to_dict(self) -> dict[str, Any]:
        """clusters.json."""
        facts = {
            "schema": 1,
            "run": self.run,
            "all": self.everything,
            "judged": self.judged,
            "clustered": len(self.table),
        }
        facts |= {"errors": self.errors, "cut": self.cut}
        return facts | {"clusters": [asdict(cluster) for cluster in self.clusters]}


def discover(run: TrainedRun, images: Any, everything: bool = False) -> Discovery:
    """Cluster the images that the run calls unknown, or all of them."""
    rows, features = judge(run, each_image(images))
    failed = rows["error"] != ""
    errors = dict(zip(rows.loc[failed, "path"], rows.loc[failed, "error"], strict=True))
    chosen = (~failed if everything else rows["unknown"].fillna(False)).to_numpy(bool)
    judged = int((~failed).sum())
    if not judged:
        path, reason = next(iter(errors.items()), ("", "There are none."))
        raise UserError("None of the images could be read.", f"{path}: {reason}" if path else reason)
    if not chosen.any():
        return Discovery(run.name, everything, judged, errors, 0.0, (), pd.DataFrame(columns=list(COLUMNS)))
    cut, clusters, table = clustered(run, rows[chosen].reset_index(drop=True), features[chosen])
    return Discovery(run.name, everything, judged, errors, cut, clusters, table)


COLUMNS = (
    "path",
    "cluster",  # from 1, the largest first
    "rank",  # in its cluster, from 1: the image in the middle
    "label_first",  # from 1: in which order to label
    "novelty",  # the run's unknown score
    "nearest_known",
    "similarity",  # cosine with that class's mean, in the space of the clusters
    "label",  # the run's likeliest class
    "probability",
)


def clustered(
    run: TrainedRun, rows: pd.DataFrame, features: np.ndarray
) -> tuple[float, tuple[Cluster, ...], pd.DataFrame]:
    """The cut, the clusters and clusters.csv of N images, from their predictions and features N×D."""
    taught, labels = known_features(run)
    metric = Metric.fit(taught, labels)
    places = KnownPlaces.of(metric, taught, labels, len(run.class_names))
    cut = choose_cut(taught, labels, len(rows), run.config.seed)
    placed = metric(features)
    numbers = ward_clusters(placed, cut, run.config.seed)
    middles = unit(class_means(placed, numbers, numbers.max() + 1))
    away = 1 - (placed * middles[numbers]).sum(axis=1)
    near = places.similarity(placed)
    unsure = 1 - (rows["probability"] - rows["second_probability"].fillna(0)).to_numpy(np.float64)
    order = label_first(placed, numbers, rows["unknown_score"].to_numpy(np.float64), unsure)
    table = pd.DataFrame(
        {
            "path": rows["path"],
            "cluster": numbers + 1,
            "rank": pd.Series(away).groupby(numbers).rank(method="first").astype("int64"),
            "label_first": np.argsort(order) + 1,
            "novelty": rows["unknown_score"],
            "nearest_known": np.array(run.class_names, dtype=object)[near.argmax(axis=1)],
            "similarity": near.max(axis=1),
            "label": rows["label"],
            "probability": rows["probability"],
        },
        columns=list(COLUMNS),
    ).sort_values(["cluster", "rank"], ignore_index=True)
    parts = [part for _, part in table.groupby("cluster")]
    similar = places.similarity(middles)
    found = tuple(_cluster(part, near, run, places) for part, near in zip(parts, similar, strict=True))
    return cut, found, table


def _cluster(part: pd.DataFrame, between: np.ndarray, run: TrainedRun, places: KnownPlaces) -> Cluster:
    """A cluster from its rows of the table and its middle's similarity with each known class (K)."""
    shares = part["nearest_known"].value_counts(normalize=True)
    nearest = tuple(
        Nearest(run.class_names[k], float(between[k]), float(shares.get(run.class_names[k], 0.0)))
        for k in np.argsort(-between)[:NEAREST]
    )
    likeliest = str(shares.index[0])
    alike = part.loc[part["nearest_known"] == likeliest, "similarity"]
    known = shares.iloc[0] > 0.5 and alike.mean() >= places.near
    return Cluster(
        number=int(part["cluster"].iloc[0]),
        size=len(part),
        novelty=float(part["novelty"].mean()),
        nearest=nearest,
        looks_known=likeliest if known else "",
        label_first=int(part["label_first"].min()),
        paths=tuple(part["path"]),
    )
