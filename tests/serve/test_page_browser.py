"""The page in a browser: images sent, unknown ones named and from then on recognised, undone, still there."""

from __future__ import annotations

import shutil

import pytest

from tests.helpers.browser import needs_browser
from tests.helpers.colours import UNKNOWN
from tests.helpers.page import ASK, answers, count, name, select_all, send, to_unknowns
from tests.helpers.serving import png

pytestmark = needs_browser
IDS = "picks => picks.map(pick => pick.dataset.id)"


def test_the_whole_walk(visit, serve_page, plain_run, strangers, tmp_path):
    run = shutil.copytree(plain_run, tmp_path / "run")
    with serve_page(run) as server:
        page = visit(server.address, by="Ada")
        send(page, strangers["cyan"][:8], 8)
        count(page, "unknowns", 8)
        to_unknowns(page)
        select_all(page)
        page.click("#selection-name")
        assert page.locator("#name-submit").text_content() == "Name"
        name(page, "cyan")
        # What changed is shown, before and after.
        page.locator("#changed").wait_for()
        change = page.locator(".change[data-before=unknown][data-after=cyan]")
        assert change.locator(".tag").text_content() == "8"
        count(page, "unknowns", 0)
        # One click back, and forth again.
        page.click("#changed-undo")
        count(page, "unknowns", 8)
        to_unknowns(page)
        select_all(page)
        page.click("#selection-name")
        name(page, "cyan")
        count(page, "unknowns", 0)
        # The next images are recognised.
        later = tmp_path / "later.png"
        later.write_bytes(png(UNKNOWN["cyan"], seed=1))
        send(page, [later, *strangers["cyan"][8:]], 11)
        page.locator("#filter-count", has_text="11 images").wait_for()
        assert answers(page)[:3] == ["cyan"] * 3
        page.click("#tab-classes")
        page.locator('.card.class[data-class="cyan"]').wait_for()
        page.close()
        server.kill()
    with serve_page(run) as server:
        page = visit(server.address)
        count(page, "images", 11)
        count(page, "unknowns", 0)
        count(page, "classes", 7)
        page.click("#tab-history")
        page.locator(".card.action").first.wait_for()
        deeds = page.locator(".card.action .deed span").all_text_contents()
        assert len(deeds) == 3 and deeds[0] == "Ada named 8 images “cyan”"
        assert page.locator(".card.action.undone").count() == 1
        page.locator(".card.action .undo").first.click()
        count(page, "unknowns", 11)


def test_two_people_at_once(visit, serve_page, plain_run, strangers, tmp_path):
    with serve_page(shutil.copytree(plain_run, tmp_path / "run")) as server:
        ada = visit(server.address, by="Ada")
        send(ada, strangers["cyan"], 10)
        ben = visit(server.address, by="Ben")
        for person in (ada, ben):
            to_unknowns(person)
            select_all(person)
            person.click("#selection-name")
        name(ada, "cyan")
        ada.locator("#changed").wait_for()
        name(ben, "turquoise")
        # Ben is told who was quicker, and nothing was changed.
        ben.locator("#name-trouble .conflicts").wait_for()
        assert "Ada named “cyan”" in ben.locator("#name-trouble").text_content()
        ben.get_by_role("button", name="Leave it").click()
        count(ben, "unknowns", 0)
        # Both see both.
        ben.click("#tab-history")
        ben.locator(".card.action").first.wait_for()
        assert ben.locator(".card.action .deed span").all_text_contents() == ["Ada named 10 images “cyan”"]
        ben.locator(".card.action .undo").click()
        count(ada, "unknowns", 10)
        ada.click("#tab-history")
        ada.locator(".card.action.undone").wait_for()
        assert ada.locator(".card.action").count() == 2


