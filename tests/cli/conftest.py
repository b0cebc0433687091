"""The command line called inside the test's own process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from oltr.cli.main import _guarded
from oltr.data.pack import open_pack
from tests.helpers.pictures import class_folders

# The smallest network there is, one epoch a stage: a run takes about half a second.
QUICK = (
    "--recipe",
    "glyphs",
    "--backbone",
    "test_resnet",
    "--epochs",
    "1",
    "1",
    "--set",
    "stage1.batch_size=8",
    "--set",
    "stage2.batch_size=8",
    "--cpu",
)


@dataclass
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    def refused(self, *words: str) -> None:
        """It was bad input: exit code 2, one message with these words, and no result."""
        assert self.code == 2, self.err
        assert self.err.count("error:") == 1 and "Traceback" not in self.err, self.err
        assert self.out == ""
        message = self.err[self.err.index("error:") :]
        for word in words:
            assert word in message


@pytest.fixture
def oltr(capsys):
    """`oltr("train", ...)` as if it were typed."""

    def run(*arguments: object) -> Said:
        capsys.readouterr()
        code = _guarded([str(argument) for argument in arguments])
        return Said(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def trained(pack, tmp_path_factory) -> dict[str, Path]:
    """A finished run of oltr and one of plain; read-only."""
    folder = tmp_path_factory.mktemp("runs")
    for method in ("plain", "oltr"):
        assert _guarded(["train", str(pack), *QUICK, "--method", method, "--out", str(folder / method)]) == 0
    return {method: folder / method for method in ("plain", "oltr")}


@pytest.fixture(scope="session")
def photos(tmp_path_factory) -> Path:
    """A flat folder of class folders, with spaces and other alphabets in the names; read-only."""
    folder = tmp_path_factory.mktemp("data") / "my photos ñ"
    return class_folders(folder, {"cat": 9, "dög": 7, "雪 豹": 5, "unknown": 4}, size=16)


@pytest.fixture
def few_glyphs(monkeypatch):
    """The embedded data made small: six known and two open characters."""
    from oltr.data.curate import glyphs

    real = glyphs.make_glyphs
    few = {"known": 6, "open_classes": 2, "largest": 24, "smallest": 4}
    few |= {"val_per_class": 3, "test_per_class": 4, "open_per_class": 6}
    monkeypatch.setattr(glyphs, "make_glyphs", lambda **options: real(**options, **few))


@pytest.fixture(scope="session")
def images(pack, tmp_path_factory) -> Path:
    """The test and open images of the pack as files; read-only."""
    opened, folder = open_pack(pack), tmp_path_factory.mktemp("some images")
    for split in ("test", "open"):
        for row in opened.manifest.positions(split):
            file = folder / opened.manifest.table["path"][row]
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.asarray(opened.images[row])).save(file.with_suffix(".png"))
    return folder
