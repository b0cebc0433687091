"""`oltr export`: the model checked against its run, then written whole, with its card beside it."""

from __future__ import annotations

import glob
import hashlib
import json
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import oltr
from oltr.console import console
from oltr.errors import UserError
from oltr.files import atomic_write, check_writable

if TYPE_CHECKING:
    from oltr.export.check_images import CheckImages
    from oltr.export.parity import Parity
    from oltr.runs.trained_run import TrainedRun

PACKAGES = ("onnx", "onnxscript", "onnxruntime")


@dataclass(frozen=True)
class Exported:
    """What was written."""

    path: Path
    card: Path
    size: int  # bytes
    parity: Parity

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "onnx": str(self.path),
            "card": str(self.card),
            "bytes": self.size,
            "parity": self.parity.to_dict(),
        }


def check_export(path: Path) -> None:
    """Refuse a place or a machine that no model can be exported to, before any work is done."""
    if path.suffix != ".onnx":
        raise UserError(f"{path} is no name for an ONNX model.", try_this=str(path.with_suffix(".onnx")))
    if path.is_dir():
        raise UserError(f"{path} is a folder.", try_this=str(path / "model.onnx"))
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        raise UserError(f"Export needs {', '.join(missing)}.", try_this='pip install "oltr[export]"')
    check_writable(path)


def export_onnx(run: TrainedRun, path: Path, images: CheckImages) -> Exported:
    """Write the run as an ONNX model, if it gives the run's answers on those images."""
    import onnxruntime

    from oltr.export.card import card_text
    from oltr.export.graph import check_score, in_float32, onnx_model
    from oltr.export.parity import measure

    check_export(path)
    check_score(run)
    console.say("building the graph")
    model = onnx_model(in_float32(run))
    # Onnxruntime warns of constants that it folds.
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    with console.progress("comparing") as progress:
        parity = measure(run, session, images, progress)
    if not parity.difference.equal:
        raise UserError(
            "The exported model does not give the run's answers; nothing was written.",
            "\n".join(parity.lines()),
            "another version of torch, onnxscript or onnxruntime; `oltr doctor` tells those here",
        )
    _describe(model, run, parity)
    content = model.SerializeToString()
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):  # by an export that was killed
        left.unlink(missing_ok=True)
    with atomic_write(path) as part:
        part.write_bytes(content)
    card = path.with_name(f"{path.stem}-card.md")
    with atomic_write(card) as part:
        part.write_text(card_text(run, path.name, hashlib.sha256(content).hexdigest(), parity), "utf-8")
    return Exported(path, card, len(content), parity)


def identity(run: TrainedRun) -> dict[str, str]:
    """What tells this run from any other: its name, its weights and its data."""
    return {
        "name": run.name,
        "weights_sha256": hashlib.sha256(run.folder.model.read_bytes()).hexdigest(),
        "data_fingerprint": str(run.facts["data"]["fingerprint"]),
    }


def _describe(model: Any, run: TrainedRun, parity: Parity) -> None:
    """Put what a user of the file has to know into its metadata: names to strings, tables as JSON."""
    told = {
        "classes": run.class_names,
        "score": run.rule.score,
        "threshold": run.rule.threshold,
        "rule": str(run.rule),
        "temperature": run.temperature,
        "input": "uint8 N×H×W×3, upright RGB as decoded, any height and width",
        "method": run.method,
        "backbone": run.config.backbone,
        "run": identity(run),
        "parity": parity.to_dict(),
        "oltr_version": oltr.__version__,
        "made_with": {name: metadata.version(name) for name in ("torch", *PACKAGES)},
    }
    model.producer_name, model.producer_version = "oltr", oltr.__version__
    del model.metadata_props[:]
    for key, value in told.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        model.metadata_props.add(key=key, value=text)
