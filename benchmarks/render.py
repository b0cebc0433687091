"""Tables of README.md and docs/results.md, generated from benchmarks/results/*.json alone.

docs/methods.md and the table of docs/figures.md come from the metadata of methods, scores and figures.

python benchmarks/render.py
"""

from __future__ import annotations

import itertools
import json
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oltr.figures.figure import all_figures
from oltr.methods import METHODS
from oltr.openset import SCORES
from oltr.runs.report import Report
from oltr.runs.tables import comparison

TUNED = (
    "The learning rates come from a sweep in which test and open results were visible: "
    "this is a demonstration, not a benchmark."
)
HOME = Path(__file__).parent
RESULTS, ROOT = HOME / "results", HOME.parent
CLOSED = ("many", "medium", "few", "overall")
GENERATED = "<!-- made by benchmarks/render.py -->"


def main() -> None:
    """Fill the tables of README.md and docs/figures.md, write docs/results.md and docs/methods.md."""
    demo = load("demo.json")
    fill(ROOT / "README.md", "demo table", demo_table(demo))
    photos, tuned = load("photos.json"), load("photos-finetuned.json")
    fill(ROOT / "README.md", "photos table", photos_table(photos, tuned, ("oltr2", "logit-adjusted", "oltr")))
    fill(ROOT / "docs" / "figures.md", "figures", figures_table())
    for name in ("flowers102", "cifar100"):
        parents = load(f"parents-{name}.json")["rows"]
        fill(ROOT / "docs" / "parents.md", f"parents of {name}", parents_table(parents))
        fill(ROOT / "docs" / "parents.md", f"draws of {name}", draws_table(parents))
    fill(ROOT / "docs" / "classes.md", "add-class", added_table())
    sections = [
        "# Measured results",
        GENERATED,
        demo_section(demo),
        photos_section(photos, tuned),
        *(suite_section(path.stem, load(path.name)) for path in sorted(RESULTS.glob("suite-*.json"))),
        ways_section(load("cifar-accuracy.json")),
    ]
    (ROOT / "docs" / "results.md").write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    (ROOT / "docs" / "methods.md").write_text(methods_page(), encoding="utf-8")


def fill(page: Path, name: str, content: str) -> None:
    """Put the content between the marks of that name."""
    text, block = page.read_text(encoding="utf-8"), f"<!-- {name} -->\n{content}\n<!-- /{name} -->"
    found = re.compile(f"<!-- {name} -->.*<!-- /{name} -->", re.S)
    page.write_text(found.sub(lambda _: block, text), encoding="utf-8")


