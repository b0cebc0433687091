"""The page in a browser: no request, no error, sorting, filtering, themes, and a phone's width."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oltr.report.page.write import write_page
from tests.helpers.browser import chromium, needs_browser
from tests.report.made_run import made_pack, made_run

pytestmark = needs_browser
NAMES = ["zebra", "<script>fail()</script>", "Class 10", "class 9", "ant & bee"]


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    pack = made_pack(folder / "data", NAMES, (150, 40, 120, 5, 7))
    runs = [
        made_run(folder / name, pack, seed=seed, sure=2.0) for seed, name in enumerate(("first", "second"))
    ]
    write_page(runs, folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def visit(browser, written):
    """Opens the page; at the end nothing may have been asked of any network, nor any error told."""
    said, asked, pages = [], [], []

    def opened(width=1280, scheme="light"):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(written.as_uri())
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert said == []
    assert {url for url in asked if not url.startswith("data:")} == {written.as_uri()}


def column(page, number):
    return page.eval_on_selector_all(
        "#class-table tbody tr:not([hidden])", f"rows => rows.map(row => row.cells[{number}].textContent)"
    )


def test_sorting_by_click_and_by_keyboard(visit):
    page = visit()
    assert column(page, 2) == ["150", "120", "40", "7", "5"]
    heads = page.locator("#class-table thead tr:last-child th")
    assert heads.nth(2).get_attribute("aria-sort") == "descending"
    heads.nth(0).locator("button").click()
    # Letters without regard to case, numbers by value.
    assert column(page, 0) == ["<script>fail()</script>", "ant & bee", "class 9", "Class 10", "zebra"]
    assert [heads.nth(n).get_attribute("aria-sort") for n in range(3)] == ["ascending", "none", "none"]
    heads.nth(0).locator("button").press("Enter")
    assert column(page, 0)[0] == "zebra" and heads.nth(0).get_attribute("aria-sort") == "descending"
    heads.nth(3).locator("button").click()
    accuracies = [float(cell) for cell in column(page, 3)]
    assert accuracies == sorted(accuracies) and len(set(accuracies)) > 1


def test_filtering(visit):
    page = visit()
    assert page.locator("#filter-count").text_content() == "5 of 5 classes"
    page.fill("#filter-name", "CLASS")
    assert column(page, 0) == ["Class 10", "class 9"]
    assert page.locator("#filter-count").text_content() == "2 of 5 classes"
    page.select_option("#filter-group", "few")
    assert column(page, 0) == ["class 9"]
    page.locator("#class-table thead tr:last-child th button").first.click()
    assert column(page, 0) == ["class 9"]  # sorting keeps the filter
    page.fill("#filter-name", "")
    assert column(page, 0) == ["ant & bee", "class 9"]
    page.press("#filter-name", "Enter")
    assert page.url.endswith("report.html")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen(visit, width, scheme):
    page = visit(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    broken = "images => images.filter(image => !image.complete || !image.naturalWidth).length"
    assert page.eval_on_selector_all("img", broken) == 0
    assert len(page.query_selector_all("figure img")) > 5


def test_the_class_column_keeps_its_heading_beside_it(visit):
    page = visit(390)
    page.evaluate("document.querySelector('.scroll.tall').scrollLeft = 200")
    lefts = "cells => cells.map(cell => cell.getBoundingClientRect().left)"
    heads = page.eval_on_selector_all("#class-table tr > :first-child", lefts)
    others = page.eval_on_selector_all("#class-table tr > :nth-child(3)", lefts)
    assert len(set(heads)) == 1 and max(others) < heads[0]  # the others have gone behind


BEYOND = "boxes => boxes.map(box => box.scrollWidth - box.clientWidth)"


def test_on_a_phone_figures_fit_until_they_are_enlarged(visit):
    page = visit(390)
    page.click("#unfold")
    assert max(page.eval_on_selector_all("figure .scroll", BEYOND)) == 0
    page.click("#figure-class-gain .enlarge")
    assert page.eval_on_selector_all("#figure-class-gain .scroll", BEYOND)[0] > 50
    assert page.eval_on_selector("#figure-class-gain img", "image => image.clientWidth") > 400
    page.click("#figure-class-gain .enlarge")
    assert page.eval_on_selector_all("#figure-class-gain .scroll", BEYOND) == [0]
    assert not visit(1280).locator(".enlarge").first.is_visible()


def test_figures_are_folded_until_asked_for(visit):
    page = visit()
    images = page.locator("details.figure img")
    assert images.count() > 5 and not any(image.is_visible() for image in images.all())
    page.click("#figure-confusion summary")
    assert page.locator("#figure-confusion img").is_visible()
    page.click("#unfold")
    assert all(image.is_visible() for image in images.all())
    page.click("#unfold")
    assert not any(image.is_visible() for image in images.all())


@pytest.mark.parametrize("width", [1280, 390])
def test_the_first_screen_has_headline_images_and_chart(visit, width):
    page = visit(width)
    bottoms = {
        what: page.eval_on_selector(what, "part => part.getBoundingClientRect().bottom")
        for what in ("h1", ".strip", ".bars")
    }
    assert bottoms["h1"] < bottoms[".strip"] < bottoms[".bars"] < 900
    assert page.locator(".bars li").count() == len(NAMES)
    # Neither a thumbnail nor a name is cut at the side.
    shown = page.locator(".strip li, .strip span:not(.hidden), .bars .name").all()
    wider = "part => part.scrollWidth - part.clientWidth"
    assert max(part.evaluate(wider) for part in shown if part.is_visible()) <= 1


def test_on_a_phone_the_page_of_one_run_is_not_cut_anywhere(browser, written, tmp_path):
    write_page([written.parent / "first"], tmp_path / "one.html")
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto((tmp_path / "one.html").as_uri())
    page.click("#unfold")
    cut = page.eval_on_selector_all(".scroll, pre, nav", BEYOND)
    assert cut and max(cut) == 0
    page.close()


def background(page):
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return "dark" if sum(map(int, re.findall(r"\d+", colour)[:3])) < 384 else "light"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_and_the_button(visit, scheme):
    page = visit(scheme=scheme)
    other = "light" if scheme == "dark" else "dark"
    assert background(page) == scheme
    page.click("#theme")
    assert background(page) == other
    page.reload()
    assert background(page) == other  # kept
    page.click("#theme")
    assert background(page) == scheme


def test_paper_is_light_and_whole(visit):
    page = visit(scheme="dark")
    page.emulate_media(media="print")
    assert background(page) == "light"
    assert not page.locator("#filter").is_visible() and not page.locator("header.bar").is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_the_keyboard_reaches_everything(visit):
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"theme", "filter-name", "filter-group", "SUMMARY", "BUTTON", "A"} <= reached
