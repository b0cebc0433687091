"""Forms in which predictions are handed on: a file for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from oltr.errors import UserError

if TYPE_CHECKING:
    from oltr.runs.named_images import NamedImages
    from oltr.runs.trained_run import TrainedRun

Format = Literal["csv", "timelapse", "camtrap-dp", "coco"]
# form → (module, function, endings of --out, --out unless given)
FORMATS: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    "csv": ("table", "write_table", (".csv", ".parquet", ".json"), "predictions.csv"),
    "timelapse": ("timelapse", "write_timelapse", (".json",), "timelapse.json"),
    "camtrap-dp": ("camtrap_dp", "write_camtrap_dp", ("",), "camtrap-dp"),
    "coco": ("coco", "write_coco", (".json",), "coco.json"),
}
assert tuple(FORMATS) == get_args(Format)


@dataclass(frozen=True, eq=False)
class Predictions:
    """All there is to write: rows of answers, for the images in their order."""

    run: TrainedRun
    images: NamedImages
    rows: Callable[[], Iterator[dict[str, Any]]]
    batches: Callable[[], Iterator[list[list[Any]]]]  # the same as cells of a table, some rows at a time
    columns: dict[str, str]  # of the table, with pandas' names of their types
    begun: str  # when, ISO 8601

    @property
    def maker(self) -> str:
        """Who says so."""
        return f"oltr {self.run.name} ({self.run.model_version})"

    def seen_from(self, folder: Path, path: str) -> str:
        """A path as a file in `folder` names it: relative where it lies below, with forward slashes."""
        if self.images.pack is not None:
            return path
        whole = Path(path).absolute()
        below = whole.is_relative_to(folder.absolute())
        return (whole.relative_to(folder.absolute()) if below else Path(path)).as_posix()


def out_of(format: str, out: Path | None) -> Path:
    """Where the result goes; a name that does not fit the form is refused."""
    _, _, endings, usual = FORMATS[format]
    out = Path(usual) if out is None else out.expanduser()
    if out.suffix.lower() not in endings and endings != ("",):
        raise UserError(
            f"--out {out} does not fit --format {format}.",
            try_this=f"a name ending in {' or '.join(endings)}",
        )
    return out


def write_as(format: str, predictions: Predictions, out: Path) -> None:
    """Write the result, whole or not at all."""
    module, function, _, _ = FORMATS[format]
    getattr(import_module(f"{__name__}.{module}"), function)(predictions, out)
