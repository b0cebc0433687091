"""Who may ask, from where; and what names in a request cannot do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from oltr.serve.app import create_app
from oltr.serve.uploads import shown_name
from tests.helpers.colours import UNKNOWN
from tests.helpers.serving import LOCAL, files, png, serving, upload

TOKEN = "a-long-enough-token"
CHANGING = ("/images", "/add-class", "/rename-class", "/remove-class", "/reject", "/undo", "/clusters")


@pytest.fixture(scope="module")
def shared(plain_run, tmp_path_factory) -> Iterator[TestClient]:
    """One service for all tests that change nothing."""
    with serving(shutil.copytree(plain_run, tmp_path_factory.mktemp("shared") / "run")) as client:
        yield client


@pytest.fixture
def guarded(shared) -> TestClient:
    """The same with a token, and a client that does not know it."""
    return TestClient(create_app(shared.service, TOKEN), base_url=LOCAL)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer another-long-token"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": "Bearer"},
        {"authorization": b"Bearer \xff\xfe"},
        {"cookie": "oltr_token=wrong"},
        {"cookie": "oltr_token"},
        {"cookie": b"\xff[]=;;oltr_token"},
    ],
)
def test_without_the_token_nothing_is_told_or_changed(guarded, headers):
    for call in ("/state", "/images", "/classes", "/labels.csv", "/metrics", "/openapi.json", "/history"):
        answer = guarded.get(call, headers=headers)
        assert answer.status_code == 401 and "token" in answer.json()["error"], call
        assert answer.headers["content-type"] == "application/json"
    for call in (*CHANGING, "/predict"):
        assert guarded.post(call, headers=headers).status_code == 401, call
    assert guarded.delete("/images?status=known", headers=headers).status_code == 401
    assert TOKEN not in guarded.get("/state", headers=headers).text


def test_the_token_in_the_header_opens_all(guarded):
    headers = {"authorization": f"bearer {TOKEN}"}
    assert guarded.get("/state", headers=headers).json()["token"] is True
    assert guarded.post("/predict", headers=headers, files=files([png((9, 9, 9), 1)])).status_code == 200
    answer = guarded.get("/state", headers=headers | {"host": "photos.example.org"})
    assert answer.status_code == 200  # whoever knows the token may call it by any name


def test_login_gives_a_cookie_that_scripts_cannot_read(guarded):
    answer = guarded.post("/login", json={"token": "wrong"})
    assert answer.status_code == 401 and not guarded.cookies and "set-cookie" not in answer.headers
    answer = guarded.post("/login", json={"token": TOKEN})
    assert answer.status_code == 204
    assert {"httponly", "samesite=strict"} <= set(answer.headers["set-cookie"].lower().split("; "))
    assert guarded.get("/state").status_code == 200
    assert guarded.post("/undo", json={}).status_code == 400  # nothing to undo, but it may ask


def test_a_cookie_is_found_among_odd_ones_and_is_of_one_run(guarded, plain_run, tmp_path):
    """Cookies are of a machine, whatever the port: two services on it share the browser's."""
    guarded.post("/login", json={"token": TOKEN}).raise_for_status()
    ((name, value),) = guarded.cookies.items()
    guarded.cookies.clear()
    odd = f'prefs={{"a":1}}; {name}={value}; x'
    assert guarded.get("/state", headers={"cookie": odd}).status_code == 200
    with serving(shutil.copytree(plain_run, tmp_path / "other"), token="another-long-token") as other:
        other.post("/login", json={"token": "another-long-token"}).raise_for_status()
        assert name not in other.cookies


def test_who_has_no_token_cannot_send_much(guarded):
    def sent(call: str, kind: str, megabytes: float, **headers: str) -> int:
        headers["content-type"] = kind
        return guarded.post(call, content=b"x" * int(megabytes * 10**6), headers=headers).status_code

    form, known = "multipart/form-data; boundary=x", {"authorization": f"Bearer {TOKEN}"}
    for kind in (form, "application/json"):
        assert sent("/login", kind, 0.02) == 413
        assert sent("/predict", kind, 0.02) == sent("/images", kind, 0.02) == 401
    assert sent("/add-class", form, 11, **known) == sent("/health", form, 11) == 413
    assert sent("/predict", form, 11, **known) in (400, 422)


def test_who_does_not_know_the_token_gets_the_page_that_asks_for_it(guarded, shared):
    asking, page = guarded.get("/"), shared.get("/")
    assert asking.status_code == page.status_code == 200
    assert "password" in asking.text and asking.text != page.text
    assert guarded.get("/", headers={"authorization": f"Bearer {TOKEN}"}).text == page.text