def test_undoing_what_somebody_undid_already(visit, serve_page, plain_run, strangers, tmp_path):
    with serve_page(shutil.copytree(plain_run, tmp_path / "run")) as server:
        ada, ben = visit(server.address, by="Ada"), visit(server.address, by="Ben")
        send(ada, strangers["cyan"], 10)
        to_unknowns(ada)
        select_all(ada)
        ada.click("#selection-name")
        name(ada, "hidden")
        ada.locator("#changed").wait_for()
        # A class is told by its name, whatever that means to a style sheet.
        ada.locator("#changed .picture").first.click()
        answer = ada.locator("#detail-answer")
        answer.wait_for()
        assert answer.text_content() == "hidden" and answer.bounding_box()["height"] > 10
        ada.keyboard.press("Escape")
        seen = ada.evaluate("fetch('state').then(answer => answer.json())")
        ada.route("**/state", lambda route: route.fulfill(json=seen))  # Ada's page is behind
        ben.evaluate(ASK, ["rename-class", {"name": "hidden", "to": "cyan", "by": "Ben"}])
        ada.click("#changed-undo")
        ada.locator("#conflict li").wait_for()
        assert ada.locator("#conflict li").all_text_contents() == ["2: Ben renamed “hidden” to “cyan”"]
        ada.get_by_role("button", name="Leave it").click()
        for action in (2, 1):
            ben.evaluate(ASK, ["undo", {"action": action, "by": "Ben"}])
        ada.click("#changed-undo")
        answered = ada.locator(".toast", has_text="Ben undid it already.")
        answered.hover()  # it stays
        ada.unroute("**/state")
        ada.locator(".toast.news").nth(1).wait_for()
        assert ada.locator(".toast").count() == 3 and answered.count() == 1  # news of three actions is told
        ada.locator("#changed").wait_for(state="hidden")
        assert ada.locator("dialog").count() == 0
        count(ada, "unknowns", 10)


def test_a_class_that_somebody_made_meanwhile(visit, serve_page, plain_run, strangers, tmp_path):
    with serve_page(shutil.copytree(plain_run, tmp_path / "run")) as server:
        ada, ben = visit(server.address, by="Ada"), visit(server.address, by="Ben")
        send(ada, strangers["cyan"], 10)
        to_unknowns(ben)
        select_all(ben)
        seen = ben.evaluate("fetch('state').then(answer => answer.json())")
        ben.route("**/state", lambda route: route.fulfill(json=seen))  # Ben's page is behind
        to_unknowns(ada).first.locator(".name").click()
        name(ada, "cyan")
        ada.locator("#changed").wait_for()
        ben.locator(".cluster input[type=checkbox]").first.uncheck()  # the images that Ada has named
        ben.click("#selection-name")
        name(ben, "Cyan")
        assert "Ada" in ben.locator("#name-trouble .buttons").locator("xpath=..").text_content()
        ben.locator("#name-trouble .main").click()
        ben.locator("#changed").wait_for()
        ben.unroute("**/state")
        count(ada, "history", 2)
        count(ada, "classes", 7)


def test_images_with_a_wrong_answer_are_named_together(visit, serve_page, plain_run, photo_folder, tmp_path):
    reds = sorted((photo_folder / "train" / "red").iterdir())

    def all_shown() -> None:
        with page.expect_response(lambda answer: "limit=1000" in answer.url):
            page.click("#pick-all")

    with serve_page(shutil.copytree(plain_run, tmp_path / "run")) as server:
        page = visit(server.address, by="Ada")
        send(page, [*reds, *sorted((photo_folder / "train" / "blue").iterdir())[:2]], len(reds) + 2)
        page.fill("#filter-class", "red")
        page.locator("#filter-class").press("Enter")
        page.locator("#filter-count", has_text=f" of {len(reds) + 2} images").wait_for()
        reds_only = int(page.locator("#filter-count").text_content().split()[0])
        assert 5 < reds_only <= len(reds)
        page.click("#pick-images")
        selected = page.locator("#image-selection-text")
        all_shown()
        selected.filter(has_text=f"{reds_only} images selected").wait_for()
        page.click("#image-selection-clear")
        # A click selects and does not open; with shift, all between; space on a card goes back.
        cards = page.locator(".card.image")
        cards.nth(0).click()
        cards.nth(3).click(modifiers=["Shift"])
        assert selected.text_content() == "4 images selected"
        page.keyboard.press("Space")
        assert selected.text_content() == "3 images selected"
        assert page.locator("dialog").count() == 0
        all_shown()
        selected.filter(has_text=f"{reds_only} images selected").wait_for()
        page.click("#image-selection-name")
        name(page, "crimson")
        page.locator("#changed").wait_for()
        selected.filter(has_text="0 images selected").wait_for()
        classes = page.evaluate("fetch('classes').then(r => r.json()).then(r => r.classes)")
        assert {each["name"]: each["named"] for each in classes}["crimson"] == reds_only
        # What a person has labelled is not selected again.
        page.select_option("#filter-status", "named")
        page.locator("#filter-class").fill("crimson")
        page.locator("#filter-class").press("Enter")
        page.locator("#filter-count", has_text=f"{reds_only} of ").wait_for()
        all_shown()
        page.locator(".card.image").first.click()
        page.locator(".toast", has_text="A person has labelled this image").wait_for()
        assert selected.text_content() == "0 images selected"


