"""A Camera Trap Data Package (Camtrap DP 1.0.2): its description, deployments, media and observations.

An observation is of one image. Deployments come from the columns `deploymentID` (or `deployment`), `latitude`
and `longitude` of the table that named the images; without them all images are one deployment. Times are from
EXIF, else those of the files; a camera that tells no time zone is taken to be in UTC, and `timestampIssues`
marks the deployment.
"""

from __future__ import annotations

import csv
import json
import mimetypes
import re
import shutil
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from oltr.console import console
from oltr.data.photo_time import PhotoTime, photo_time
from oltr.errors import UserError
from oltr.runs.predictions.formats import Predictions

VERSION = "1.0.2"
SCHEMAS = f"https://raw.githubusercontent.com/tdwg/camtrap-dp/{VERSION}"
DEPLOYMENTS = ("deploymentID", "latitude", "longitude", "deploymentStart", "deploymentEnd", "timestampIssues")
MEDIA = (
    *("mediaID", "deploymentID", "timestamp", "filePath", "filePublic", "fileName", "fileMediatype"),
    "mediaComments",
)
OBSERVATIONS = (
    *("observationID", "deploymentID", "mediaID", "eventID", "eventStart", "eventEnd", "observationLevel"),
    *("observationType", "scientificName", "classificationMethod", "classifiedBy", "classificationTimestamp"),
    *("classificationProbability", "observationComments"),
)
# Classes that are no animal, under the names that people give them.
TYPES = {"empty": "blank", "blank": "blank", "human": "human", "person": "human", "vehicle": "vehicle"}


@dataclass
class Deployment:
    """A camera at a place, from its first image to its last."""

    latitude: str = ""
    longitude: str = ""
    moments: list[PhotoTime] = field(default_factory=list)  # the first and the last
    issues: bool = False

    def add(self, time: PhotoTime) -> None:
        both = sorted([*self.moments, time], key=lambda each: each.moment)
        self.moments, self.issues = [both[0], both[-1]], self.issues or time.of_file or not time.zone_known


