"""`oltr export`: a run as one ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from oltr.cli.options import Json, Run, print_json


def export(
    run: Run,
    onnx: Annotated[Path, tyro.conf.arg(metavar="FILE")],
    check: Annotated[str, tyro.conf.arg(metavar="IMAGES|N")] = "100",
    as_json: Json = False,
) -> None:
    """Write a run as one ONNX file: pixels in; resizing, network, labels and rejection rule inside.

    The file is written only if onnxruntime gives the run's answers with it; a model card comes beside it.

    Args:
        onnx: where the model goes, e.g. birds.onnx; its card goes to birds-card.md
        check: images to compare the two on (a file or a folder), or how many of the run's own
    """
    from oltr.console import console
    from oltr.export.write import check_export, export_onnx
    from oltr.runs.trained_run import TrainedRun

    onnx = onnx.expanduser()
    check_export(onnx)
    opened = TrainedRun(run)

    from oltr.export.check_images import check_images

    made = export_onnx(opened, onnx, check_images(opened, int(check) if check.isdecimal() else Path(check)))
    if as_json:
        print_json(made.to_dict())
        return
    print(f"{made.path}: {made.size / 1e6:.1f} MB; its card: {made.card}")
    print("\n".join(made.parity.lines()))
    if "bfloat16" in made.parity.predict_in:
        console.say("For equal answers from `oltr predict`: a run trained with --set precision=float32.")