def test_the_keyboard_alone(visit, serve_page, plain_run, strangers, tmp_path):
    with serve_page(shutil.copytree(plain_run, tmp_path / "run")) as server:
        page = visit(server.address)
        send(page, strangers["cyan"], 10)
        page.locator("body").press("2")
        page.locator(".cluster").first.wait_for()
        page.wait_for_function("() => document.querySelector('#waiting').hidden")
        page.keyboard.press("j")
        page.keyboard.press("n")
        page.locator("#name-input").wait_for()
        page.keyboard.type("cyan")
        page.keyboard.press("Enter")
        page.locator("#changed").wait_for()
        count(page, "history", 1)
        page.keyboard.press("u")
        count(page, "unknowns", 10)
        page.locator("#changed-title", has_text="Undone").wait_for()
        page.keyboard.press("Escape")
        page.locator("#changed").wait_for(state="hidden")
        page.keyboard.press("1")
        page.locator(".card.image").first.wait_for()
        page.locator(".card.image").first.focus()
        page.keyboard.press("Enter")
        page.locator("dialog[open] img").first.wait_for()
        page.keyboard.press("Escape")
        page.locator("dialog[open]").wait_for(state="detached")


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_every_tab_fits_its_screen(visit, serve_page, plain_run, strangers, tmp_path, width):
    with serve_page(shutil.copytree(plain_run, tmp_path / "run")) as server:
        page = visit(server.address, width=width)
        send(page, strangers["cyan"], 10)
        page.evaluate(ASK, ["rename-class", {"name": "red", "to": "crimson", "by": "Ada"}])
        cards = [".card.image", ".cluster", ".card.class", ".card.action"]
        for tab, card in zip(["images", "unknowns", "classes", "history"], cards, strict=True):
            page.click(f"#tab-{tab}")
            page.locator(f"#panel-{tab} {card}").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, tab


def test_an_open_group_stays_when_all_are_grouped_anew(visit, serve_page, plain_run, strangers, tmp_path):
    def ask(call: str, body: dict) -> None:
        """Do something behind the page's back, and wait until it has read the groups again."""
        with page.expect_response(lambda r: r.url.endswith("/clusters") and r.request.method == "GET"):
            page.evaluate(ASK, [call, body])

    with serve_page(shutil.copytree(plain_run, tmp_path / "run")) as server:
        page = visit(server.address)
        send(page, strangers["cyan"], 10)
        to_unknowns(page)
        page.wait_for_function("() => document.querySelector('#waiting').hidden")
        page.locator('.cluster[data-cluster="1"] .open').click()
        page.locator(".pick").first.wait_for()
        looked_at = page.locator(".pick").evaluate_all(IDS)
        assert 1 < len(looked_at) < 10
        ask("reject", {"images": looked_at[1:]})
        ask("clusters", {})  # another group is the largest then, and has this number
        page.wait_for_function("async () => !(await (await fetch('state')).json()).clusters.busy")
        others = page.evaluate("fetch('unknowns').then(r => r.json()).then(r => r.images.map(i => i.id))")
        ask("reject", {"images": [number for number in others if number not in looked_at][:1]})
        ask("clusters", {})  # by now the page has shown what it read before
        assert page.locator(".pick").evaluate_all(IDS) == looked_at[:1]
