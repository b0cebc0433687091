"""Images named, rejected and undone: what comes of it, and what is refused."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from oltr.serve import grouping
from tests.helpers.colours import COLOURS, UNKNOWN
from tests.helpers.serving import files, grouped, png, upload

GREY = (128, 128, 128)


@pytest.fixture
def ids(client, strangers) -> list[str]:
    return upload(client, strangers["cyan"])


def post(client, call: str, status: int = 200, **body) -> dict:
    answer = client.post(call, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def records(client, ids) -> list[dict]:
    return [client.get(f"/images/{number}").json() for number in ids]


def test_from_unknown_to_known_and_back(client, ids):
    assert {each["status"] for each in records(client, ids)} == {"unknown"}
    before = client.get("/state").json()
    done = post(client, "/add-class", name="teal", images=ids[:5], by="Ada")
    assert done["action"] == 1 and done["images"] == 5 and done["name"] == "teal"
    named, others = records(client, ids[:5]), records(client, ids[5:])
    assert {(each["status"], each["named"], each["action"]) for each in named} == {("named", "teal", 1)}
    assert sum(each["label"] == "teal" and each["status"] == "known" for each in others) >= 3
    changed = {each["id"]: each for each in done["changes"]}
    assert done["changed"] == len(changed)
    for record in named + others:
        now = "unknown" if record["unknown"] else record["label"]
        assert (record["id"] in changed) == (now != "unknown")
        if record["id"] in changed:
            change = changed[record["id"]]
            assert (change["before"], change["after"]) == ("unknown", now)
            assert change["probability_after"] == record["probability"]
    after = client.get("/state").json()
    assert after["revision"] > before["revision"] and after["classes"] == 7 and after["last_action"] == 1
    undone = post(client, "/undo", by="Ben")
    assert (undone["action"], undone["undone"], undone["kind"], undone["name"]) == (2, 1, "add", "teal")
    assert {each["id"] for each in undone["changes"]} == set(changed)
    assert {each["status"] for each in records(client, ids)} == {"unknown"}
    first, second = reversed(client.get("/history").json()["actions"])
    assert (first["kind"], first["by"], first["undone_by"], first["images"]) == ("add", "Ada", 2, 5)
    assert set(first["examples"]) == set(ids[:5])
    assert (second["kind"], second["by"], second["details"]["undoes"]) == ("undo", "Ben", 1)


def test_what_an_action_changed_is_told_later_too(client, ids):
    done = post(client, "/add-class", name="teal", images=ids[:5])
    assert client.get("/changes?action=1").json()["changes"] == done["changes"]
    post(client, "/rename-class", name="red", to="crimson")
    again = client.get("/changes?action=1").json()
    assert {each["id"]: each["after"] for each in again["changes"]} == {
        each["id"]: each["after"] for each in done["changes"]
    }
    client.delete(f"/images/{done['changes'][0]['id']}").raise_for_status()
    assert client.get("/changes?action=1").json()["total"] == again["total"] - 1
    missing = client.get("/changes?action=99")
    assert missing.status_code == 404 and "no action 99" in missing.json()["error"]


def test_a_name_that_exists_is_refused_with_who_gave_it(client, ids):
    post(client, "/add-class", name="Lynx", images=ids[:3], by="Ben")
    for name in ("Lynx", "lynx", " LYNX "):
        refused = post(client, "/add-class", 409, name=name, images=ids[3:5])
        assert "'Lynx'" in refused["error"]
        assert refused["conflicts"] == [{"name": "Lynx", "action": 1, "by": "Ben"}]
    trained = post(client, "/add-class", 409, name="red", images=ids[3:5])
    assert trained["conflicts"] == [{"name": "red", "action": None, "by": ""}]
    more = post(client, "/add-class", name="Lynx", images=ids[3:5], more=True, by="Ada")
    assert more["images"] == 2
    assert client.get("/images", params={"named": "Lynx"}).json()["total"] == 5


def test_images_that_somebody_named_or_rejected_meanwhile(client, ids):
    post(client, "/add-class", name="lynx", images=ids[:3], by="Ada")
    post(client, "/reject", images=ids[3:4], by="Ben")
    for call, body in (("/add-class", {"name": "bobcat"}), ("/reject", {})):
        refused = post(client, call, 409, images=ids[2:6], by="Cleo", **body)
        assert refused["conflicts"] == [
            {"id": ids[2], "status": "named", "named": "lynx", "action": 1, "by": "Ada"},
            {"id": ids[3], "status": "rejected", "named": None, "action": 2, "by": "Ben"},
        ]
    assert len(client.get("/history").json()["actions"]) == 2
    post(client, "/undo", action=2)
    post(client, "/add-class", name="bobcat", images=ids[3:6])


def test_images_that_are_gone_or_never_were(client, ids):
    client.delete(f"/images/{ids[0]}").raise_for_status()
    for call, body in (("/add-class", {"name": "lynx"}), ("/reject", {})):
        for number in (ids[0], "0" * 32):
            assert number in post(client, call, 404, images=[*ids[1:3], number], **body)["error"]
    for call in ("", "/thumbnail", "/picture", "/explanation"):
        answer = client.get(f"/images/{ids[0]}{call}")
        assert answer.status_code == 404 and answer.json()["why"] == "It was deleted, or never sent."
    assert client.delete(f"/images/{ids[0]}").status_code == 404
    assert client.get("/history").json()["actions"] == []


@pytest.mark.parametrize("call", ["/rename-class", "/remove-class", "/add-class"])
def test_a_class_that_is_not_there_is_suggested(client, ids, call):
    body = {"/rename-class": {"to": "x"}, "/remove-class": {}, "/add-class": {"images": ids, "more": True}}[
        call
    ]
    refused = post(client, call, 404, name="grene", **body)
    assert "'grene'" in refused["error"] and "green" in refused["try"]
    assert "Red" not in client.get("/classes").text
    assert post(client, call, 404, name="RED", **body)["try"] == "did you mean red?"


def test_a_removed_class_leaves_its_images_waiting(client, ids):
    post(client, "/add-class", name="teal", images=ids[:4])
    post(client, "/remove-class", name="teal", by="Ada")
    assert {each["status"] for each in records(client, ids)} == {"unknown"}
    post(client, "/add-class", name="petrol", images=ids[:4])
    assert {each["named"] for each in records(client, ids[:4])} == {"petrol"}
    post(client, "/rename-class", name="petrol", to="sea")
    assert {each["named"] for each in records(client, ids[:4])} == {"sea"}
    assert post(client, "/rename-class", 409, name="sea", to="Red")["error"].startswith(
        "The run knows a class"
    )


def test_an_action_that_others_build_on_is_undone_last(client, ids):
    post(client, "/add-class", name="teal", images=ids[:4])
    post(client, "/rename-class", name="teal", to="sea", by="Ada")
    post(client, "/add-class", name="sea", images=ids[4:6], more=True)
    refused = post(client, "/undo", 409, action=1)
    assert refused["conflicts"] == [
        {"action": 2, "kind": "rename", "name": "teal", "reason": "later", "by": "Ada", "to": "sea"},
        {"action": 3, "kind": "add", "name": "sea", "reason": "later", "by": ""},
    ]
    for number in (3, 2, 1):
        post(client, "/undo", action=number)
    assert {each["status"] for each in records(client, ids)} == {"unknown"}
    assert post(client, "/undo", 400)["error"].startswith("There is nothing to undo")


def test_a_new_name_is_told_as_it_is_kept(client):
    assert post(client, "/rename-class", name="red", to=" rose\u0301 ")["name"] == "ros\u00e9"
    assert "ros\u00e9" in [each["name"] for each in client.get("/classes").json()["classes"]]


def test_pictures_of_a_class_have_another_address_when_they_are_others(client, ids):
    def pictures() -> dict[str, bytes]:
        (teal,) = [each for each in client.get("/classes").json()["classes"] if each["name"] == "teal"]
        return {each: client.get(each).content for each in teal["examples"]}

    post(client, "/add-class", name="teal", images=ids[:3])
    first = pictures()
    post(client, "/undo")
    post(client, "/add-class", name="teal", images=ids[3:6])
    second = pictures()
    assert not first.keys() & second.keys() and set(first.values()).isdisjoint(second.values())
    for address, kept in ((next(iter(second)), "immutable"), (next(iter(first)), "no-cache")):
        assert kept in client.get(address).headers["cache-control"]
    assert client.get("/examples?name=teal").headers["cache-control"] == "no-cache"


def test_what_cannot_be_undone(client, ids):
    post(client, "/reject", images=ids[:1])
    post(client, "/undo", action=1, by="Ada")
    gone = post(client, "/undo", 409, action=1)
    assert gone["conflicts"] == [{"action": 2, "kind": "undo", "name": "", "reason": "undone", "by": "Ada"}]
    assert post(client, "/undo", 404, action=99)["error"] == "There is no action 99."


def test_images_that_do_not_agree_are_told_with_the_evidence(client):
    ids = upload(
        client, [("odd.png", png(COLOURS["black"], 9)), *(png(UNKNOWN["cyan"], i) for i in range(40))]
    )
    done = post(client, "/add-class", name="teal", images=ids)
    odd = done["warnings"][0]
    assert ids[0] in odd["images"] and len(odd["images"]) < 21
    assert "unlike the others: odd.png (" in odd["text"] and "like the rest of their class" in odd["text"]
    assert {each["named"] for each in records(client, ids)} == {"teal"}  # warned, and done


def test_images_that_look_like_a_known_class_are_told(client, photo_folder):
    ids = upload(client, sorted((photo_folder / "test" / "red").iterdir()))
    done = post(client, "/add-class", name="scarlet", images=ids)
    (known,) = [each for each in done["warnings"] if "look like the known class 'red'" in each["text"]]
    assert len(known["images"]) >= 4


def test_the_same_image_counts_once(client, strangers):
    first = client.post("/images", files=files(strangers["cyan"][:2] * 2)).json()
    assert first["again"] == 2 and len({each["id"] for each in first["images"]}) == 2
    again = client.post("/images", files=files([("other.png", strangers["cyan"][0].read_bytes())])).json()
    assert again["again"] == 1 and again["images"][0]["name"] == "0.png"
    done = post(client, "/add-class", name="teal", images=[first["images"][0]["id"]] * 3)
    assert done["images"] == 1
    counts = client.get("/state").json()["images"]
    assert (counts["total"], counts["named"], counts["unknown"] + counts["known"]) == (2, 1, 1)


def test_clusters_of_what_is_unknown_still(client, ids):
    grey = upload(client, [png(GREY, seed) for seed in range(8)])
    found = grouped(client)
    placed = [number for each in found["clusters"] for number in each["images"]]
    assert sorted(placed) == sorted(ids + grey) and found["waiting"] == 0
    assert [each["size"] for each in found["clusters"]] == [len(each["images"]) for each in found["clusters"]]
    listed = client.get("/unknowns").json()
    assert listed["total"] == 18 and {each["id"] for each in listed["images"]} == set(placed)
    assert [each["label_first"] for each in listed["images"]] == sorted(
        each["label_first"] for each in listed["images"]
    )
    mine = max(found["clusters"], key=lambda each: each["size"])["images"]
    post(client, "/reject", images=mine)
    left = client.get("/clusters").json()
    assert sorted(n for each in left["clusters"] for n in each["images"]) == sorted(set(placed) - set(mine))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_few_unknown_images_are_grouped_too(client, number):
    ids = upload(client, [png(GREY, seed) for seed in range(number)]) if number else []
    found = grouped(client)
    assert sorted(n for each in found["clusters"] for n in each["images"]) == sorted(ids)
    assert not client.get("/state").json()["clusters"]["busy"]
    assert grouped(client)["number"] == found["number"] + 1  # its thread lives


def test_a_grouping_that_fails_is_not_the_last(client, ids, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(grouping, "clustered", lambda *_: 1 / 0)
        assert grouped(client)["clusters"] == []
    assert grouped(client)["waiting"] == 0


def test_lists_are_cut_and_chosen(client, ids):
    post(client, "/add-class", name="teal", images=ids[:3])
    post(client, "/reject", images=ids[3:5])
    newest = client.get("/images?limit=4&offset=1").json()
    assert newest["total"] == 10 and [each["id"] for each in newest["images"]] == ids[::-1][1:5]
    for query, number in (("status=named", 3), ("status=rejected", 2), ("named=teal", 3), ("named=x", 0)):
        assert client.get(f"/images?{query}").json()["total"] == number
    counts = client.get("/state").json()["images"]
    teal = client.get("/images?label=teal").json()
    assert all(each["label"] == "teal" and not each["unknown"] for each in teal["images"])
    assert client.get("/images?label=unknown&status=unknown").json()["total"] == counts["unknown"]
    by_name = {each["name"]: each for each in client.get("/classes").json()["classes"]}
    assert by_name["teal"]["named"] == 3 and by_name["teal"]["recognised"] == teal["total"]
    assert by_name["teal"]["added"] and not by_name["red"]["added"] and by_name["red"]["train_count"] == 24
    assert client.delete("/images?status=rejected").json() == {"deleted": 2}
    assert client.delete("/images?status=rejected").json() == {"deleted": 0}


def test_an_explanation_is_a_picture(client, ids):
    answer = client.get(f"/images/{ids[0]}/explanation")
    assert answer.status_code == 200 and answer.headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(answer.content)).width > 200


def test_what_is_counted(client, ids):
    client.get(f"/images/{ids[0]}")
    client.request("BREW", "/images")
    text = client.get("/metrics").text
    assert 'oltr_images{status="unknown"} 10.0' in text
    assert 'oltr_requests_total{method="GET",route="/images/{number}",status="200"} 1.0' in text
    assert 'oltr_answers_total{answer="unknown"} 10.0' in text
    assert ids[0] not in text and "BREW" not in text


def test_an_action_that_is_on_disk_is_shown_whatever_fails_afterwards(client, ids, monkeypatch):
    def fails(*_: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("oltr.openworld.add_class.note_changes", fails)
        post(client, "/add-class", 503, name="teal", images=ids[:2])
    assert client.get("/state").json()["last_action"] == 1
    assert {each["named"] for each in records(client, ids[:2])} == {"teal"}
    post(client, "/add-class", 409, name="other", images=ids[:2])


def test_a_removal_is_not_undone_when_its_images_have_another_name(client, ids):
    post(client, "/add-class", name="teal", images=ids[:2])
    removed = post(client, "/remove-class", name="teal")["action"]
    named = post(client, "/add-class", name="petrol", images=ids[:2])["action"]
    conflict = post(client, "/undo", 409, action=removed)
    assert [each["action"] for each in conflict["conflicts"]] == [named]
    post(client, "/undo", action=named)
    post(client, "/undo", action=removed)
    assert {each["named"] for each in records(client, ids[:2])} == {"teal"}


def test_nothing_is_left_of_an_image_that_was_named_by_mistake(client, ids):
    collected = client.service.state.run.folder.collected
    post(client, "/add-class", name="teal", images=ids[:2])
    assert client.delete(f"/images/{ids[0]}").status_code == 204
    assert len(list(collected.iterdir())) == 2  # the class is learned from it
    post(client, "/undo")
    assert client.delete(f"/images/{ids[1]}").status_code == 204
    assert [file.stem for file in collected.iterdir()] == [ids[0]]
