"""The page of discovered clusters: pictures, nearest known classes, and what to type next."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path

from oltr import __version__
from oltr.data.images import UnreadableImage, read_image
from oltr.errors import UserError
from oltr.files import atomic_write
from oltr.openworld.discover import Cluster, Discovery
from oltr.report.page.worst import SIDE, Thumbnails, small_picture
from oltr.report.page.write import template
from oltr.runs.trained_run import TrainedRun
from oltr.wording import count

TEMPLATES = Path(__file__).parent / "templates"
PICTURED = 80  # clusters with pictures; the others are in clusters.csv
MIDDLE, EDGE = 6, 2  # pictures of a cluster, from either end
TAUGHT = 20  # images of a cluster in its command


@dataclass(frozen=True)
class Shown:
    """A picture, or why there is none."""

    source: str  # a data URI; empty where the file cannot be read
    path: str
    edge: bool = False


@dataclass(frozen=True)
class ShownCluster:
    """A cluster as it stands on the page."""

    cluster: Cluster
    images: tuple[Shown, ...]
    examples: tuple[str, ...]  # a training image of each nearest class; empty where it is gone
    command: str
    more: int  # images beyond those of the command


def write_discovery(found: Discovery, run: TrainedRun, out: Path) -> None:
    """index.html in the folder `out`, atomically."""
    ordered = sorted(found.clusters, key=lambda cluster: cluster.label_first)
    examples = _examples(run, {near.name for cluster in ordered[:PICTURED] for near in cluster.nearest})
    shown = [_shown(cluster, run, examples) for cluster in ordered[:PICTURED]]
    text = template("discover.html", TEMPLATES).render(
        title=f"Clusters of {found.run}",
        headline=headline(found),
        found=found,
        clusters=shown,
        left_out=len(ordered) - len(shown),
        version=__version__,
        date=time.strftime("%Y-%m-%d"),
    )
    with atomic_write(out / "index.html") as part:
        part.write_text(text, encoding="utf-8")


def headline(found: Discovery) -> str:
    """What was found, in a sentence."""
    if not found.clusters:
        return f"None of {count(found.judged, 'image')} is unknown to {found.run}."
    clusters = count(len(found.clusters), "cluster")
    if found.everything:
        return f"{count(found.judged, 'image')} in {clusters}."
    return f"Unknown: {len(found.table):,} of {count(found.judged, 'image')}, in {clusters}."


def _shown(cluster: Cluster, run: TrainedRun, examples: dict[str, str]) -> ShownCluster:
    paths = cluster.paths
    edge = paths[max(len(paths) - EDGE, MIDDLE) :]
    images = [_picture(path) for path in paths[:MIDDLE]] + [_picture(path, edge=True) for path in edge]
    words = ["oltr", "add-class", str(run.path), "NAME", *paths[:TAUGHT]]
    near = tuple(examples.get(each.name, "") for each in cluster.nearest)
    return ShownCluster(cluster, tuple(images), near, shlex.join(words), max(len(paths) - TAUGHT, 0))


def _picture(path: str, edge: bool = False) -> Shown:
    try:
        return Shown(small_picture(read_image(Path(path), SIDE)), path, edge)
    except UnreadableImage:  # an image that was in no file, or has gone since
        return Shown("", path, edge)


def _examples(run: TrainedRun, names: set[str]) -> dict[str, str]:
    """A training image of each class, where it is still there; of an added one, the first collected."""
    files = {each.name: str(run.path / each.files[0]) for each in run.changes.added}
    found = {name: _picture(file).source for name, file in files.items() if name in names}
    try:
        own = Thumbnails(run.manifest, ["train"])
    except UserError:
        return found
    labels = own.rows["train"]["label"].tolist()
    return found | {name: own.thumbnail("train", labels.index(name)) for name in sorted(names & set(labels))}
