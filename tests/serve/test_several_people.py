"""Many people at once: every acknowledged action once in the history, every image with one name at most."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from oltr.serve.intake import Intake
from oltr.serve.limits import Limits
from tests.helpers.colours import UNKNOWN
from tests.helpers.serving import files, png, serving, upload

PEOPLE = 8


def at_once(work: Callable[[int], object]) -> list:
    """What each of the people got, all having begun at the same moment."""
    start = threading.Barrier(PEOPLE)

    def begun(person: int) -> object:
        start.wait()
        return work(person)

    with ThreadPoolExecutor(PEOPLE) as pool:
        return list(pool.map(begun, range(PEOPLE)))


def check(client, acknowledged: dict[int, tuple[str, set[str]]]) -> None:
    """The history is what was acknowledged, and the images have the names that follow from it."""
    actions = {each["id"]: each for each in client.get("/history").json()["actions"]}
    assert sorted(actions) == list(range(1, len(actions) + 1))
    assert sorted(acknowledged) == sorted(actions)
    expected = {
        image: (actions[number]["kind"], number)
        for number, (_, images) in acknowledged.items()
        for image in images
        if actions[number]["kind"] in ("add", "reject") and actions[number]["undone_by"] is None
    }
    assert sum(
        len(images)
        for number, (_, images) in acknowledged.items()
        if number in {place for _, place in expected.values()}
    ) == len(expected)
    for each in client.get("/images?limit=1000").json()["images"]:
        kind, number = expected.get(each["id"], (None, None))
        assert each["action"] == number
        assert each["named"] == (acknowledged[number][0] if kind == "add" else None)


def test_the_same_image_from_all_is_kept_and_counted_once(folder, monkeypatch):
    image = png(UNKNOWN["cyan"], 0)
    store, together = Intake._store, threading.Barrier(PEOPLE)

    def stored(*words):  # all have seen by now that the image is new
        together.wait(30)
        return store(*words)

    monkeypatch.setattr(Intake, "_store", stored)
    with serving(folder, Limits(kept_bytes=len(image))) as client:
        answers = at_once(lambda _: client.post("/images", files=files([image])))
        assert [each.status_code for each in answers] == [200] * PEOPLE
        assert sum(each.json()["again"] for each in answers) == PEOPLE - 1
        assert len({each.json()["images"][0]["id"] for each in answers}) == 1
        assert client.get("/state").json()["bytes"] == len(image)


def test_different_images_are_all_named(client):
    ids = upload(client, [png(UNKNOWN["cyan"], seed) for seed in range(4 * PEOPLE)])

    def name(person: int):
        mine = ids[4 * person : 4 * person + 4]
        answer = client.post(
            "/add-class", json={"name": f"class {person}", "images": mine, "by": f"person {person}"}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()["action"], f"class {person}", set(mine)

    check(client, {action: (name, images) for action, name, images in at_once(name)})
    assert client.get("/state").json()["classes"] == 6 + PEOPLE


def test_the_same_images_have_one_name_and_the_others_are_told_whose(client):
    ids = upload(client, [png(UNKNOWN["cyan"], seed) for seed in range(4)])

    def name(person: int):
        return client.post(
            "/add-class", json={"name": f"class {person}", "images": ids, "by": f"person {person}"}
        )

    answers = at_once(name)
    assert Counter(each.status_code for each in answers) == {200: 1, 409: PEOPLE - 1}
    (winner,) = [person for person, each in enumerate(answers) if each.status_code == 200]
    for person, each in enumerate(answers):
        if person != winner:
            assert {(c["by"], c["named"]) for c in each.json()["conflicts"]} == {
                (f"person {winner}", f"class {winner}")
            }
    check(client, {1: (f"class {winner}", set(ids))})


def test_the_same_name_is_given_once(client):
    ids = upload(client, [png(UNKNOWN["cyan"], seed) for seed in range(2 * PEOPLE)])
    answers = at_once(
        lambda person: client.post(
            "/add-class", json={"name": "teal", "images": ids[2 * person : 2 * person + 2], "by": f"{person}"}
        )
    )
    assert Counter(each.status_code for each in answers) == {200: 1, 409: PEOPLE - 1}
    (winner,) = [str(person) for person, each in enumerate(answers) if each.status_code == 200]
    told = [each.json()["conflicts"] for each in answers if each.status_code == 409]
    assert told == [[{"name": "teal", "action": 1, "by": winner}]] * (PEOPLE - 1)


def test_everything_at_once_through_two_services(folder):
    """Half of the people at each; they upload, name, reject, undo and delete, partly the same images."""
    with serving(folder) as one, serving(folder) as two:
        shared = upload(one, [png(UNKNOWN["cyan"], seed) for seed in range(12)])

        def busy(person: int) -> dict[int, tuple[str, set[str]]]:
            client, done = (one, two)[person % 2], {}
            own = upload(client, [png(UNKNOWN["pink"], 1000 * person + seed) for seed in range(3)])
            for turn in range(3):
                name = f"{person}-{turn}"
                wanted = {shared[(person + 3 * turn) % 12], shared[(person + 1) % 12], own[turn]}
                call, body = ("/reject", {}) if turn == 1 else ("/add-class", {"name": name})
                answer = client.post(call, json={"images": sorted(wanted), **body})
                assert answer.status_code in (200, 409), answer.text
                if answer.status_code == 200:
                    done[answer.json()["action"]] = (name, wanted)
                    if person % 3 == 0:
                        undone = client.post("/undo", json={"action": answer.json()["action"]})
                        assert undone.status_code == 200, undone.text
                        done[undone.json()["action"]] = (name, set())
            extra = upload(client, [png(UNKNOWN["pink"], 1000 * person + 99)])
            assert client.delete(f"/images/{extra[0]}").status_code == 204
            return done

        acknowledged: dict[int, tuple[str, set[str]]] = {}
        for done in at_once(busy):
            assert not acknowledged.keys() & done.keys()
            acknowledged |= done
        for client in (one, two):
            check(client, acknowledged)
            assert client.get("/state").json()["images"]["total"] == 12 + 3 * PEOPLE
    with serving(folder) as again:
        check(again, acknowledged)
