"""Figures appear whole, in the format of their name."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from oltr.errors import UserError
from oltr.figures.distribution import class_distribution
from oltr.figures.save import save_figure


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")])
def test_by_suffix(tmp_path, suffix, start):
    save_figure(Figure(), tmp_path / "new folder" / f"figure{suffix}")
    assert (tmp_path / "new folder" / f"figure{suffix}").read_bytes().startswith(start)
    assert len(list((tmp_path / "new folder").iterdir())) == 1


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_the_same_figure_is_the_same_file(tmp_path, monkeypatch, suffix):
    for number, time in enumerate(("1000000000", "2000000000")):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", time)  # what a clock would say
        figure = class_distribution([500, 90, 7])  # with clipped parts and markers, whose names were random
        figure.axes[0].plot([1, 2], [3, 4], marker="o")
        save_figure(figure, tmp_path / f"{number}{suffix}")
    assert (tmp_path / f"0{suffix}").read_bytes() == (tmp_path / f"1{suffix}").read_bytes()


@pytest.mark.parametrize("name", ["figure.jpg", "figure"])
def test_other_names_are_refused(tmp_path, name):
    with pytest.raises(UserError, match=r"(?s)no name for a figure.*\.png, \.svg, \.pdf"):
        save_figure(Figure(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_figure_that_cannot_be_drawn_leaves_the_one_before(tmp_path, monkeypatch):
    (tmp_path / "figure.png").write_bytes(b"before")

    def half(self, file, **options):
        file.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", half)
    with pytest.raises(UserError, match=r"No space left on device\. What was there before is kept"):
        save_figure(Figure(), tmp_path / "figure.png")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("figure.png", b"before")]
