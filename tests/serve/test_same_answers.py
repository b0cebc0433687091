"""A service answers as `oltr predict` does."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from oltr.cli.main import _run
from tests.helpers.serving import files, serving, upload

NUMBERS = {  # and how near they must be; a distance to the memory depends on the batch in its last digits
    "probability": 1e-6,
    "second_probability": 1e-6,
    "calibrated_probability": 5e-6,  # logits over a temperature below 1
    "unknown_score": 1e-5,
    "reachability": 1e-4,
}


def predicted(run: Path, images: Path, out: Path, *words: str) -> list[dict[str, str]]:
    """The rows of `oltr predict`."""
    _run(["predict", str(run), str(images), "--out", str(out), *words])
    with out.open(newline="", encoding="utf-8") as table:
        return list(csv.DictReader(table))


def assert_same(rows: list[dict[str, str]], answers: list[dict]) -> None:
    assert len(rows) == len(answers)
    for row, answer in zip(rows, answers, strict=True):
        assert answer["error"] == row["error"]
        assert (answer["label"] or "") == row["label"] and (answer["second_label"] or "") == row[
            "second_label"
        ]
        assert {None: "", True: "True", False: "False"}[answer["unknown"]] == row["unknown"]
        for column, near in NUMBERS.items():
            given = row.get(column, "")
            assert (answer[column] is None) == (given == ""), column
            assert not given or abs(answer[column] - float(given)) <= near, column


@pytest.fixture
def images(photo_folder, strangers, tmp_path) -> Path:
    """Known and unknown images, and two that cannot be read."""
    folder = tmp_path / "images"
    folder.mkdir()
    known = sorted((photo_folder / "test").rglob("*.png"))[::2]
    for number, file in enumerate([*known, *strangers["pink"], *strangers["cyan"]]):
        shutil.copy(file, folder / f"{number:02d}.png")
    (folder / "90.png").write_bytes(b"no image at all")
    (folder / "91.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut short")
    return folder


@pytest.mark.parametrize("kind", ["plain_run", "oltr_run"])
def test_served_answers_are_those_of_oltr_predict(kind, request, images, strangers, tmp_path):
    run = shutil.copytree(request.getfixturevalue(kind), tmp_path / "run")
    _run(["evaluate", str(run), "--unknown-rate", "0.3", "--keep"])  # so that some are unknown
    sent = sorted(images.iterdir())
    with serving(run) as client:

        def compared(name: str, *words: str, **query: str) -> list[dict]:
            rows = predicted(run, images, tmp_path / f"{name}.csv", *words)
            answers = client.post("/predict", files=files(sent), params=query).json()["predictions"]
            assert [answer["path"] for answer in answers] == [file.name for file in sent]
            assert_same(rows, answers)
            alone = [client.post("/predict", files=files([file]), params=query).json() for file in sent[::7]]
            assert_same(rows[::7], [each["predictions"][0] for each in alone])
            return answers

        before = compared("before")
        assert {answer["unknown"] for answer in before} == {True, False, None}
        ids = upload(client, strangers["pink"][:5])
        done = client.post("/add-class", json={"name": "lynx", "images": ids})
        assert done.status_code == 200, done.text
        after = compared("after")
        assert sum(answer["label"] == "lynx" and not answer["unknown"] for answer in after) >= 3
        compared("some", "--only", "red,lynx", only="red, lynx")
        kept = client.post("/images", files=files(sent)).json()["images"]
        for answer, record in zip(after, kept, strict=True):
            assert record["error"] == answer["error"]
            assert answer["error"] or {key: record[key] for key in ("label", "unknown")} == {
                key: answer[key] for key in ("label", "unknown")
            }
        client.post("/undo", json={}).raise_for_status()
        again = client.post("/predict", files=files(sent)).json()["predictions"]
        assert [each["label"] for each in again] == [each["label"] for each in before]


def test_nothing_of_a_prediction_is_kept(client, strangers):
    client.post("/predict", files=files(strangers["pink"])).raise_for_status()
    assert client.get("/state").json()["images"]["total"] == 0
    assert not (client.service.state.run.path / "uploads").exists()


def test_the_version_of_the_model_is_told_with_the_answers(client, strangers):
    def version() -> str:
        return client.post("/predict", files=files(strangers["cyan"][:1])).json()["model"]

    before = version()
    client.post(
        "/add-class", json={"name": "lynx", "images": upload(client, strangers["pink"][:3])}
    ).raise_for_status()
    assert version() != before
    assert version() == client.get("/health").json()["model"] == client.get("/state").json()["model"]


def test_a_class_with_a_comma_can_be_among_those_that_occur(folder, strangers):
    with serving(folder) as client:
        ids = upload(client, strangers["cyan"])
        name = {"name": "teal, dark", "images": ids[:5]}
        client.post("/add-class", json=name).raise_for_status()
        for only in (["teal, dark", "red"], ["teal, dark", "red,green"], ["teal, dark"]):
            answer = client.post("/predict", params={"only": only}, files=files(strangers["cyan"]))
            assert answer.status_code == 200, answer.text
            assert {each["label"] for each in answer.json()["predictions"]} == {"teal, dark"}
        assert client.post("/predict?only=teal", files=files(strangers["cyan"])).status_code == 400