def photos_table(photos: dict[str, Any], tuned: dict[str, Any], methods: Sequence[str]) -> str:
    """Flowers, mean and deviation over the splits: ours, fine-tuned and frozen, beside the baselines."""
    named = {
        "oltr2": "`oltr train photos/` on a CPU",
        "logit-adjusted": "`--method logit-adjusted`, the same without a memory",
        "oltr": "`--method oltr` on the same features",
    }
    kinds = [("`oltr train photos/` on a GPU", tuned["rows"])]
    for method in (*methods, "balanced logistic regression", "nearest mean"):
        name = named.get(method, method if method.startswith(("nearest", "balanced l")) else f"`{method}`")
        kinds.append((name, [row for row in photos["rows"] if row["method"] == method]))
    lines = ["| | overall | few | AUROC | unknown photos detected |", "|---|---:|---:|---:|---:|"]
    for name, rows in kinds:
        cells = []
        for figure in ("overall", "few", "auroc", "unknown_recall"):
            values = [100 * row[figure] for row in rows]
            cells.append(f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    seconds = statistics.median(row["seconds"] for row in load("photos-default.json")["rows"])
    note = (
        "Percent on Flowers-102 made long-tailed (82 classes with 55 down to 3 training photos, 1,445 in "
        "all; 20 classes unknown; photos of 128 px), mean ± deviation over three splits; `few`: classes with "
        "fewer than 20; unknown photos detected at a threshold that rejects 5 % of known validation photos. "
        f"CPU: {photos['hardware']}, {seconds:.0f} s for 4,062 photos; GPU: {tuned['hardware']}. "
        "The last two rows are scikit-learn classifiers on the pooled features of the same weights. "
        "`benchmarks/photos.py`."
    )
    return "\n".join([*lines, "", note])


def parents_table(rows: Sequence[dict[str, Any]]) -> str:
    """What test, few-shot and open images are answered, all runs together."""
    heads = "asked for | class | right | parent | right | unknown | few-shot: class | parent | unknown |"
    heads += " open: class | parent | right | unknown"
    lines = [f"| | {heads} |", f"|---|{'---:|' * 13}"]
    kinds = {(row["kind"], row["precision"]): None for row in rows if "kind" in row}
    for kind, precision in sorted(kinds, key=lambda each: (each[1] or 0, each[0])):
        alike = [row for row in rows if (row.get("kind"), row["precision"]) == (kind, precision)]
        tests, few, unseen = (_by_level(alike, split) for split in ("test", "few", "open"))
        cells = [*tests, few[0], few[2], few[4], unseen[0], *unseen[2:]]
        lines.append(f"| {kind} | {precision or '–'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def added_table() -> str:
    """Classes added from 1, 5 and 20 images, means over runs."""
    heads = "data, method | images | new classes | others before | after | refit: new | others"
    heads += " | AUROC before | after | unknown detected before | after"
    lines = [f"| {heads} |", f"|---|{'---:|' * 10}"]
    for name, data in (("flowers", "Flowers-102, frozen"), ("cifar", "CIFAR-100-LT, from scratch")):
        rows = load(f"add-class-{name}.json")["rows"]
        for method, images in {(row["method"], row["images"]): None for row in rows}:
            alike = [row for row in rows if (row["method"], row["images"]) == (method, images)]
            keys = ("new", "old_before", "old_after", "refit_new", "refit_old", "auroc_before", "auroc_after")
            keys += ("unknown_recall_before", "unknown_recall_after")
            cells = [spread([row[key] for row in alike], 1) for key in keys]
            lines.append(f"| {data}, {method} | {images} | {' | '.join(cells)} |")
    seconds = load("add-class-time.json")["rows"][0]
    return "\n".join(lines) + (
        f"\n\nMean ± deviation over three splits, or seeds and draws of the held-out classes. Adding "
        f"{seconds['images']} images to a loaded `Recognizer`, features included, took "
        f"{seconds['seconds']:.2f} s ({seconds['what']})."
    )


def draws_table(rows: Sequence[dict[str, Any]]) -> str:
    """How the promise was kept where validation and test images were drawn again."""
    lines = ["| threshold by | asked for | class | right | parent | right | short |", f"|---|{'---:|' * 6}"]
    for row in rows:
        if "check" in row:
            cells = _by_level([row], "test")[:4]
            short = f"{100 * row['short']:.0f} % of {row['draws']}"
            lines.append(f"| {row['check']} | {row['precision']} | {' | '.join(cells)} | {short} |")
    return "\n".join(lines)


def _by_level(rows: Sequence[dict[str, Any]], split: str) -> list[str]:
    """Percent of images: answered by class, right of those, by a parent, right of those, unknown."""
    levels = [
        [sum(pair) for pair in zip(*level, strict=True)]
        for level in zip(*(row[split] for row in rows), strict=True)
    ]
    parents = [sum(pair) for pair in zip(*levels[1:-1], strict=True)]
    images, cells = sum(level[0] for level in levels), []
    for answers, right in (levels[0], parents):
        cells += [f"{100 * answers / images:.1f}", f"{100 * right / answers:.1f}" if answers else "–"]
    return [*cells, f"{100 * levels[-1][0] / images:.1f}"]


def photos_section(photos: dict[str, Any], tuned: dict[str, Any]) -> str:
    """Every method on frozen features."""
    methods = list(dict.fromkeys(row["method"] for row in photos["rows"]))
    own = [method for method in methods if not method.startswith(("nearest", "balanced l"))]
    return "## Photos of flowers, pretrained weights\n\n" + photos_table(photos, tuned, own)


def figures_table() -> str:
    """Every figure: its name, what it shows, what it needs, and what makes it."""
    rows = [
        f"| `{figure.name}` | {figure.title} | {figure.paper} | {figure.needs} | `{figure.made_by}` |"
        for figure in all_figures()
    ]
    return "\n".join(["| name | figure | in the paper | needs | made by |", "|---|---|---|---|---|", *rows])


def methods_page() -> str:
    """Every method and every score: its name, what it does, where it comes from, what is different here."""
    parts = [
        "# Methods and scores",
        GENERATED,
        "`oltr methods` prints the same, `oltr suite` compares them "
        "([suites.md](suites.md)), and [CONTRIBUTING.md](../CONTRIBUTING.md#adding-a-method) shows how to "
        "add one.",
        "## Methods\n`oltr train SOURCE --method NAME`",
        table({name: METHODS[name].info for name in METHODS}),
        "## Scores\n`oltr evaluate RUN --score NAME`: the score that decides whether an image is unknown "
        "(thresholds: [concepts.md](concepts.md)).",
        table({name: SCORES[name].info for name in SCORES}),
    ]
    return "\n\n".join(parts) + "\n"


def table(infos: dict) -> str:
    rows = [
        f"| `{name}` | {info.summary} | {info.paper} | {info.changes or '–'} |"
        for name, info in infos.items()
    ]
    return "\n".join(["| name | what it does | paper | different here |", "|---|---|---|---|", *rows])


def load(name: str) -> dict:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def demo_table(results: dict) -> str:
    """The table that the demo ends with, for its default seed."""
    row = next(row for row in results["rows"] if row["seed"] == 0)
    table = comparison({name: as_report(report) for name, report in row["reports"].items()})
    return (
        "```text\n"
        + table.text()
        + f"\n```\n\nSeed 0, {row['wall_seconds']:.0f} s in all; {made(results)}. {TUNED}"
    )


def as_report(kept: dict) -> Report:
    """A report of which the results keep no single classes."""
    some = {"train_count": 1, "accuracy": 0.0, "f1": 0.0}
    classes = [{"name": str(number), **some} for number in range(kept["num_classes"])]
    return Report.from_dict(kept | {"per_class": classes})


def demo_section(results: dict) -> str:
    """Means over seeds of the demo."""
    seeds = [row["seed"] for row in results["rows"]]
    lines = [
        "## The demo (glyphs)",
        f"`oltr demo`, seeds {', '.join(map(str, seeds))}: mean ± deviation, percent; "
        "at most 5 % of known validation images rejected. "
        f"{spread([row['wall_seconds'] for row in results['rows']], 1)} s a run; {made(results)}. {TUNED}",
        "| method | " + " | ".join(CLOSED) + " | F | AUROC |\n|---|" + "---:|" * 6,
    ]
    body = []
    for method in results["rows"][0]["reports"]:
        reports = [row["reports"][method] for row in results["rows"]]
        cells = [spread([report["closed"][key] for report in reports]) for key in CLOSED]
        cells += [spread([report["open"][key] for report in reports]) for key in ("f_measure", "auroc")]
        body.append(f"| {method} | " + " | ".join(cells) + " |")
    phases = [
        f"{name} {statistics.mean(row['phases'][name] for row in results['rows']):.0f} s"
        for name in results["rows"][0].get("phases", {})
    ]
    spent = [f"Where the time goes, on average: {'; '.join(phases)}."] if phases else []
    return "\n\n".join(["\n\n".join(lines) + "\n" + "\n".join(body), *spent])


COLUMNS = {
    "closed.many": "many",
    "closed.medium": "medium",
    "closed.few": "few",
    "closed.overall": "overall",
    "open.f_measure": "open F",
    "open.unknown_recall": "unknown",
    "open.auroc": "AUROC",
    "open.detection_error": "error",
    "open.detection_error_min": "least error",
}


def suite_section(name: str, results: dict) -> str:
    """What `oltr suite` kept in suite.json: ours, and below it the published row where there is one."""
    shown = [c for c in COLUMNS if any(row["mean"].get(c) is not None for row in results["rows"])]
    lines = ["| method | " + " | ".join(COLUMNS[c] for c in shown) + " |", "|---|" + "---:|" * len(shown)]
    for row in results["rows"]:
        ours = [[seed[part][key] for seed in row["seeds"].values()] for part, key in map(_split, shown)]
        lines.append(f"| {row['label']} | " + " | ".join(spread(values) for values in ours) + " |")
        theirs = [row["published"].get(part, {}).get(key) for part, key in map(_split, shown)]
        if any(value is not None for value in theirs):
            cells = ["–" if value is None else f"{100 * value:.1f}" for value in theirs]
            lines.append("| *published* | " + " | ".join(cells) + " |")
    seeds = sorted({seed for row in results["rows"] for seed in row["seeds"]})
    notes = [f"`oltr suite {results['suite']}`, percent, seeds {', '.join(seeds)}.", *results["notes"]]
    heading = f"## {name.replace('-', ' ', 1).capitalize()}"
    return f"{heading}\n\n{' '.join(notes)} {made(results)}.\n\n" + "\n".join(lines)


def ways_section(results: dict) -> str:
    """The same trainings on the fast path and on the obvious one."""
    lines = ["| method | step | " + " | ".join(CLOSED) + " | overall by seed |", "|---|---|" + "---:|" * 5]
    for method, way in itertools.product(("plain", "oltr"), results["ways"]):
        seeds = [row["closed"] for row in results["rows"] if (row["method"], row["way"]) == (method, way)]
        cells = [spread([closed[key] for closed in seeds]) for key in CLOSED]
        each = ", ".join(f"{100 * closed['overall']:.1f}" for closed in seeds)
        lines.append(f"| {method} | {way} | " + " | ".join(cells) + f" | {each} |")
    return "\n\n".join(
        [
            "## CIFAR-100-LT on the fast path and without it",
            f"`oltr train --recipe cifar100-lt-100`, percent, mean ± deviation over seeds. {results['note']} "
            f"{made(results)}.",
            "\n".join(lines),
        ]
    )


def _split(column: str) -> tuple[str, str]:
    part, _, key = column.partition(".")
    return part, key


def made(results: dict) -> str:
    """When and on what."""
    return f"{results['date']}, {results['hardware']}, torch {results['versions']['torch']}"


def spread(values: Sequence[float], scale: float = 100) -> str:
    """Mean ± standard deviation."""
    mean = f"{scale * statistics.mean(values):.1f}"
    return mean if len(values) < 2 else f"{mean} ± {scale * statistics.stdev(values):.1f}"


if __name__ == "__main__":
    main()