def test_health_needs_no_token_and_tells_no_more_than_that(guarded):
    assert guarded.get("/health").json().keys() == {"status", "model", "version"}


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "10.0.0.7:8000", "", "[::1", "]["]
)
def test_without_a_token_only_this_machine_is_answered(shared, host):
    """A web page that gives its own name our address (DNS rebinding) names itself as the host."""
    for method, call in (("GET", "/state"), ("GET", "/"), ("GET", "/health"), ("POST", "/undo")):
        answer = shared.request(method, call, headers={"host": host})
        assert answer.status_code == 401, (method, call)
        assert "this machine" in answer.json()["error"]


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:8000", "127.0.0.2", "[::1]:8000"])
def test_this_machine_has_several_names(shared, host):
    assert shared.get("/state", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:3000", "http://[", "x"])
def test_another_sites_page_cannot_change_anything(client, strangers, origin):
    ids = upload(client, strangers["cyan"][:3])
    for call in (*CHANGING, "/predict", "/login"):
        answer = client.post(call, headers={"origin": origin})
        assert answer.status_code == 401 and "another site" in answer.json()["error"], call
    assert client.delete(f"/images/{ids[0]}", headers={"origin": origin}).status_code == 401
    own = client.post("/reject", json={"images": ids[:1]}, headers={"origin": LOCAL})
    assert own.status_code == 200


def test_every_answer_says_what_a_page_may_load(shared):
    for call in ("/state", "/static/none.js", "/nowhere", "/images/x"):
        headers = shared.get(call).headers
        assert "default-src 'self'" in headers["content-security-policy"], call
        assert headers["x-content-type-options"] == "nosniff"


NAMES = {
    "../../../etc/passwd": "etc/passwd",
    "/etc/passwd": "etc/passwd",
    "..\\..\\windows\\a.png": "windows/a.png",
    "C:\\photos\\a.png": "C:/photos/a.png",
    "a/./b/../c.png": "a/b/c.png",
    "nul\0byte.png": "nulbyte.png",
    "new\nline\r.png": "newline.png",
    "\u202egnp.exe": "gnp.exe",
    "zero\u200bwidth.png": "zerowidth.png",
    "...": "image",
    "": None,
    "x" * 300 + ".png": "x" * 196 + ".png",
    "ä" * 300: "ä" * 200,
    "e\u0301.png": "é.png",
    "日本/狐.jpg": "日本/狐.jpg",
    '"><img src=x onerror=alert(1)>.png': '"><img src=x onerror=alert(1)>.png',
}


def test_names_of_files_lead_nowhere(client, folder):
    """They are shown, and nothing more: files are called by their content."""
    before = set(folder.parent.rglob("*"))
    plain = {name: shown for name, shown in NAMES.items() if shown and not set(name) & set('"\0\n\\')}
    sent = [(name, png(UNKNOWN["cyan"], seed)) for seed, name in enumerate(plain)]
    found = client.post("/images", files=files(sent)).json()["images"]
    assert [each["name"] for each in found] == list(plain.values())
    uploads = folder / "uploads"
    new = {path for path in set(folder.parent.rglob("*")) - before if not path.is_relative_to(uploads)}
    assert not new
    assert {path.stem for path in uploads.glob("*.png")} == {each["id"] for each in found}


def test_control_letters_in_names_are_not_shown():
    for name, shown in NAMES.items():
        assert shown_name(name) == (shown or "image"), name
    assert shown_name(None) == "image" and shown_name("\ud800.png") == "?.png"


@pytest.mark.parametrize(
    "number",
    ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "x" * 32, "A" * 32, "a" * 31, "a" * 33, "%00", "a%0a" * 8],
)
def test_an_id_is_32_hex_digits_or_nothing(shared, number):
    for call in ("", "/thumbnail", "/picture", "/explanation"):
        answer = shared.get(f"/images/{number}{call}")
        assert answer.status_code in (404, 422), call
        assert "root:" not in answer.text
    assert shared.delete(f"/images/{number}").status_code in (404, 405, 422)


@pytest.mark.parametrize("name", ["../..", "/etc", "red/../../..", "\0", "red\n", "x" * 5000, ""])
def test_examples_are_of_classes_by_name_and_not_of_paths(shared, name):
    answer = shared.get("/examples", params={"name": name})
    assert answer.status_code == 404 and "no picture" in answer.json()["error"]


def test_an_example_is_a_picture_of_the_class(shared):
    for each in shared.get("/classes").json()["classes"]:
        assert 1 <= len(each["examples"]) <= 6
        answer = shared.get(each["examples"][0])
        assert answer.status_code == 200 and answer.headers["content-type"] == "image/jpeg"
    assert shared.get("/examples", params={"name": "red", "number": 99}).status_code == 404
    assert shared.get("/examples", params={"name": "red", "number": -1}).status_code == 422


