"""Epochs in TensorBoard's log files."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from oltr.errors import UserError


def check_tensorboard() -> None:
    """Refuse to train with it where it is not installed."""
    if find_spec("tensorboard") is None:
        raise UserError("TensorBoard is not installed.", try_this="pip install 'oltr[tensorboard]'")


class EpochLog:
    """loss, overall and open F of each epoch of a stage, under its number in metrics.csv."""

    def __init__(self, folder: Path, stage: int):
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(folder / "tensorboard" / f"stage{stage}")

    def add(self, row: Mapping[str, Any]) -> None:
        """Log one epoch; what was not measured is left out."""
        for name in ("loss", "overall", "open_f"):
            if row[name] is not None:
                self.writer.add_scalar(f"stage{row['stage']}/{name}", row[name], row["epoch"])
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()
