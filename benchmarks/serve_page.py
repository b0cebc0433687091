"""The page of `oltr serve` with 10,000 unknown images: to open, to scroll, to name 200 of them.

    python benchmarks/serve_page.py runs/flowers --out benchmarks/results/serve_page.json

The run's open images play the sent ones: each copy of a file is another image by a few bytes at its end, and
its features are those of the file with a little noise, so that nothing waits for the network. The browser is
the system's chromium, without a window, on the same machine as the server. `open`: from the address to the
last of the pictures on the screen. `scroll`: the longest time between two frames while the list moves from
top to bottom. `name`: from the click that names 200 images to what changed, on the screen. Medians of the
rounds.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import torch
from playwright.sync_api import Page, sync_playwright
from record import record

from oltr.data.images import small_copy
from oltr.runs.learned_images import content_digest
from oltr.runs.outputs import Outputs
from oltr.runs.trained_run import TrainedRun
from oltr.serve.flat_outputs import to_rows
from oltr.serve.intake import THUMBNAIL
from oltr.serve.uploads import Upload, Uploads, now

IMAGES, NAMED, ROUNDS = 10_000, 200, 3
NOISE = 0.05  # of the features' deviation
BROWSER = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SEEN = """() => {
  const here = [...document.querySelectorAll('.cluster img')].filter(each => {
    const box = each.getBoundingClientRect();
    return box.top < innerHeight && box.bottom > 0;
  });
  return here.length > 12 && here.every(each => each.complete && each.naturalWidth > 0);
}"""
SCROLL = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  let longest = 0, before = await frame();
  const end = document.documentElement.scrollHeight;
  for (let place = 0; place < end; place += Math.max(400, end / 200)) {
    scrollTo(0, place);
    const now = await frame();
    longest = Math.max(longest, now - before);
    before = now;
  }
  scrollTo(0, 0);
  return longest;
}"""


def made_run(source: Path, folder: Path) -> Path:
    """A copy of the run with so many images that wait, all of them unknown."""
    path = shutil.copytree(source, folder / "run")
    run = TrainedRun(path)
    paths = [run.manifest.root / file for file in run.manifest.rows("open")["path"]]
    outputs, draw = run.outputs["open"], np.random.default_rng(0)
    unknown = np.flatnonzero(run.rule.rejects(run.scored("open").values).numpy())
    rows = draw.choice(unknown, IMAGES)
    noise = torch.from_numpy(draw.standard_normal((IMAGES, outputs.features.shape[1]), dtype=np.float32))
    features = outputs.features[rows] + NOISE * outputs.features.std() * noise
    with torch.inference_mode():
        head = run.network.head(features.to(run.device))
    flat = to_rows(Outputs(head.logits, torch.full((IMAGES,), -1), features, None, head.reachability))
    uploads = Uploads(path, run.history)
    uploads.thumbnails.mkdir(parents=True)
    small = {row: small_copy(paths[row].read_bytes(), THUMBNAIL, paths[row]) for row in set(rows.tolist())}
    found = []
    for number, row in enumerate(rows.tolist()):
        content = paths[row].read_bytes() + number.to_bytes(4, "little")
        digest = content_digest(content)
        kept = f"uploads/{digest}.jpg"
        (path / kept).write_bytes(content)
        uploads.thumbnail(digest).write_bytes(small[row])
        facts = (digest, now(), f"site/{number:05}.jpg", kept, len(content), run.weights_version)
        found.append(Upload(*facts, flat[number]))
    uploads.replace(found)
    return path


def measure(page: Page, address: str) -> dict[str, float]:
    """One round, in seconds."""
    began = time.perf_counter()
    page.goto(f"{address}#unknowns")
    page.wait_for_function(SEEN)
    opened = time.perf_counter() - began
    longest = page.evaluate(SCROLL) / 1000
    page.wait_for_function(SEEN)
    selected = 0
    while selected < NAMED:
        page.locator(".cluster:not(.selected) input[type=checkbox]").first.check()
        text = page.locator("#selection-text").text_content() or ""
        selected = int(re.findall(r"[\d,]+", text)[0].replace(",", ""))
    page.click("#selection-name")
    page.fill("#name-input", "new class")
    began = time.perf_counter()
    page.click("#name-submit")
    page.locator("#changed .change").first.wait_for()
    named = time.perf_counter() - began
    began = time.perf_counter()
    page.click("#changed-undo")
    page.wait_for_function("() => document.querySelector('#changed-undo').hidden")
    undone = time.perf_counter() - began
    return {"open": opened, "scroll": longest, "name": named, "named_images": selected, "undo": undone}


def grouped(address: str) -> dict[str, Any]:
    """The state of the service once its images are in groups."""
    while True:
        with urllib.request.urlopen(f"{address}state") as answer:
            state = json.load(answer)
        if not state["clusters"]["busy"]:
            return state
        time.sleep(0.2)


def main() -> None:
    """Measure, print, write JSON."""
    parser = argparse.ArgumentParser(description="The page with 10,000 unknown images.")
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = made_run(arguments.run, Path(name))
        command = [sys.executable, "-m", "oltr.cli.main", "serve", str(path), "--port", "0"]
        began = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            started = time.perf_counter() - began
            state = grouped(address)
            grouping = time.perf_counter() - began - started
            with sync_playwright() as engine:
                chromium = engine.chromium.launch(executable_path=shutil.which("chromium"), args=BROWSER)
                rounds = []
                for _ in range(ROUNDS):
                    page = chromium.new_page(viewport={"width": 1280, "height": 850})
                    rounds.append(measure(page, address))
                    page.close()
                chromium.close()
            server.terminate()
    row: dict[str, Any] = {"images": state["images"]["total"], "unknown": state["images"]["unknown"]}
    row |= {"start_seconds": round(started, 2), "grouping_seconds": round(grouping, 1)}
    row |= {
        f"{key}_seconds": round(statistics.median(each[key] for each in rounds), 3)
        for key in ("open", "scroll", "name", "undo")
    }
    row["rounds"] = [{key: round(value, 3) for key, value in each.items()} for each in rounds]
    print(row)
    record(arguments.out, [row], torch.device("cpu"))


if __name__ == "__main__":
    main()
