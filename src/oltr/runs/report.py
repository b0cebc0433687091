"""The report of one run: what `report.json` holds, in fractions, and its way to disk and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oltr.errors import UserError
from oltr.files import atomic_write
from oltr.runs.report_shape import fault

if TYPE_CHECKING:
    from oltr.report.tables import Table

SCHEMA = 1


@dataclass(frozen=True)
class Report:
    """The numbers of one run; `report["closed"]["few"]` reads one, `report.table()` shows them."""

    data: dict[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", _plain(self.data))

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def to_json(self) -> str:
        """The text of `report.json`; a number that does not exist is null."""
        return json.dumps(self.data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path: str | Path) -> None:
        """Write `report.json`; the file appears whole or not at all."""
        with atomic_write(Path(path)) as part:
            part.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Report:
        """Read what `save` wrote."""
        again = "`oltr evaluate` on the run writes it anew"
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UserError(f"There is no report at {path}.", try_this=again) from None
        except ValueError as error:
            raise UserError(f"The report {path} is not whole JSON.", str(error), again) from error
        data = _plain(data)
        if isinstance(data, dict) and data.get("schema", SCHEMA) != SCHEMA:
            raise UserError(
                f"The report {path} has schema {data['schema']}; this version reads schema {SCHEMA}.",
                try_this=again,
            )
        if why := fault(data):
            raise UserError(f"{path} is not a whole report.", why, again)
        return cls(data)

    def table(self) -> Table:
        """The report as one row of the paper's table."""
        from oltr.report.tables import comparison  # drawing is the report room's business

        return comparison({self["method"]: self})

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_markdown_(self) -> str:
        return self.table().markdown()


def _plain(value: Any) -> Any:
    """The value in JSON's own types: NaN and infinities become None, numpy and torch scalars numbers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
