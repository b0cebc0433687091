"""The page in a browser: the token, and what is told of the files that are sent."""

from __future__ import annotations

import re
import shutil

from tests.helpers.browser import needs_browser
from tests.helpers.colours import UNKNOWN
from tests.helpers.page import ASK, count, send
from tests.helpers.serving import png

pytestmark = needs_browser
TOKEN = "a-token-that-is-long-enough"
# A dropped folder: 200 files of which one seems to be an image, and one more image when `rest` is called.
DROP = """bytes => {
    const entry = (name, parts) => ({
        isFile: true, fullPath: '/' + name, file: done => done(new File(parts, name)),
    });
    const first = [entry('notes.jpg', ['text'])];
    for (let i = 1; i < 200; i += 1) first.push(entry(i + '.txt', ['text']));
    const last = new Promise(found => {
        window.rest = () => found([entry('pink.png', [new Uint8Array(bytes)])]);
    });
    const reads = [Promise.resolve(first), last, Promise.resolve([])];
    const folder = {createReader: () => ({readEntries: done => { reads.shift().then(done); }})};
    const drop = new Event('drop', {cancelable: true});
    drop.dataTransfer = {items: [{webkitGetAsEntry: () => folder}], files: []};
    dispatchEvent(drop);
}"""


def test_the_page_asks_for_the_token(visit, serve_page, plain_run, tmp_path):
    with serve_page(shutil.copytree(plain_run, tmp_path / "run"), "--token", TOKEN) as server:
        page = visit(server.address)
        page.fill("input", "something else that is wrong")
        page.keyboard.press("Enter")
        page.get_by_role("alert").filter(has_text=re.compile(".")).wait_for()
        page.fill("input", TOKEN)
        page.keyboard.press("Enter")
        page.locator("#count-classes").wait_for()
        count(page, "classes", 6)


def test_a_browser_that_keeps_no_cookie_is_told(visit, serve_page, plain_run, tmp_path):
    def without_cookie(route) -> None:
        assert route.fetch().status == 204
        route.fulfill(status=204)

    with serve_page(shutil.copytree(plain_run, tmp_path / "run"), "--token", TOKEN) as server:
        page = visit(server.address)
        page.route("**/login", without_cookie)
        page.route("**/state", lambda route: route.fulfill(status=401, json={"error": "A token is needed."}))
        page.fill("input", TOKEN)
        page.keyboard.press("Enter")
        page.get_by_role("alert").filter(has_text="did not keep the cookie").wait_for()


def test_files_that_are_no_images_are_told(visit, serve_page, plain_run, strangers, tmp_path):
    text = tmp_path / "notes.jpg"
    text.write_text("not an image")
    with serve_page(shutil.copytree(plain_run, tmp_path / "run")) as server:
        page = visit(server.address)
        send(page, [text, strangers["pink"][0]], 1)
        failed = page.locator("#upload-failed")
        failed.wait_for()
        assert "notes.jpg" in failed.text_content() and "not an image" in failed.text_content()


def test_a_folder_that_is_read_slowly_keeps_its_failures(visit, serve_page, plain_run, tmp_path):
    with serve_page(shutil.copytree(plain_run, tmp_path / "run")) as server:
        page = visit(server.address)
        count(page, "classes", 6)
        page.evaluate(DROP, list(png(UNKNOWN["pink"], seed=1)))
        failed = page.locator("#upload-failed", has_text="notes.jpg")
        failed.wait_for()
        page.evaluate("window.rest()")
        count(page, "images", 1)
        page.locator("#upload-stop", has_text="Close").wait_for()
        assert failed.is_visible()
        assert page.locator("#upload-text").text_content().startswith("2 images · ")


def test_images_rejected_before_are_told(visit, serve_page, plain_run, strangers, tmp_path):
    with serve_page(shutil.copytree(plain_run, tmp_path / "run")) as server:
        page = visit(server.address)
        send(page, strangers["pink"][:2], 2)
        first = page.evaluate("fetch('images').then(r => r.json()).then(r => r.images[0].id)")
        page.evaluate(ASK, ["reject", {"images": [first]}])
        page.set_input_files("#files", strangers["pink"][:2])
        page.locator("#upload-text", has_text="1 was rejected before").wait_for()
