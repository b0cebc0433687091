"""The page while answers are awaited: what is done then is done to what is seen."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.helpers.browser import needs_browser
from tests.helpers.page import ASK, count, name, send, to_unknowns

pytestmark = needs_browser


@pytest.fixture
def server(serve_page, plain_run, tmp_path):
    with serve_page(shutil.copytree(plain_run, tmp_path / "run")) as running:
        yield running


class Held:
    """Requests to addresses that fit stay unanswered until `release`."""

    def __init__(self, page, address: str):
        self.page, self.address, self.routes, self.open = page, re.compile(address), [], False
        page.route(self.address, self._asked)

    def _asked(self, route) -> None:
        if self.open:
            route.continue_()
        else:
            self.routes.append(route)

    def wait(self) -> None:
        """Until there is one."""
        for _ in range(1000):
            if self.routes:
                return
            self.page.wait_for_timeout(20)  # routes are told while one waits for the page
        raise AssertionError(f"nothing was asked of {self.address.pattern}")

    def release(self) -> None:
        self.open = True
        for route in self.routes:
            route.continue_()


def posted(page) -> list[tuple[str, dict]]:
    """Calls that the page makes from now on, as they come."""
    calls: list[tuple[str, dict]] = []

    def asked(request) -> None:
        if request.method == "POST":
            calls.append((request.url.rpartition("/")[2], request.post_data_json))

    page.on("request", asked)
    return calls


def test_the_focus_stays_on_its_action_when_another_comes(visit, server):
    ada = visit(server.address, by="Ada")
    ada.evaluate(ASK, ["rename-class", {"name": "red", "to": "crimson", "by": "Ada"}])
    ada.click("#tab-history")
    ada.locator(".card.action").first.focus()
    ada.evaluate(ASK, ["rename-class", {"name": "blue", "to": "azure", "by": "Ben"}])
    ada.locator(".card.action").nth(1).wait_for()
    calls = posted(ada)
    ada.keyboard.press("u")
    ada.locator(".card.action.undone").wait_for()
    assert [body["action"] for call, body in calls if call == "undo"] == [1]
    assert ada.locator(".card.action.undone").get_attribute("data-action") == "1"


def test_keys_wait_for_the_image_that_is_coming(visit, server, strangers):
    page = visit(server.address)
    send(page, strangers["cyan"][:3], 3)
    page.locator("#filter-count", has_text="3 images").wait_for()
    cards = page.locator(".card.image")
    first, second, third = (cards.nth(place).get_attribute("data-id") for place in range(3))
    cards.first.click()
    page.locator("#detail-reject").wait_for()
    calls = posted(page)
    held = Held(page, f"images/{second}$")
    page.keyboard.press("ArrowRight")
    held.wait()
    assert page.locator("#detail-reject").is_disabled()
    page.keyboard.press("r")
    held.release()
    page.locator("#detail-reject:not([disabled])").wait_for()
    page.keyboard.press("r")
    page.locator(f"#detail[data-id='{third}'] #detail-reject:not([disabled])").wait_for()
    assert [body["images"] for call, body in calls if call == "reject"] == [[second]]
    assert first is not None


def test_an_explanation_that_comes_late_is_not_shown_under_the_next_image(visit, server, strangers):
    page = visit(server.address)
    send(page, strangers["cyan"][:2], 2)
    page.locator("#filter-count", has_text="2 images").wait_for()
    page.locator(".card.image").first.click()
    held = Held(page, "/explanation$")
    page.click("#detail-why")
    held.wait()
    page.keyboard.press("ArrowRight")
    page.locator("#detail-previous:not([disabled])").wait_for()
    with page.expect_response(re.compile("/explanation$")):
        held.release()
    page.click("#detail-why:not([disabled])")  # its own comes after the late one
    page.locator("#detail .why img").wait_for()
    shown = page.locator("#detail .why img").get_attribute("alt")
    assert shown.endswith(page.locator("#detail h2").text_content())


def test_a_group_opened_while_groups_are_read_stays_open(visit, server, strangers):
    page = visit(server.address)
    send(page, strangers["cyan"], 10)
    to_unknowns(page)
    page.wait_for_function("() => document.querySelector('#waiting').hidden")
    held = Held(page, "/clusters$")
    page.evaluate(ASK, ["rename-class", {"name": "red", "to": "crimson"}])
    held.wait()
    page.locator(".cluster .open").first.click()
    page.locator(".pick").first.wait_for()
    with page.expect_response(re.compile("/clusters$")):
        held.release()
    count(page, "history", 1)
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.locator("#cluster-view").is_visible() and "/" in page.evaluate("location.hash")
    assert page.locator(".pick[aria-selected=true]").count() == page.locator(".pick").count() > 0


def test_undo_that_met_a_busy_service_is_tried_again(visit, server, strangers):
    page = visit(server.address, by="Ada")
    send(page, strangers["cyan"], 10)
    to_unknowns(page).first.locator(".name").click()
    name(page, "cyan")
    page.locator("#changed").wait_for()
    page.click("#changed-close")
    visit.refusals.add("503")
    page.route("**/undo", lambda route: route.fulfill(status=503, json={"error": "busy for a moment"}))
    page.keyboard.press("u")
    page.locator(".toast", has_text="busy for a moment").wait_for()
    page.unroute("**/undo")
    calls = posted(page)
    page.keyboard.press("u")
    count(page, "history", 2)
    assert [(call, body["action"]) for call, body in calls] == [("undo", 1)]


def test_only_what_was_asked_about_is_deleted(visit, server, strangers):
    page = visit(server.address)
    send(page, strangers["cyan"][:4], 4)
    count(page, "unknowns", 4)
    page.click("#tab-history")
    page.click("#storage-buttons [data-status=unknown]")
    page.locator("#confirm").wait_for()
    other = visit(server.address)
    send(other, strangers["cyan"][4:6], 6)
    other.close()
    page.locator("#confirm .danger").click()
    page.locator(".toast", has_text="Nothing was deleted: 6 images are unknown now, not 4.").wait_for()
    count(page, "images", 6)
    page.click("#storage-buttons [data-status=unknown]")
    page.locator("#confirm .danger").click()
    count(page, "images", 0)
