"""Charts of docs/scale.md, drawn from benchmarks/results/*.json: cost against classes, images and devices.

python benchmarks/charts.py
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from oltr.figures.save import SALT, TIMELESS

HOME = Path(__file__).parent
IMAGES = HOME.parent / "docs" / "images"
# From Okabe and Ito's palette; the marks differ too.
STYLES = {
    "plain": {"color": "#0072B2", "marker": "o", "label": "bare backbone, linear classifier"},
    "oltr": {"color": "#D55E00", "marker": "s", "label": "OLTR, stage 2"},
}


def main() -> None:
    """Draw each chart whose results are there."""
    charts = {"step": against_classes, "epoch": against_images, "processes": against_devices}
    for name, draw in charts.items():
        path = HOME / "results" / f"{name}.json"
        if path.is_file():
            figure = draw(json.loads(path.read_text(encoding="utf-8")))
            with matplotlib.rc_context(SALT):
                figure.savefig(IMAGES / f"{name}.svg", metadata=TIMELESS[".svg"])
            print(IMAGES / f"{name}.svg")


def against_classes(results: dict) -> Figure:
    """Time and memory of a step, over the number of classes."""
    figure = _figure(results, "One training step, 128 images of 224 px")
    time, memory = figure.subplots(1, 2)
    rows = sorted((row for row in results["rows"] if row["batch"] == 128), key=lambda row: row["classes"])
    classes = [row["classes"] for row in rows]
    for name, style in STYLES.items():
        time.plot(classes, [row[f"{name}_ms"] for row in rows], **style)
        memory.plot(classes, [row[f"{name}_peak_gib"] for row in rows], **style)
    for axes, title in ((time, "milliseconds a step"), (memory, "peak device memory, GiB")):
        _dress(axes, "known classes", title)
    figure.legend(*time.get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=2)
    return figure


def against_images(results: dict) -> Figure:
    """Seconds of an epoch, over the number of training images."""
    figure = _figure(results, "One epoch: images of 256 px on the device, augmented there")
    axes = figure.subplots()
    for name, style in STYLES.items():
        rows = sorted((row for row in results["rows"] if row["method"] == name), key=lambda r: r["images"])
        axes.plot([row["images"] for row in rows], [min(row["epoch_seconds"][1:]) for row in rows], **style)
    _dress(axes, "training images", "seconds an epoch")
    axes.legend(frameon=False)
    return figure


def against_devices(results: dict) -> Figure:
    """Training rate of one and of two processes on the same cores."""
    figure = _figure(results, f"{results['backbone']}, global batch {results['global_batch']}")
    axes = figure.subplots()
    rates = results["images_per_second"]
    axes.bar(list(rates), list(rates.values()), 0.4, color="#56B4E9")
    for number, name in enumerate(rates):
        turns = [turn[name] for turn in results["turns"]]
        axes.plot([number] * len(turns), turns, "o", color="0.2", markersize=4)
    axes.set_xlabel("processes that share each batch (bar: median; dots: turns)")
    axes.set_ylabel("images a second")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _figure(results: dict, title: str) -> Figure:
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    made = f"{results['hardware']}, torch {results['versions']['torch']}, {results['date']}"
    figure.suptitle(f"{title}\n{made}", x=0.01, ha="left", fontsize="medium")
    return figure


def _dress(axes: Axes, x: str, y: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        )
        axis.set_minor_locator(NullLocator())
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