def test_odd_class_names_are_only_names(client, folder, strangers):
    before = set(folder.parent.iterdir())
    ids = upload(client, strangers["cyan"][:3])
    for name in ("../../up", "a/b", "..", ".", "CON", "a\\b", '<b>"x"</b>', "a,b", "=1+1"):
        named_and_removed(client, name, ids)
    assert set(folder.parent.iterdir()) == before


def named_and_removed(client, name: str, ids: list[str]) -> None:
    client.post("/add-class", json={"name": name, "images": ids}).raise_for_status()
    assert client.get("/classes").json()["classes"][-1]["name"] == name
    assert client.get("/images", params={"named": name}).json()["total"] == 3
    assert client.get("/examples", params={"name": name}).status_code == 200
    client.post("/remove-class", json={"name": name}).raise_for_status()


NO_NAMES = [" ", "a\0b", "a\u202eb", "unknown", "Unknown ", "\u200b", "a\u200d", "\u200ca", "1\u200d2"]


@pytest.mark.parametrize("name", [*NO_NAMES, "un\u200cknown", "a\u200c\u200cb"])
def test_what_is_no_name_for_a_class_is_refused(client, strangers, name):
    ids = upload(client, strangers["cyan"][:3])
    answer = client.post("/add-class", json={"name": name, "images": ids})
    assert answer.status_code == 400 and "no name for a class" in answer.json()["error"]
    assert client.get("/history").json()["actions"] == []


def test_joiners_within_words_are_part_of_a_name(client, strangers):
    ids = upload(client, strangers["cyan"][:4])
    persian, hindi = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0915\u094d\u200d\u0937"
    for name, some in ((persian, ids[:2]), (hindi, ids[2:])):
        answer = client.post("/add-class", json={"name": name, "images": some})
        assert answer.status_code == 200 and answer.json()["name"] == name
    for name in (persian.replace("\u200c", ""), "re\u200cd"):  # by eye another class's
        assert client.post("/rename-class", json={"name": hindi, "to": name}).status_code == 409


def test_the_page_is_asked_for_again_each_time(guarded):
    first = guarded.get("/static/api.js")
    assert first.status_code == 200 and first.headers["cache-control"] == "no-cache"
    again = guarded.get("/static/api.js", headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 304 and again.headers["cache-control"] == "no-cache"


MISSHAPEN = {
    "/add-class": [{}, {"name": "lynx"}, {"name": "", "images": ["0" * 32]}, {"name": "x", "images": []}],
    "/reject": [[], "x", 1, None, {"images": "0" * 32}, {"images": ["x"]}, {"images": ["0" * 32], "more": 1}],
    "/rename-class": [{"name": "red"}, {"name": "red", "to": 1}, {"name": "red", "to": "x" * 201}],
    "/remove-class": [{"name": None}, {"name": "red", "by": "x" * 81}],
    "/undo": [{"action": "x"}, {"action": 0}, {"action": -1}, {"action": 10**30}, {"action": 1.5}],
    "/login": [{}, {"token": 1}, {"token": "x" * 1001}],
}


def test_a_request_of_another_shape_is_refused_with_what_is_wrong(shared):
    for call, bodies in MISSHAPEN.items():
        for body in bodies:
            answer = shared.post(call, json=body)
            assert answer.status_code == 422, (call, body)
            assert answer.json().keys() == {"error", "why", "try"} and answer.json()["why"]
    for text in (
        "{",
        "\xff",
        '{"\\ud800": 1}',
        '{"by": "\\ud800"}',
        "[" * 50_000,
        '{"action": 1e999}',
        "NaN",
    ):
        answer = shared.post(
            "/undo", content=text.encode("latin-1"), headers={"content-type": "application/json"}
        )
        assert answer.status_code in (400, 422), text[:20]
        json.loads(answer.text)
    assert shared.post("/images", files=[("others", ("a.png", b"x"))]).status_code == 422
    assert shared.post("/images", json={"files": []}).status_code == 422
    odd = shared.post("/images", content=b"x", headers={"content-type": "multipart/form-data; boundary="})
    assert odd.status_code in (400, 422)
    for query in ("limit=0", "limit=1001", "offset=-1", "status=x", "offset=" + "9" * 5000):
        assert shared.get(f"/images?{query}").status_code == 422, query
    assert shared.get("/changes?action=0").status_code == 422
    assert shared.delete("/images").status_code == 422


def test_a_failure_of_the_service_tells_nothing_of_its_inside(shared, monkeypatch):
    quiet = TestClient(create_app(shared.service), base_url=LOCAL, raise_server_exceptions=False)
    monkeypatch.setattr(type(shared.service.state), "changes", lambda *_: 1 / 0)
    answer = quiet.get("/changes?action=1")
    assert answer.status_code == 500 and "ZeroDivision" not in answer.text
