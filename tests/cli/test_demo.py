"""`oltr demo`: the whole story, on a set made small."""

from __future__ import annotations

import json

import pytest

from tests.helpers.training import stop_at

METHODS = ("plain", "class-aware", "oltr")


@pytest.fixture(autouse=True)
def small(few_glyphs, monkeypatch, request):
    """None of these tests draws the whole set, and only those about it the page."""
    if "page" not in request.function.__name__:
        monkeypatch.setattr("oltr.cli.demo._write_page", lambda out: None)


def test_the_demo_ends_with_its_table(oltr, tmp_path):
    said = oltr("demo", "--epochs", "1", "1", "--out", tmp_path)
    assert said.code == 0, said.err
    assert said.out.count("\nplain ") == said.out.count("\nclass-aware ") == said.out.count("\noltr ") == 1
    assert "at most 5.0 %" in " ".join(said.out.split())
    assert said.err.count("stage 1: ") == 1  # trained once and shared
    reports = [json.loads((tmp_path / method / "report.json").read_text()) for method in METHODS]
    assert [report["method"] for report in reports] == list(METHODS)
    assert (tmp_path / "glyphs.png").read_bytes()[:4] == b"\x89PNG"
    assert not list(tmp_path.rglob("*.part"))


def test_the_demo_leaves_a_page(oltr, tmp_path):
    said = oltr("demo", "--epochs", "1", "1", "--out", tmp_path)
    assert said.code == 0, said.err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(f">{method}<" in page for method in METHODS) and "over plain" in page
    assert str(tmp_path / "report.html") in "\n".join(said.err.splitlines()[-3:])


@pytest.mark.parametrize("fault", [RuntimeError("no ink"), ImportError("no jinja2")])
def test_a_page_that_fails_does_not_cost_the_demo(oltr, tmp_path, monkeypatch, fault):
    def fail(*_):
        raise fault

    monkeypatch.setattr("oltr.report.page.write.write_page", fail)
    said = oltr("demo", "--epochs", "1", "1", "--out", tmp_path)
    assert said.code == 0 and said.out.count("\noltr ") == 1
    assert f"report.html could not be made: {fault}" in said.err and "Traceback" not in said.err
    assert not (tmp_path / "report.html").exists() and "next: oltr train" in said.err


def test_a_finished_demo_shows_its_numbers_again(oltr, tmp_path):
    first = oltr("demo", "--epochs", "1", "1", "--out", tmp_path, "--json")
    assert set(json.loads(first.out)) == set(METHODS)
    assert oltr("evaluate", tmp_path / "oltr", "--threshold", "0.9").code == 0
    again = oltr("demo", "--epochs", "1", "1", "--out", tmp_path, "--json")
    assert again.out == first.out and "stage" not in again.err


def test_another_demo_in_the_same_folder_is_refused(oltr, tmp_path):
    assert oltr("demo", "--epochs", "1", "1", "--out", tmp_path).code == 0
    oltr("demo", "--epochs", "2", "1", "--out", tmp_path).refused("stage1.epochs: 1 → 2")


@pytest.mark.parametrize(
    ("words", "answer"),
    [("--epochs 0 0", "trains nothing"), ("--epochs 1 1 1", "3 numbers"), ("--seed -1", "seed is -1")],
)
def test_bad_options(oltr, tmp_path, words, answer):
    oltr("demo", "--out", tmp_path / "demo", *words.split()).refused(answer)
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("at", [1, 3, 7])
def test_ctrl_c_and_on(oltr, tmp_path, monkeypatch, at):
    stop_at(monkeypatch, at)
    said = oltr("demo", "--epochs", "1", "1", "--out", tmp_path / "stopped")
    assert said.code == 130 and said.out == "" and "oltr demo" in said.err and "Traceback" not in said.err
    assert not list(tmp_path.rglob("*.part"))
    on = oltr("demo", "--epochs", "1", "1", "--out", tmp_path / "stopped", "--json")
    whole = oltr("demo", "--epochs", "1", "1", "--out", tmp_path / "whole", "--json")

    def numbers(said):
        reports = json.loads(said.out)
        return {method: (report["closed"], report["open"]) for method, report in reports.items()}

    assert on.code == whole.code == 0 and numbers(on) == numbers(whole)