def write_camtrap_dp(predictions: Predictions, out: Path) -> None:
    """The four files in the folder `out`, made beside it and then put there; other files there stay."""
    part = out.with_name(f".{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # what a killed command left
    try:
        part.mkdir(parents=True)
        _write(predictions, part, out)
        out.mkdir(exist_ok=True)
        for file in sorted(part.iterdir()):
            file.replace(out / file.name)
        part.rmdir()
    except OSError as problem:
        shutil.rmtree(part, ignore_errors=True)
        what = f"{out} could not be written: {problem.strerror}."
        raise UserError(what, try_this="another --out") from problem


def _write(predictions: Predictions, folder: Path, out: Path) -> None:
    deployments: dict[str, Deployment] = {}
    found: set[str] = set()
    table = predictions.images.table
    keys = next((table[name] for name in ("deploymentID", "deployment") if name in table), None)
    latitudes, longitudes = table.get("latitude"), table.get("longitude")
    with ExitStack() as files:
        media, observations = (
            _writer(files, folder / f"{name}.csv", columns)
            for name, columns in (("media", MEDIA), ("observations", OBSERVATIONS))
        )
        for number, row in enumerate(predictions.rows()):
            key = (keys.iloc[number] if keys is not None else "") or "all"
            deployment = deployments.setdefault(
                key,
                Deployment(
                    "" if latitudes is None else latitudes.iloc[number],
                    "" if longitudes is None else longitudes.iloc[number],
                ),
            )
            time = None if predictions.images.pack else photo_time(row["path"])
            if time is not None:
                deployment.add(time)
            label = observation(row)
            found |= {label["scientificName"]} - {""}
            names = {"mediaID": f"m{number + 1}", "deploymentID": key}
            moment = predictions.begun if time is None else time.text
            media.writerow(names | _file(predictions, row, time, out) | {"timestamp": moment})
            observations.writerow(
                names
                | label
                | {"observationID": f"o{number + 1}", "eventID": row.get("sequence", "")}
                | {"eventStart": moment, "eventEnd": moment, "observationLevel": "media"}
                | {"classificationMethod": "machine", "classifiedBy": predictions.maker}
                | {"classificationTimestamp": predictions.begun}
            )
        rows = _writer(files, folder / "deployments.csv", DEPLOYMENTS)
        for key, deployment in deployments.items():
            rows.writerow(_described(key, deployment, predictions.begun))
    text = json.dumps(_package(predictions, deployments, sorted(found), out), indent=1, ensure_ascii=False)
    (folder / "datapackage.json").write_text(text + "\n", encoding="utf-8")
    if not all(map(_placed, deployments.values())):
        console.warn(
            "deployments.csv lacks latitude and longitude, which the standard requires: columns of these "
            "names in the table that names the images, or fill them in"
        )
    console.say("contributors and project in datapackage.json are yours to fill in")


def observation(row: dict[str, Any]) -> dict[str, Any]:
    """What is observed in an image: an animal of a class, one of none, or nothing for want of an answer."""
    if row["error"]:
        found = {"observationType": "unclassified", "scientificName": "", "observationComments": row["error"]}
        return found | {"classificationProbability": ""}
    label, share = row["label"], row["calibrated_probability"]
    share = row["probability"] if share is None else share
    if row["unknown"]:
        comments = f"none of the known classes; likeliest {label}"
        return {
            "observationType": "unknown",
            "scientificName": "",
            "classificationProbability": "",
            "observationComments": comments,
        }
    kind = TYPES.get(label.casefold(), "animal")
    return {
        "observationType": kind,
        "scientificName": label if kind == "animal" else "Homo sapiens" if kind == "human" else "",
        "classificationProbability": round(min(share, 1.0), 6),
        "observationComments": "",
    }


def _file(predictions: Predictions, row: dict[str, Any], time: PhotoTime | None, out: Path) -> dict[str, Any]:
    path = Path(row["path"])
    kind = mimetypes.guess_type(path.name)[0] or "image/unknown"
    notes = ["time of the file"] if time is not None and time.of_file else ["no time"] if time is None else []
    name = predictions.seen_from(out, row["path"])
    # The standard takes relative paths that lead out of the package, and absolute ones, for unsafe.
    if predictions.images.pack is None and (name[:1] in "./~" or ".." in name or not _below(path, out)):
        name = path.absolute().as_uri().replace("..", "%2E%2E")
    return {
        "filePath": name,
        "filePublic": "false",
        "fileName": path.name,
        "fileMediatype": kind if kind.startswith("image/") else "image/unknown",
        "mediaComments": "; ".join(notes + ([row["error"]] if row["error"] else [])),
    }


def _below(path: Path, folder: Path) -> bool:
    return path.absolute().is_relative_to(folder.absolute())


def _described(key: str, deployment: Deployment, begun: str) -> dict[str, Any]:
    start, end = [time.text for time in deployment.moments] or [begun, begun]
    return {
        "deploymentID": key,
        "latitude": deployment.latitude,
        "longitude": deployment.longitude,
        "deploymentStart": start,
        "deploymentEnd": end,
        "timestampIssues": str(deployment.issues or not deployment.moments).lower(),
    }


def _package(
    predictions: Predictions, deployments: dict[str, Deployment], names: list[str], out: Path
) -> dict[str, Any]:
    days = [time.text[:10] for each in deployments.values() for time in each.moments]
    days = days or [date.fromisoformat(predictions.begun[:10]).isoformat()]
    points = sorted({(float(d.longitude), float(d.latitude)) for d in deployments.values() if _placed(d)})
    shapes = [{"type": "Point", "coordinates": list(point)} for point in points]
    return {
        "profile": f"{SCHEMAS}/camtrap-dp-profile.json",
        "name": re.sub(r"[^a-z0-9]+", "-", out.name.lower()),
        "created": predictions.begun,
        "contributors": [{"title": predictions.maker, "role": "contributor"}],
        "project": {
            "title": out.name,
            "samplingDesign": "opportunistic",
            "captureMethod": ["activityDetection"],
            "individualAnimals": False,
            "observationLevel": ["media"],
        },
        "spatial": shapes[0] if len(shapes) == 1 else {"type": "GeometryCollection", "geometries": shapes},
        "temporal": {"start": min(days), "end": max(days)},
        "taxonomic": [{"scientificName": name} for name in names],
        "resources": [
            {
                "name": name,
                "path": f"{name}.csv",
                "profile": "tabular-data-resource",
                "schema": f"{SCHEMAS}/{name}-table-schema.json",
                "format": "csv",
                "mediatype": "text/csv",
                "encoding": "utf-8",
            }
            for name in ("deployments", "media", "observations")
        ],
    }


def _placed(deployment: Deployment) -> bool:
    try:
        return abs(float(deployment.latitude)) <= 90 and abs(float(deployment.longitude)) <= 180
    except ValueError:
        return False


def _writer(files: ExitStack, path: Path, columns: tuple[str, ...]) -> csv.DictWriter[str]:
    file = files.enter_context(path.open("w", encoding="utf-8", newline=""))
    writer = csv.DictWriter(file, columns, lineterminator="\n", restval="")
    writer.writeheader()
    return writer
