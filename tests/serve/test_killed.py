"""SIGKILL while people label: what was acknowledged is there, and nothing is half-done."""

from __future__ import annotations

import random
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from oltr.runs.learned_images import content_digest
from oltr.runs.trained_run import TrainedRun
from tests.helpers.colours import UNKNOWN
from tests.helpers.serving import files, png

ACTIONS = 25  # acknowledged by one person, at most, before the server is killed


@dataclass
class Seen:
    """What a person's requests were acknowledged, and what was asked without an answer."""

    images: set[str] = field(default_factory=set)
    added: dict[int, tuple[str, list[str]]] = field(default_factory=dict)
    rejected: dict[int, list[str]] = field(default_factory=dict)
    undone: dict[int, int] = field(default_factory=dict)

    @property
    def actions(self) -> set[int]:
        return {*self.added, *self.rejected, *self.undone}


def label(address: str, person: int, seen: Seen, acknowledged: threading.Semaphore) -> None:
    """Upload, name, reject and undo until the server is gone."""
    seed = 100_000 * person

    def post(call: str, **body) -> dict:
        answer = client.post(call, json={"by": f"person {person}", **body})
        assert answer.status_code == 200, answer.text
        acknowledged.release()
        return answer.json()

    with httpx.Client(base_url=address, timeout=60) as client:
        try:
            while True:
                seed += 10
                answer = client.post("/images", files=files(png(UNKNOWN["cyan"], seed + i) for i in range(3)))
                ids = [each["id"] for each in answer.json()["images"]]
                seen.images |= set(ids)
                name = f"class {person} {seed}"
                number = post("/add-class", name=name, images=ids[:2])["action"]
                seen.added[number] = (name, ids[:2])
                seen.rejected[post("/reject", images=ids[2:])["action"]] = ids[2:]
                if seed % 20 == 0:
                    seen.undone[post("/undo", action=number)["action"]] = number
        except httpx.TransportError:
            return


def check(folder: Path, everybody: list[Seen], address: str) -> None:
    """The server that was started again knows all that was acknowledged, and all that it knows is whole."""
    with sqlite3.connect(folder / "history.sqlite") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with httpx.Client(base_url=address, timeout=60) as client:
        actions = {each["id"]: each for each in client.get("/history").json()["actions"]}
        images = {each["id"]: each for each in _pages(client)}
        classes = [each["name"] for each in client.get("/classes").json()["classes"]]
        rows = client.post("/predict", files=files([png(UNKNOWN["cyan"], 7)])).json()["predictions"]
    assert rows[0]["label"] in classes
    assert sorted(actions) == list(range(1, len(actions) + 1))
    for seen in everybody:
        assert seen.actions <= actions.keys() and seen.images <= images.keys()
        for number, (name, ids) in seen.added.items():
            assert (actions[number]["kind"], actions[number]["name"]) == ("add", name)
            if actions[number]["undone_by"] is None:
                assert {images[each]["named"] for each in ids} == {name}
        for number, ids in seen.rejected.items():
            assert {images[each]["status"] for each in ids} == {"rejected"} and actions[number]["images"] == 1
        for number, undone in seen.undone.items():
            assert actions[undone]["undone_by"] == number
    run = TrainedRun(folder)
    assert run.class_names == classes
    for action in run.history.actions():
        for image in action.images:
            assert content_digest((folder / image.kept).read_bytes()) == Path(image.kept).stem
    holding = [each for each in actions.values() if each["kind"] == "add" and each["undone_by"] is None]
    assert classes[6:] == [each["name"] for each in sorted(holding, key=lambda each: each["id"])]
    for number in images:
        (file,) = (folder / "uploads").glob(f"{number}.*")
        assert content_digest(file.read_bytes()) == number


def _pages(client: httpx.Client):
    for offset in range(0, 10**6, 1000):
        found = client.get(f"/images?limit=1000&offset={offset}").json()["images"]
        yield from found
        if len(found) < 1000:
            return


def killed(serve, folder: Path, everybody: list[Seen], moment: random.Random) -> None:
    """Kill once, at a random moment of a random request."""
    acknowledged = threading.Semaphore(0)
    with serve(folder) as server:
        everybody[:] = [*everybody, Seen(), Seen()]
        first = len(everybody) - 2
        with ThreadPoolExecutor(2) as pool:
            people = [
                pool.submit(label, server.address, number, everybody[number], acknowledged)
                for number in (first, first + 1)
            ]
            try:
                for _ in range(moment.randint(1, ACTIONS)):
                    assert acknowledged.acquire(timeout=60)
                threading.Event().wait(moment.random() * 0.05)  # anywhere within a request
            finally:
                server.kill()
        for person in people:
            person.result()
    with serve(folder) as server:
        check(folder, everybody, server.address)


def test_killed_three_times(serve, folder):
    everybody: list[Seen] = []
    for number in range(3):
        killed(serve, folder, everybody, random.Random(number))


@pytest.mark.soak
def test_killed_fifty_times(serve, plain_run, tmp_path):
    done, moment = 0, random.Random()
    for number in range(10):
        folder, everybody = Path(shutil.copytree(plain_run, tmp_path / str(number))), []
        for _ in range(5):
            killed(serve, folder, everybody, moment)
            done += 1
    assert done == 50
