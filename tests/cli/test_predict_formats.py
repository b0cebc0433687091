"""The forms that others read, checked against what their documentation demands."""

from __future__ import annotations

import csv
import json
import os
import re
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from oltr import Recognizer
from tests.helpers.pictures import picture

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)"
# Camtrap DP 1.0.2, table by table: field → (required, pattern); "" may stand in fields that are not required.
CAMTRAP = {
    "deployments": {
        "deploymentID": (True, ".+"),
        "latitude": (True, r"-?\d+(\.\d+)?"),
        "longitude": (True, r"-?\d+(\.\d+)?"),
        "deploymentStart": (True, TIME),
        "deploymentEnd": (True, TIME),
        "timestampIssues": (False, "true|false"),
    },
    "media": {
        "mediaID": (True, ".+"),
        "deploymentID": (True, ".+"),
        "timestamp": (True, TIME),
        "filePath": (True, r"(?=^[^./~])(^((?!\.{2}).)*$).*"),
        "filePublic": (True, "true|false"),
        "fileName": (False, ".*"),
        "fileMediatype": (True, "(image|video|audio)/.+"),
        "mediaComments": (False, ".*"),
    },
    "observations": {
        "observationID": (True, ".+"),
        "deploymentID": (True, ".+"),
        "mediaID": (False, ".+"),
        "eventID": (False, ".*"),
        "eventStart": (True, TIME),
        "eventEnd": (True, TIME),
        "observationLevel": (True, "media|event"),
        "observationType": (True, "animal|human|vehicle|blank|unknown|unclassified"),
        "scientificName": (False, ".*"),
        "classificationMethod": (False, "human|machine"),
        "classifiedBy": (False, ".*"),
        "classificationTimestamp": (False, TIME),
        "classificationProbability": (False, r"0(\.\d+)?|1(\.0)?"),
        "observationComments": (False, ".*"),
    },
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def photos(images, tmp_path) -> Path:
    """JPEGs with and without times in them, and one that is no picture; named by list.csv."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(3):
        exif = Image.Exif()
        exif.get_ifd(0x8769)[0x9003] = f"2024:05:01 10:00:0{number}"
        if number == 0:
            exif.get_ifd(0x8769)[0x9011] = "+02:00"
        Image.fromarray(picture(str(number), 40)).save(folder / f"{number}.jpg", exif=exif)
    Image.fromarray(picture("x", 40)).save(folder / "no..time.png")
    (folder / "bad.jpg").write_text("no picture")
    os.utime(folder / "no..time.png", (1_700_000_000, 1_700_000_000))
    rows = [
        (f"photos/{name}", "north" if name < "2" else "south")
        for name in sorted(file.name for file in folder.iterdir())
    ]
    table = pd.DataFrame(rows, columns=["path", "deployment"])
    table = table.assign(latitude=["51.5", "51.5", "-3", "-3", "-3"], longitude="4.25")
    table.to_csv(tmp_path / "list.csv", index=False)
    return folder


def run(oltr, *words) -> str:
    said = oltr("predict", *words)
    assert said.code == 0, said.err
    return said.err


def test_timelapse(oltr, trained, photos):
    run(oltr, trained["oltr"], "list.csv", "--format", "timelapse")
    run(oltr, trained["oltr"], "list.csv")
    result, table = json.loads(Path("timelapse.json").read_text()), pd.read_csv("predictions.csv")
    names = Recognizer.load(trained["oltr"]).classes_
    assert set(result) == {"info", "detection_categories", "classification_categories", "images"}
    info, classes = result["info"], result["classification_categories"]
    assert info["format_version"] == "1.6" and set(info) <= {
        *("format_version", "detector", "detection_completion_time", "classifier"),
        *("classification_completion_time", "detector_metadata", "classifier_metadata", "summary_report"),
    }
    datetime.strptime(info["classification_completion_time"], "%Y-%m-%d %H:%M:%S")
    for categories in (result["detection_categories"], classes):
        assert all(re.fullmatch(r"\d+", number) and name for number, name in categories.items())
    assert list(classes.values()) == [*names, "unknown"]
    assert [image["file"] for image in result["images"]] == table["path"].tolist()
    for image, row in zip(result["images"], table.itertuples(), strict=True):
        if isinstance(row.error, str):
            assert image["failure"] == row.error and image["detections"] is None
            continue
        (detection,) = image["detections"]
        assert "failure" not in image and detection["category"] in result["detection_categories"]
        assert isinstance(detection["conf"], float) and 0 <= detection["conf"] <= 1
        x, y, width, height = detection["bbox"]
        assert 0 <= x <= x + width <= 1 and 0 <= y <= y + height <= 1
        found = detection["classifications"]
        shares = [share for _, share in found]
        assert shares == sorted(shares, reverse=True) and all(number in classes for number, _ in found)
        answers = [classes[number] for number, _ in found]
        assert answers[0] == ("unknown" if row.unknown else row.label)
        assert answers[-5:] == list(json.loads(row.top5))


def test_paths_from_the_folder_of_the_result(oltr, trained, photos):
    run(oltr, trained["plain"], photos, "--format", "timelapse", "--out", photos / "t.json")
    files = [image["file"] for image in json.loads((photos / "t.json").read_text())["images"]]
    assert files == ["0.jpg", "1.jpg", "2.jpg", "bad.jpg", "no..time.png"]


def test_coco(oltr, trained, photos):
    run(oltr, trained["oltr"], "list.csv", "--format", "coco")
    run(oltr, trained["oltr"], "list.csv")
    result, table = json.loads(Path("coco.json").read_text()), pd.read_csv("predictions.csv")
    good = table[table["error"].isna()]
    categories = {entry["id"]: entry["name"] for entry in result["categories"]}
    assert len(categories) == len(result["categories"]) == 7 and 0 not in categories
    assert all(isinstance(number, int) for number in categories)
    images = {entry["id"]: entry for entry in result["images"]}
    assert len(images) == len(result["images"]) == 4
    assert [image["file_name"] for image in images.values()] == good["path"].tolist()
    assert all((image["width"], image["height"]) == (40, 40) for image in images.values())
    assert len({entry["id"] for entry in result["annotations"]}) == 4
    for entry, row in zip(result["annotations"], good.itertuples(), strict=True):
        assert images[entry["image_id"]]["file_name"] == row.path
        assert categories[entry["category_id"]] == ("unknown" if row.unknown else row.label)
        assert entry["score"] == pytest.approx(row.probability) and "bbox" not in entry
        assert categories[entry["likeliest_category_id"]] == row.label
    assert [entry["file_name"] for entry in result["failures"]] == ["photos/bad.jpg"]


def tables(folder: Path) -> dict[str, list[dict[str, str]]]:
    """The package's tables, each cell checked."""
    found = {}
    for name, fields in CAMTRAP.items():
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            found[name] = list(csv.DictReader(file))
        for row in found[name]:
            assert set(row) <= set(fields) and {n for n, (needed, _) in fields.items() if needed} <= set(row)
            for column, cell in row.items():
                required, pattern = fields[column]
                assert (cell == "" and not required) or re.fullmatch(pattern, cell), (name, column, cell)
    return found


def package(folder: Path) -> dict:
    """datapackage.json, its required parts checked."""
    described = json.loads((folder / "datapackage.json").read_text())
    parts = ("resources", "profile", "created", "contributors", "project", "spatial", "temporal", "taxonomic")
    assert set(parts) <= set(described) and "/1.0.2/" in described["profile"]
    assert re.fullmatch(TIME, described["created"]) and re.fullmatch(r"[a-z0-9._/-]+", described["name"])
    assert all(each["title"] for each in described["contributors"])
    project = described["project"]
    assert project["title"] and project["individualAnimals"] is False
    assert project["samplingDesign"] in ("opportunistic", "targeted") and project["observationLevel"] == [
        "media"
    ]
    assert set(project["captureMethod"]) <= {"activityDetection", "timeLapse"} and project["captureMethod"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", described["temporal"][end]) for end in ("start", "end"))
    assert [resource["name"] for resource in described["resources"]] == [
        "deployments",
        "media",
        "observations",
    ]
    for resource in described["resources"]:
        assert resource["profile"] == "tabular-data-resource" and (folder / resource["path"]).is_file()
        assert resource["schema"].endswith(f"/1.0.2/{resource['name']}-table-schema.json")
    return described


def test_camtrap_dp(oltr, trained, photos):
    said = run(oltr, trained["oltr"], "list.csv", "--format", "camtrap-dp")
    run(oltr, trained["oltr"], "list.csv")
    found, described = tables(Path("camtrap-dp")), package(Path("camtrap-dp"))
    predicted = pd.read_csv("predictions.csv")
    assert "lacks latitude" not in said and sorted(f.name for f in Path("camtrap-dp").iterdir()) == [
        "datapackage.json", "deployments.csv", "media.csv", "observations.csv",
    ]  # fmt: skip
    north, south = found["deployments"]
    assert (north["deploymentID"], north["latitude"], north["longitude"]) == ("north", "51.5", "4.25")
    assert (north["deploymentStart"], north["deploymentEnd"]) == (
        "2024-05-01T10:00:00+02:00", "2024-05-01T10:00:01Z",
    )  # fmt: skip
    assert (south["deploymentID"], south["timestampIssues"]) == ("south", "true")
    assert (
        described["spatial"]["type"] == "GeometryCollection" and len(described["spatial"]["geometries"]) == 2
    )
    media = found["media"]
    assert [row["fileName"] for row in media] == [Path(path).name for path in predicted["path"]]
    assert media[0]["filePath"] == f"file://{photos}/0.jpg" and media[0]["fileMediatype"] == "image/jpeg"
    assert media[4]["timestamp"] == "2023-11-14T22:13:20Z" and "time of the file" in media[4]["mediaComments"]
    for key in ("mediaID",):
        assert len({row[key] for row in media}) == len(media)
    observations = found["observations"]
    assert len({row["observationID"] for row in observations}) == len(observations) == len(media)
    assert [row["mediaID"] for row in observations] == [row["mediaID"] for row in media]
    assert {row["deploymentID"] for row in observations} <= {
        row["deploymentID"] for row in found["deployments"]
    }
    run_names = set()
    for row, answer in zip(observations, predicted.itertuples(), strict=True):
        assert row["classificationMethod"] == "machine" and answer.model in row["classifiedBy"]
        if isinstance(answer.error, str):
            assert row["observationType"] == "unclassified" and row["observationComments"] == answer.error
        elif answer.unknown:
            assert row["observationType"] == "unknown" and row["scientificName"] == ""
            assert answer.label in row["observationComments"]
        else:
            assert (row["observationType"], row["scientificName"]) == ("animal", answer.label)
            share = answer.calibrated_probability
            assert float(row["classificationProbability"]) == pytest.approx(share, abs=1e-6)
            run_names.add(answer.label)
    assert {taxon["scientificName"] for taxon in described["taxonomic"]} == run_names


def test_camtrap_dp_without_places_and_beside_other_files(oltr, trained, photos):
    out = photos / "package"
    out.mkdir()
    said = run(oltr, trained["plain"], photos, "--format", "camtrap-dp", "--out", out)
    assert "lacks latitude and longitude" in said
    (only,) = csv.DictReader((out / "deployments.csv").open())
    assert only["deploymentID"] == "all" and only["latitude"] == ""
    package(out)
    (out / "mine.txt").write_text("mine")
    oltr("predict", trained["plain"], photos, "--format", "camtrap-dp", "--out", out).refused("there already")
    run(oltr, trained["plain"], photos, "--format", "camtrap-dp", "--out", out, "--overwrite")
    assert (out / "mine.txt").read_text() == "mine" and not list(photos.glob("*.part"))


def test_classes_that_are_no_animals():
    from oltr.runs.predictions.formats.camtrap_dp import observation

    row = {"error": "", "unknown": False, "calibrated_probability": None, "probability": np.float64(1.0)}
    kinds = {"Empty": ("blank", ""), "person": ("human", "Homo sapiens"), "vehicle": ("vehicle", "")}
    for label, (kind, name) in (kinds | {"Vulpes vulpes": ("animal", "Vulpes vulpes")}).items():
        found = observation(row | {"label": label})
        assert (found["observationType"], found["scientificName"]) == (kind, name)


@pytest.mark.parametrize("format", ["timelapse", "coco"])
def test_a_pack_in_other_forms(oltr, trained, pack, format):
    run(oltr, trained["plain"], pack, "--format", format)
    images = json.loads(Path(f"{format}.json").read_text())["images"]
    assert images[0].get("file", images[0].get("file_name")).startswith("train/")
    run(oltr, trained["plain"], pack, "--format", "camtrap-dp")
    with Path("camtrap-dp/media.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(images)
