"""One self-contained HTML page of one run or of several side by side."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from oltr import __version__
from oltr.figures.choose_runs import baseline
from oltr.figures.figure import all_figures
from oltr.files import atomic_write, check_writable
from oltr.report.page.chart import class_chart
from oltr.report.page.classes import class_lines, most_confused
from oltr.report.page.pictures import Picture, draw_pictures
from oltr.report.page.repeat import origin
from oltr.report.page.runs import MeasuredRun, best_run, data_cautions, measured_runs
from oltr.report.page.verdict import verdict
from oltr.report.page.worst import strip, worst_images
from oltr.runs.by_group import groups_table
from oltr.runs.tables import Table, comparison
from oltr.wording import count

TEMPLATES = Path(__file__).parent / "templates"


def write_page(
    paths: Sequence[Path], out: Path, figures: Path | None = None, by: Sequence[str] = ()
) -> list[Picture]:
    """Write the page of these run folders, atomically; the pictures in it, and why some are missing.

    With `figures` every picture is also written there, as SVG and as PNG. `by` are columns of the data (site,
    camera, sex) whose groups are told of.
    """
    check_writable(out)
    if figures is not None:
        check_writable(figures)
    runs = measured_runs(paths, by)
    pictures = draw_pictures([each.run for each in runs], figures)
    text = page(runs, pictures, report_command(paths, out, figures, by))
    with atomic_write(out) as part:
        part.write_text(text, encoding="utf-8")
    return pictures


def page(runs: Sequence[MeasuredRun], pictures: Sequence[Picture], command: str) -> str:
    """The text of the page; whatever came from outside, class names above all, is escaped by the template."""
    best, over = best_run(runs), baseline([each.run for each in runs])
    table = comparison({run.name: run.report for run in runs}, over=over.name)
    ordered = [best, *[run for run in runs if run is not best]]  # of the folded parts the first is open
    worst = [(each.name, *worst_images(each.run)) for each in ordered]
    widths = [len(columns) for _, columns in table.groups]
    return template("page.html").render(
        title=f"{', '.join(run.name for run in runs)}: open long-tailed recognition",
        eyebrow=_eyebrow(runs),
        verdict=verdict(runs),
        cautions=data_cautions(runs),
        runs=runs,
        table=table,
        starts=list(accumulate(widths)),  # columns that begin a group
        pictures=pictures,
        elsewhere=[figure for figure in all_figures() if figure.draw is None],
        best=best.name,
        by_group=[(each.name, _group_tables(each)) for each in ordered if each.report.by_group],
        classes=class_lines(runs, best),
        num_classes=runs[0].report.num_classes,
        pairs=[(each.name, most_confused(each.run)) for each in ordered],
        worst=worst,
        strip=strip(worst[0][1]),
        chart=class_chart(best),
        origins=[origin(run) for run in runs],
        command=command,
        version=__version__,
        date=time.strftime("%Y-%m-%d"),
    )


def _group_tables(run: MeasuredRun) -> list[Table]:
    return [groups_table(column, found) for column, found in (run.report.by_group or {}).items()]


def template(name: str, folder: Path = TEMPLATES) -> Template:
    """A template of a page; of another folder it may include the style and the parts of this one."""
    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def report_command(paths: Sequence[Path], out: Path, figures: Path | None, by: Sequence[str] = ()) -> str:
    """The command line that makes the page again."""
    words: list[Any] = ["oltr", "report", *paths, "--out", out, *(["--figures", figures] if figures else [])]
    return shlex.join(map(str, [*words, *(word for column in by for word in ("--by", column))]))


def _eyebrow(runs: Sequence[MeasuredRun]) -> str:
    """The runs, the classes, and on how many images each was tested."""
    tested: dict[str, list[str]] = {}
    for each in runs:
        parts = {"test": each.run.outputs["test"], "open": each.run.unseen}
        images = ", ".join(count(len(part), f"{split} image") for split, part in parts.items() if part)
        tested.setdefault(images, []).append(each.name)
    sizes = list(tested)
    if len(tested) > 1:
        sizes = [f"{size} ({', '.join(names)})" for size, names in tested.items()]
    names = ", ".join(run.name for run in runs)
    return f"{names} · {count(runs[0].report.num_classes, 'class')} · {'; '.join(sizes)}"
