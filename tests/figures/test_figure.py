"""What the figures declare: every figure of the paper is there, and docs/figures.md says the same."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import oltr.figures
from oltr.figures.figure import BEYOND, all_figures
from tests.figures.few_outputs import MadeUpRun, as_png, splits

DOCS = Path(__file__).parents[2] / "docs"
FIGURES = all_figures()


def test_every_figure_of_the_paper_is_there():
    numbers = [int(n) for figure in FIGURES for n in re.findall(r"\d+", figure.paper)]
    assert sorted(set(numbers)) == list(range(1, 16))  # the LaTeX has fifteen, seven of them in the appendix
    parts = [figure.paper for figure in FIGURES if "Fig. 8" in figure.paper]
    assert sorted(parts) == ["Fig. 8 (a)", "Fig. 8 (b)", "Fig. 8 (c)"]


def test_what_shows_which_figure_of_the_paper_in_the_order_of_the_page():
    shown = [(f.name, f.paper.removeprefix("Fig. ")) for f in FIGURES if f.paper != BEYOND]
    assert shown == [
        ("method", "2"),
        ("distribution", "10, 12, 13"),
        ("spectrum", "1, 9"),
        ("class-gain", "6"),
        ("tsne", "3"),
        ("centroids", "11"),
        ("attention", "4"),
        ("infused", "7, 14"),
        ("activation", "15"),  # least and most activated averages, of faces there
        ("threshold", "8 (b)"),
        ("open-classes", "8 (c)"),
        ("ablation", "5"),
        ("longtail-ness", "8 (a)"),
    ]


def test_names_are_names_of_files():
    names = [figure.name for figure in FIGURES]
    assert len(set(names)) == len(names) and len({figure.order for figure in FIGURES}) == len(names)
    assert all(re.fullmatch("[a-z-]+", name) for name in names)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_captions_are_sentences(figure):
    assert figure.caption.endswith(".") and (figure.paper == BEYOND or figure.paper.startswith("Fig. "))
    assert figure.draw is not None or figure.made_by.startswith(("oltr suite", "oltr loop"))


def test_the_page_of_figures_lists_them_all_and_no_other():
    rows = [
        f"| `{figure.name}` | {figure.title} | {figure.paper} | {figure.needs} | `{figure.made_by}` |"
        for figure in FIGURES
    ]
    page = (DOCS / "figures.md").read_text(encoding="utf-8")
    listed = [line for line in page.splitlines() if line.startswith("| `")]
    assert listed == rows, "python benchmarks/render.py"


def test_the_documented_figure_takes_one_new_file(tmp_path, monkeypatch):
    examples = re.findall(r"```python\n(.*?)```", (DOCS / "figures.md").read_text(encoding="utf-8"), re.S)
    (tmp_path / "lengths.py").write_text(examples[-1], encoding="utf-8")
    monkeypatch.setattr(oltr.figures, "__path__", [*oltr.figures.__path__, str(tmp_path)])
    try:
        found = all_figures()
    finally:
        sys.modules.pop("oltr.figures.lengths", None)
    (lengths,) = (figure for figure in found if figure.name == "lengths")
    assert [figure for figure in found if figure is not lengths] == FIGURES
    assert found == sorted(found, key=lambda figure: figure.order) and found[-1] is not lengths
    as_png(lengths.draw([MadeUpRun(splits())]))
