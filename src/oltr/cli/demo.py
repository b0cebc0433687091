"""`oltr demo`: the whole story on embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from oltr.cli.options import Epochs, Json, print_json

if TYPE_CHECKING:
    from oltr.console import Console
    from oltr.runs.report import Report

METHODS = ("plain", "class-aware", "oltr")


def demo(out: Path = Path("runs/demo"), seed: int = 0, epochs: Epochs = (), as_json: Json = False) -> None:
    """Draw a long-tailed set, train three methods on it for equally long, and compare them.

    An interrupted demo goes on where it stopped; a finished one shows its table again.

    Args:
        out: the folder for data and runs
        seed: decides data, weights and batches
        epochs: of stage 1 and stage 2, to make it shorter
    """
    import time

    from oltr.cli.glyph_pack import draw_glyphs
    from oltr.console import Console
    from oltr.data.pack import open_pack
    from oltr.report.tables import comparison
    from oltr.runs.decision import UNKNOWN_RATE
    from oltr.runs.evaluate_run import cached_outputs, make_report
    from oltr.runs.train_run import train_run
    from oltr.training.configure import configure
    from oltr.training.options import TrainOptions
    from oltr.training.run_folder import RunFolder

    console, began = Console(), time.monotonic()
    configs = {method: configure("glyphs", method, epochs=epochs, seed=seed) for method in METHODS}
    pack = draw_glyphs(out, seed, console)
    manifest = open_pack(pack).manifest
    reports = {}
    for method, config in configs.items():
        folder = out / method
        if RunFolder(folder).report.is_file() and RunFolder(folder).run()["finished"]:
            RunFolder(folder).check_same(config, manifest)
            # Not its report.json: `oltr evaluate` may have put another threshold there.
            reports[method] = make_report(RunFolder(folder), cached_outputs(RunFolder(folder)))
            continue
        console.say(f"\n{method}")
        # Stage 1 is the same for all: the first run trains it, the others take it over.
        shared = None if method == METHODS[0] else out / METHODS[0]
        options = TrainOptions(resume=(folder / "run.yaml").is_file(), stage1_from=shared)
        report = train_run(config, manifest, folder, console, options, str(pack))
        assert report is not None
        reports[method] = report
    careful = {}
    for method in METHODS:
        run = RunFolder(out / method)
        careful[method] = make_report(run, cached_outputs(run), unknown_rate=UNKNOWN_RATE)
    if as_json:
        print_json({"default": _plain(reports), f"unknown_rate_{UNKNOWN_RATE}": _plain(careful)})
        _write_page(out, console)
        return
    idle = max(report["open"]["unknown_recall"] for report in reports.values()) < 0.1
    remark = ": it rejects almost nothing here" if idle else ""
    print(f"Threshold 0.1 on the softmax probability, as in the paper{remark}.\n")
    print(comparison(reports).text())
    share = f"at most {UNKNOWN_RATE:.0%} of known validation images"
    print(f"\nThreshold that calls {share} unknown (--unknown-rate).\n")
    print(comparison(careful).text())
    page = _write_page(out, console)
    console.say(
        f"\n{time.monotonic() - began:.0f} s in all; a look at the data: {out / 'glyphs.png'}\n"
        + (f"a page of it all, with figures: {page}\n" if page else "")
        + f"next: oltr train FOLDER_OF_PHOTOS, or oltr evaluate {out / 'oltr'} --per-class 10"
    )


def _write_page(out: Path, console: Console) -> Path | None:
    """The report page of the three runs; the demo's numbers are out, and no fault here may cost them."""
    page = out / "report.html"
    try:
        from oltr.report.page.write import write_page

        write_page([out / method for method in METHODS], page, console)
    except Exception as problem:
        console.warn(f"{page} could not be made: {problem}")
        return None
    return page


def _plain(reports: dict[str, Report]) -> dict[str, Any]:
    return {name: report.data for name, report in reports.items()}
