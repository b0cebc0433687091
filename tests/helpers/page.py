"""The page of the service in a browser, and what people do there."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.browser import chromium

ASK = """([call, body]) => fetch(call, {method: 'POST', body: JSON.stringify(body),
    headers: {'content-type': 'application/json'}}).then(answer => answer.json())"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def visit(browser):
    """Opens the page as a person of its own; at the end nothing may have been asked of another host, nor any
    error told."""
    said, asked, people = [], [], []

    def opened(address: str, width: int = 1280, by: str = "", **options):
        person = browser.new_context(viewport={"width": width, "height": 850}, **options)
        person.set_default_timeout(20_000)
        page = person.new_page()
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        if by:
            page.fill("#by", by)
        people.append(person)
        return page

    def leave() -> None:
        while people:
            people.pop().close()

    opened.leave = leave  # type: ignore[attr-defined]
    # A refused request is told on the console by the browser itself.
    opened.refusals = {"401", "409"}  # type: ignore[attr-defined]
    yield opened
    leave()
    told = [line for line in said if not set(re.findall(r"\b\d{3}\b", line)) & opened.refusals]
    assert not told, told
    assert [url for url in asked if not re.match(r"(http://127\.0\.0\.1:\d+/|blob:|data:)", url)] == []


@pytest.fixture
def serve_page(serve, visit):
    """`serve`, every page closed before its server ends: an open one would go on asking, and tell of it."""

    @contextmanager
    def serving(run: Path, *words: str):
        with serve(run, *words) as server:
            try:
                yield server
            finally:
                visit.leave()

    return serving


def send(page, files: list[Path], images: int) -> None:
    """Choose files as a person does, and wait until they are among the images."""
    page.click("#tab-images")
    page.set_input_files("#files", files)
    page.wait_for_function("n => document.querySelector('#count-images').textContent == n", arg=str(images))


def to_unknowns(page):
    """The groups of unknown images; all of them in one selection."""
    page.click("#tab-unknowns")
    page.locator(".cluster").first.wait_for()
    return page.locator(".cluster")


def select_all(page) -> None:
    page.wait_for_function("() => document.querySelector('#waiting').hidden")  # all are in groups
    for check in page.locator(".cluster input[type=checkbox]").all():
        check.check()


def name(page, word: str) -> None:
    page.fill("#name-input", word)
    page.click("#name-submit")


def answers(page) -> list[str]:
    page.click("#tab-images")
    page.locator(".card.image").first.wait_for()
    return page.locator(".card.image .answer").all_text_contents()


def count(page, tab: str, value: int) -> None:
    """Wait until a tab has that number beside its name; nothing is 0."""
    text = f"n => document.querySelector('#count-{tab}').textContent == n"
    page.wait_for_function(text, arg=str(value or ""))
