"""What a service knows is on disk: after a restart, beside other processes, and when it is deleted."""

from __future__ import annotations

import csv
import os
import shutil
import time
from pathlib import Path

import pytest

from oltr.cli.main import _run
from oltr.data.sources import read_source
from oltr.openworld.add_class import add_class
from oltr.runs.learned_images import content_digest
from oltr.runs.trained_run import TrainedRun
from oltr.serve import actions
from oltr.serve.uploads import ABANDONED
from tests.helpers.colours import UNKNOWN
from tests.helpers.serving import files, grouped, png, serving, upload

CALLS = ("/images?limit=1000", "/classes", "/history", "/labels.csv")
GREY = (128, 128, 128)


def told(client) -> list[str]:
    """All that a page shows."""
    return [client.get(call).text for call in CALLS]


def named(client, name: str, ids: list[str], **more) -> int:
    answer = client.post("/add-class", json={"name": name, "images": ids, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["action"]


def test_after_a_restart_all_is_as_it_was(folder, strangers):
    with serving(folder) as client:
        ids = upload(client, strangers["cyan"]) + upload(client, [png(GREY, seed) for seed in range(6)])
        named(client, "teal", ids[:4], by="Ada")
        client.post("/reject", json={"images": ids[4:6], "by": "Ben"}).raise_for_status()
        client.post("/rename-class", json={"name": "teal", "to": "sea"}).raise_for_status()
        clusters, before = grouped(client), told(client)
        pictures = [client.get(f"/images/{number}/thumbnail").content for number in ids]
    with serving(folder) as client:
        assert told(client) == before
        assert client.get("/clusters").json()["clusters"] == clusters["clusters"]
        assert [client.get(f"/images/{number}/thumbnail").content for number in ids] == pictures
        for action in (3, 2, 1):
            client.post("/undo", json={"action": action}).raise_for_status()
        after = client.get("/images?limit=1000").json()["images"]
        assert {each["named"] for each in after} == {None} and client.get("/state").json()["classes"] == 6
    assert len(TrainedRun(folder).class_names) == 6


def test_deleting_takes_files_and_rows_but_no_class(folder, strangers):
    with serving(folder) as client:
        ids = upload(client, strangers["cyan"])
        named(client, "teal", ids[:5])
        before = client.post("/predict", files=files(strangers["cyan"])).json()["predictions"]
        for number in ids[:6]:
            assert client.delete(f"/images/{number}").status_code == 204
        assert client.delete("/images?status=unknown").json()["deleted"] <= 4
        known = client.get("/state").json()["images"]["known"]
        assert client.delete(f"/images?status=known&at_most={known - 1}").status_code == 409
        assert client.get("/state").json()["images"]["known"] == known > 0
        assert client.delete(f"/images?status=known&at_most={known}").json()["deleted"] == known
        assert client.get("/state").json()["images"]["total"] == 0 == client.get("/state").json()["bytes"]
        assert [file for file in (folder / "uploads").rglob("*") if file.suffix in (".png", ".jpg")] == []
        assert client.service.state.uploads.ids() == set()
        assert client.post("/predict", files=files(strangers["cyan"])).json()["predictions"] == before
        (teal,) = [each for each in client.get("/classes").json()["classes"] if each["added"]]
        assert client.get(teal["examples"][0]).status_code == 200  # its own copies
        labels = client.get("/labels.csv").text
        again = upload(client, strangers["cyan"][:1])
        assert client.get(f"/images/{again[0]}").json()["named"] == "teal"
    assert labels.count("teal") == 5


def test_files_of_a_killed_upload_are_cleaned(folder, strangers):
    with serving(folder) as client:
        (number,) = upload(client, strangers["cyan"][:1])
        kept = sorted((folder / "uploads").rglob("*.*"))
    orphan = "f" * 32
    left = [
        folder / "uploads" / f"{orphan}.png",
        folder / "uploads" / f".{orphan}.png.99.part",
        folder / "uploads" / "thumbnails" / f"{orphan}.jpg",
        folder / "uploads" / "thumbnails" / f"{number}.77.part",
    ]
    fresh = folder / "uploads" / ("e" * 32 + ".png")  # of another process that is at work
    for file in (*left, fresh):
        file.write_bytes(b"x")
    for file in left:
        os.utime(file, (time.time() - 2 * ABANDONED,) * 2)
    with serving(folder) as client:
        assert client.get("/state").json()["images"]["total"] == 1
        assert sorted((folder / "uploads").rglob("*.*")) == sorted([*kept, fresh])


def test_labels_are_a_source_that_can_be_trained_on(folder, strangers, tmp_path):
    with serving(folder) as client:
        cyan, pink = upload(client, strangers["cyan"]), upload(client, strangers["pink"])
        named(client, "teal, dark", cyan, by='A "quoted" name\nof two lines')
        named(client, "rosé", pink[:8])
        client.post("/reject", json={"images": pink[8:]}).raise_for_status()
        answer = client.get("/labels.csv")
        assert answer.headers["content-disposition"] == 'attachment; filename="labels.csv"'
    table = tmp_path / "labels.csv"
    table.write_bytes(answer.content)
    manifest = read_source(table)
    assert manifest.classes == ("rosé", "teal, dark") and len(manifest.rows("train")) == 18
    contents = {
        content_digest((manifest.root / path).read_bytes()) for path in manifest.rows("train")["path"]
    }
    assert contents == {*cyan, *pink[:8]}
    _run(["train", str(table), "--method", "plain", "--dry-run", "--out", str(tmp_path / "anew")])


def test_no_label_is_a_formula_for_a_spreadsheet(folder, strangers):
    with serving(folder) as client:
        names = ["=1+1.png", "@a.png", "a-b.png"]
        sent = [(name, png(UNKNOWN["cyan"], seed)) for seed, name in enumerate(names)]
        named(client, "-x", upload(client, sent), by="+49 30")
        table = list(csv.DictReader(client.get("/labels.csv").text.splitlines()))
    assert [each["name"] for each in table] == ["'=1+1.png", "'@a.png", "a-b.png"]
    assert {(each["by"], each["label"]) for each in table} == {("'+49 30", "-x")}


def test_an_image_that_is_deleted_at_once_is_told_by_its_name(folder, monkeypatch):
    with serving(folder) as client:
        intake, keep = client.service.intake, client.service.intake.keep

        def kept(sent):
            found = keep(sent)
            intake.delete(found[0][:1])
            return found

        monkeypatch.setattr(intake, "keep", kept)
        sent = files([("one.png", png(GREY, 0)), ("two.png", png(GREY, 1))])
        first, second = client.post("/images", files=sent).json()["images"]
    assert first == {"name": "one.png", "error": "it was deleted at once"} and second["name"] == "two.png"


def test_another_process_is_noticed_by_the_next_request(folder, strangers):
    with serving(folder) as client:
        ids = upload(client, strangers["cyan"])
        before = client.get("/state").json()
        for number in (1, 2, 3):  # also quickly one after another
            run = TrainedRun(folder)
            add_class(run, f"class {number}", strangers["cyan"][2 * number : 2 * number + 2])
            assert f"class {number}" in client.get("/classes").text
            assert client.get("/state").json()["last_action"] == number
        after = client.get("/state").json()
        assert after["revision"] > before["revision"] and after["model"] != before["model"]
        assert client.get(f"/images/{ids[2]}").json()["named"] == "class 1"
        named(client, "mine", ids[:2], by="Ada")
    assert TrainedRun(folder).class_names[-4:] == ["class 1", "class 2", "class 3", "mine"]


def test_the_command_line_works_beside_the_service(folder, strangers, tmp_path):
    images = tmp_path / "lynx"
    images.mkdir()
    for file in strangers["cyan"][:5]:
        shutil.copy(file, images)
    with serving(folder) as client:
        upload(client, strangers["cyan"])
        _run(["add-class", str(folder), "lynx", str(images)])
        assert client.get("/images?named=lynx").json()["total"] == 5
        assert client.post("/undo", json={}).json()["name"] == "lynx"
        assert client.get("/images?named=lynx").json()["total"] == 0


def test_another_rejection_rule_holds_from_the_next_request_on(folder, strangers, capsys):
    with serving(folder) as client:
        ids = upload(client, [*strangers["cyan"], *strangers["pink"]])
        named(client, "teal", ids[:3])
        before = client.get("/state").json()
        assert before["images"]["known"] < 17
        for threshold, known in ((0, 17), (1, 0)):
            _run(["evaluate", str(folder), "--score", "softmax", "--threshold", str(threshold), "--keep"])
            after = client.get("/state").json()
            assert after["images"]["known"] == known and after["last_action"] == 1
            assert after["revision"] > before["revision"]
            predicted = client.post("/predict", files=files(strangers["pink"])).json()["predictions"]
            assert {each["unknown"] for each in predicted} == {known == 0}
        _run(["evaluate", str(folder), "--score", "odin", "--threshold", "0", "--keep"])
        assert client.get("/state").json()["images"]["known"] == 0  # the old one, since odin is not served
        assert "not taken up" in capsys.readouterr().err
        named(client, "more", ids[3:5])


def test_two_services_of_one_run_see_each_other(folder, strangers):
    with serving(folder) as one, serving(folder) as two:
        ids = upload(one, strangers["cyan"][:5])
        ids += upload(two, strangers["cyan"][5:])
        for client in (one, two):
            assert client.get("/state").json()["images"]["total"] == 10
        named(one, "teal", ids[:3], by="Ada")
        refused = two.post("/add-class", json={"name": "sea", "images": ids[2:4], "by": "Ben"})
        assert refused.status_code == 409 and refused.json()["conflicts"][0]["by"] == "Ada"
        named(two, "sea", ids[3:6], by="Ben")
        assert told(one) == told(two)
        two.delete(f"/images/{ids[9]}").raise_for_status()
        assert one.get(f"/images/{ids[9]}").status_code == 404
        assert one.get("/state").json()["images"]["total"] == 9


def test_a_change_while_an_action_is_decided_on_is_looked_at_again(folder, strangers, monkeypatch):
    """Another process is quicker by a moment: nothing is lost, and who was slower is told."""
    with serving(folder) as one, serving(folder) as two:
        ids = upload(one, strangers["cyan"])
        two.get("/state")
        learn, quicker = actions.learn_class, iter(["teal", "sea"])

        def interrupted(run, name, new, **options):
            other = next(quicker, None)
            if other is not None and name == "mine":
                monkeypatch.setattr(actions, "learn_class", learn)
                upload(two, [png(UNKNOWN["cyan"], 77)])
                named(two, other, ids[5:7] if other == "teal" else ids[:1])
                monkeypatch.setattr(actions, "learn_class", interrupted)
            return learn(run, name, new, **options)

        monkeypatch.setattr(actions, "learn_class", interrupted)
        answer = one.post("/add-class", json={"name": "mine", "images": ids[:3]})
        assert answer.status_code == 409 and answer.json()["conflicts"][0]["named"] == "sea"
        assert one.get("/state").json()["images"]["total"] == 11
        assert named(one, "mine", ids[1:3]) == 3
        assert told(one) == told(two)


def test_outputs_of_other_weights_are_made_anew(folder, strangers, capsys):
    with serving(folder) as client:
        ids = upload(client, strangers["cyan"][:3])
        before = [client.get(f"/images/{number}").json() for number in ids]
        uploads = client.service.state.uploads
        with uploads.history.database() as database:
            database.execute("UPDATE uploads SET model = 'older', outputs = zeroblob(length(outputs))")
        gone = upload(client, strangers["cyan"][3:4])[0]
        with uploads.history.database() as database:
            database.execute("UPDATE uploads SET model = 'older'")
        lost = next(uploads.folder.glob(f"{gone}.*"))
        content = lost.read_bytes()
        lost.write_bytes(b"a disk with a bad day")
    with serving(folder) as client:
        assert client.get(f"/images/{gone}").status_code == 404
        assert client.get("/state").json()["images"]["total"] == 3
        assert "is left out" in capsys.readouterr().err
        upload(client, strangers["cyan"][4:5])  # which has the rows read again
        assert client.get("/state").json()["images"]["total"] == 4
        assert lost.read_bytes() == b"a disk with a bad day"
        assert upload(client, [content]) == [gone] and client.get(f"/images/{gone}").status_code == 200
        assert lost.read_bytes() == content
        assert client.delete(f"/images/{gone}").status_code == 204
        lost.write_bytes(content)
    with serving(folder) as client:
        after = [client.get(f"/images/{number}").json() for number in ids]
        assert [each["label"] for each in after] == [each["label"] for each in before]
        assert [each["probability"] for each in after] == pytest.approx(
            [each["probability"] for each in before], abs=1e-6
        )


def test_a_lost_thumbnail_is_made_anew_and_a_lost_file_is_told(folder, strangers):
    with serving(folder) as client:
        (number,) = upload(client, strangers["cyan"][:1])
        shutil.rmtree(folder / "uploads" / "thumbnails")
        assert client.get(f"/images/{number}/thumbnail").status_code == 200
        for file in Path(folder / "uploads").glob("*.png"):
            file.unlink()
        assert client.get(f"/images/{number}/picture").status_code in (400, 404)
        assert client.get(f"/images/{number}").status_code == 200
        assert client.post("/add-class", json={"name": "x", "images": [number]}).status_code == 503
        assert client.delete(f"/images/{number}").status_code == 204
