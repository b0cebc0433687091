"""The catalogue of figures: every figure of the paper is in it, and docs/figures.md says the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from oltr.report.catalogue import BEYOND, CATALOGUE

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "figures.md").read_text(encoding="utf-8")


def test_every_figure_of_the_paper_is_there():
    numbers = [int(n) for entry in CATALOGUE for n in re.findall(r"\d+", entry.paper)]
    assert sorted(set(numbers)) == list(range(1, 16))  # the LaTeX has fifteen, seven of them in the appendix
    parts = [entry.paper for entry in CATALOGUE if "Fig. 8" in entry.paper]
    assert sorted(parts) == ["Fig. 8 (a)", "Fig. 8 (b)", "Fig. 8 (c)"]


def test_what_shows_which_figure_of_the_paper():
    numbers = {entry.name: entry.paper.removeprefix("Fig. ") for entry in CATALOGUE if entry.paper != BEYOND}
    assert numbers == {
        "method": "2",
        "distribution": "10, 12, 13",
        "spectrum": "1, 9",
        "class-gain": "6",
        "tsne": "3",
        "centroids": "11",
        "attention": "4",
        "infused": "7, 14",
        "activation": "15",  # least and most activated averages, of faces there
        "threshold": "8 (b)",
        "open-classes": "8 (c)",
        "ablation": "5",
        "longtail-ness": "8 (a)",
    }


def test_names_are_names_of_files():
    names = [entry.name for entry in CATALOGUE]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z-]+", name) for name in names)


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_the_page_of_figures_is_up_to_date(entry):
    row = f"| `{entry.name}` | {entry.title} | {entry.paper} | {entry.needs} | `{entry.made_by}` |"
    assert row in PAGE.splitlines()
    assert entry.caption.endswith(".") and (entry.paper == BEYOND or entry.paper.startswith("Fig. "))
