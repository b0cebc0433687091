"""The examples run as they are, in their quick form."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pandas as pd

from oltr import Recognizer
from tests.helpers.pictures import write_picture
from tests.helpers.processes import run_python
from tests.helpers.served import served

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_own_photos(tmp_path, capsys):
    example = runpy.run_path(str(EXAMPLES / "01_own_photos.py"))
    photos = example["draw_photos"](tmp_path / "photos")
    example["main"](photos, tmp_path / "run", recipe="glyphs", epochs=(1, 1), verbose=False)
    printed = capsys.readouterr().out
    assert "closed" in printed and "The least familiar images" in printed
    table = pd.read_csv(tmp_path / "run" / "predictions.csv")
    assert len(table) == len(list(photos.rglob("*.png"))) and table["error"].isna().all()


def test_minimal_loop():
    done = subprocess.run(
        [sys.executable, EXAMPLES / "02_minimal_loop.py", "--quick"],
        env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for stage in (1, 2):
        line = rf"after stage {stage}: many [\d.]+, medium [\d.]+, few [\d.]+, overall [\d.]+; open F 0\.\d+"
        assert re.search(line, done.stdout), done.stdout


def test_own_loop():
    done = run_python([str(EXAMPLES / "03_own_loop.py")], {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    groups, scores, rejected = done.stdout.splitlines()
    assert min(ast.literal_eval(groups).values()) > 60  # percent; one in eight by chance
    assert float(re.search(r"AUROC (0\.\d+), open F 0\.\d+", scores)[1]) > 0.6
    assert re.fullmatch(r"rejected: \d+% of unknown digits, \d+% of known ones", rejected)


def test_onnx_alone(pack, tmp_path):
    recognizer = Recognizer("plain", "test_resnet", recipe="glyphs", epochs=(1,), verbose=False).fit(pack)
    made = recognizer.export(tmp_path / "model.onnx", check=3)
    assert made.parity.difference.equal and made.card.is_file()
    photos = [write_picture(tmp_path / f"{size}.png", size) for size in (12, 90)]
    words = ["-X", "importtime", EXAMPLES / "05_onnx.py", made.path, *photos]
    done = run_python([str(word) for word in words])
    assert done.returncode == 0, done.stderr
    assert not re.search(r"\b(oltr|torch)\b", done.stderr)  # what it imports
    wanted = recognizer.predict(photos)
    for line, (_, row) in zip(done.stdout.splitlines(), wanted.iterrows(), strict=True):
        unknown = "unknown, most like " if row["unknown"] else ""
        assert line == f"{row['path']}: {unknown}{row['label']} ({100 * row['calibrated_probability']:.0f} %)"


def test_serve_client(pack, tmp_path):
    recognizer = Recognizer("plain", "test_resnet", recipe="glyphs", epochs=(1,), verbose=False).fit(pack)
    recognizer.save(tmp_path / "run")
    photos = [write_picture(tmp_path / "new" / f"{number:02}.png", 20) for number in range(18)]
    (tmp_path / "new" / "99.txt").write_text("no image")
    with served(tmp_path / "run", token := "a token that is long enough") as address:
        client = [str(EXAMPLES / "serve_client.py"), address, str(tmp_path / "new")]
        done, refused = (run_python(client, {"OLTR_TOKEN": given}) for given in (token, "another"))
    assert refused.returncode == 1 and "401" in refused.stderr
    assert done.returncode == 0, done.stderr
    *lines, failed = done.stdout.splitlines()
    assert failed.startswith(f"{tmp_path / 'new' / '99.txt'}: ") and "%" not in failed
    for line, (_, row) in zip(lines, recognizer.predict(photos).iterrows(), strict=True):
        unknown = "unknown, most like " if row["unknown"] else ""
        assert line == f"{row['path']}: {unknown}{row['label']} ({100 * row['calibrated_probability']:.0f} %)"
