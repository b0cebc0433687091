"""`oltr demo`: the whole story on embedded data."""

from __future__ import annotations

from pathlib import Path

from oltr.cli.options import Epochs, Json, print_json

METHODS = ("plain", "class-aware", "oltr")


def demo(out: Path = Path("runs/demo"), seed: int = 0, epochs: Epochs = (), as_json: Json = False) -> None:
    """Draw a long-tailed set, train three methods on it for equally long, and compare them.

    An interrupted demo is resumed; a finished one shows its table again.

    Args:
        out: the folder for data and runs
        seed: decides data, weights and batches
        epochs: of stage 1 and stage 2, to make it shorter
    """
    import time

    from oltr.console import console
    from oltr.data.pack import open_pack
    from oltr.runs.tables import comparison
    from oltr.runs.train_run import train_run
    from oltr.runs.trained_run import TrainedRun
    from oltr.suites.data import draw_glyphs
    from oltr.training.configure import configure
    from oltr.training.options import TrainOptions
    from oltr.training.run_folder import RunFolder

    began = time.monotonic()
    configs = {method: configure("glyphs", method, epochs=epochs, seed=seed) for method in METHODS}
    pack = draw_glyphs(out, seed)
    manifest = open_pack(pack).manifest
    reports = {}
    for method, config in configs.items():
        folder = RunFolder(out / method)
        if folder.report.is_file() and folder.run()["finished"]:
            folder.check_same(config, manifest)
            reports[method] = TrainedRun(folder.path).measure()
            continue
        console.say(f"\n{method}")
        # Stage 1 is the same for all: the first run trains it, the others share it.
        shared = None if method == METHODS[0] else out / METHODS[0]
        options = TrainOptions(resume=(folder.path / "run.yaml").is_file(), stage1_from=shared)
        report = train_run(config, manifest, folder.path, options, str(pack))
        assert report is not None
        reports[method] = report
    if as_json:
        print_json({name: report.data for name, report in reports.items()})
    else:
        print(comparison(reports).text())
    page = _write_page(out)
    console.say(
        f"\n{time.monotonic() - began:.0f} s in all; a look at the data: {out / 'glyphs.png'}\n"
        + (f"a page of it all, with figures: {page}\n" if page else "")
        + f"next: oltr train FOLDER_OF_PHOTOS, or oltr evaluate {out / 'oltr'} --per-class 10"
    )


def _write_page(out: Path) -> Path | None:
    """The report page of the three runs; the table is printed, and no fault here may cost it."""
    from oltr.console import console

    page = out / "report.html"
    try:
        from oltr.report.page.write import write_page

        write_page([out / method for method in METHODS], page)
    except Exception as problem:
        console.warn(f"{page} could not be made: {problem}")
        return None
    return page
