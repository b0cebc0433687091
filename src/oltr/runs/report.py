"""The report of one run: what `report.json` holds, in fractions, and its way to disk and back."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from oltr.errors import UserError
from oltr.files import atomic_write
from oltr.metrics.group_numbers import GroupAccuracy
from oltr.runs.level_report import ByLevel
from oltr.runs.tables import Table, comparison

SCHEMA = 1
Intervals = dict[str, list[float] | None]
_LEFT_OUT = {"left out": True}  # report.json lacks it, rather than having null, where there is none


@dataclass(frozen=True)
class Shots:
    """How many classes each shot group has."""

    many: int
    medium: int
    few: int


@dataclass(frozen=True)
class Closed:
    """Means of per-class accuracies over balanced test classes; None for a group without classes."""

    many: float | None
    medium: float | None
    few: float | None
    overall: float | None
    macro_f1: float | None = None
    # By mean over classes too; none where there are no more than five.
    top5: float | None = field(default=None, metadata=_LEFT_OUT)
    # The share of images named rightly, however many each class has.
    micro: float | None = field(default=None, metadata=_LEFT_OUT)
    # 95 %, of the numbers by these names.
    interval: Intervals | None = field(default=None, metadata=_LEFT_OUT)


@dataclass(frozen=True)
class Open:
    """The same when images may be rejected, and how well known and unknown images are told apart."""

    score: str
    threshold: float
    unknown_rate: float | None = None  # that the threshold was chosen for
    many: float | None = None
    medium: float | None = None
    few: float | None = None
    overall: float | None = None
    unknown_recall: float | None = None
    f_measure: float | None = None
    f_measure_2019: float | None = None
    auroc: float | None = None
    aupr_known: float | None = None
    aupr_unknown: float | None = None
    fpr95_known: float | None = None
    fpr95_unknown: float | None = None
    detection_error: float | None = None
    detection_error_min: float | None = None
    oscr: float | None = None
    # How the score's own numbers were chosen, if they were.
    tuned: str | None = field(default=None, metadata=_LEFT_OUT)
    interval: Intervals | None = field(default=None, metadata=_LEFT_OUT)


@dataclass(frozen=True)
class CalibrationNumbers:
    """Probabilities of the test images, as they are and divided by the run's temperature before softmax."""

    temperature: float | None  # that suits the validation images; None without any
    ece: float  # expected calibration error
    nll: float  # negative log-likelihood
    calibrated_ece: float | None = None
    calibrated_nll: float | None = None


@dataclass(frozen=True)
class ClassNumbers:
    """One class; None without test images."""

    name: str
    train_count: int
    accuracy: float | None
    f1: float | None
    interval: list[float] | None = field(default=None, metadata=_LEFT_OUT)  # 95 %, of the accuracy


@dataclass(frozen=True)
class Regrouped:
    """The accuracy of shot groups as the published row beside the run counts them, where that differs."""

    rule: str
    shots: Shots
    closed: dict[str, float | None]
    open: dict[str, float | None] | None = field(default=None, metadata=_LEFT_OUT)


@dataclass(frozen=True, repr=False)
class Report:
    """The numbers of one run: `report.closed.few`, or `report["closed"]["few"]` as in report.json."""

    method: str
    backbone: str
    num_classes: int
    shots: Shots
    closed: Closed
    per_class: list[ClassNumbers]
    open: Open | None = field(default=None, metadata=_LEFT_OUT)
    calibration: CalibrationNumbers | None = field(default=None, metadata=_LEFT_OUT)
    # Where classes have parents and it was asked for; report.json of a run never has it.
    parents: ByLevel | None = field(default=None, metadata=_LEFT_OUT)
    # By columns of the data (site, camera, sex) where it was asked for.
    by_group: dict[str, GroupAccuracy] | None = field(default=None, metadata=_LEFT_OUT)
    # What was taken from the logits after training, as run.yaml has it.
    adjustment: dict[str, Any] | None = field(default=None, metadata=_LEFT_OUT)
    # What these figures are not about, such as classes that were added since.
    note: str | None = field(default=None, metadata=_LEFT_OUT)
    train_seconds: float | None = None
    expect: dict[str, Any] = field(default_factory=dict)
    regrouped: Regrouped | None = field(default=None, metadata=_LEFT_OUT)
    schema: int = SCHEMA

    @cached_property
    def data(self) -> dict[str, Any]:
        """What report.json holds; `open` is absent when there are no open images."""
        data = _plain(self)
        ordered = {key: data.pop(key) for key in _ORDER if key in data}
        return ordered | data

    def table(self) -> Table:
        """The report as one row of the paper's table."""
        return comparison({self.method: self})

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_markdown_(self) -> str:
        return self.table().markdown()

    @classmethod
    def from_dict(cls, data: Any) -> Report:
        """The report of plain values; a ValueError says what is missing or wrong."""
        report = _build(cls, _plain(data), "")
        if len(report.per_class) != report.num_classes:
            raise ValueError("per_class must have as many entries as num_classes says.")
        return report

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def to_json(self) -> str:
        """The text of `report.json`; a number that does not exist is null."""
        return json.dumps(self.data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path: str | Path) -> None:
        """Write `report.json`, atomically."""
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
            raise UserError(f"The report {path} is not valid JSON.", str(error), again) from error
        if isinstance(data, dict) and data.get("schema", SCHEMA) != SCHEMA:
            raise UserError(
                f"The report {path} has schema {data['schema']}; this version reads schema {SCHEMA}.",
                try_this=again,
            )
        try:
            return cls.from_dict(data)
        except ValueError as problem:
            raise UserError(f"{path} is not a complete report.", str(problem), again) from None


_ORDER = ("schema", "method", "backbone", "num_classes", "shots", "closed", "open", "per_class")


def _build(cls: Any, data: Any, place: str) -> Any:
    """A dataclass from plain values; names that it does not have are ignored."""
    if not isinstance(data, Mapping):
        raise ValueError(f"{place.rstrip('.') or 'It'} must hold names and values.")
    hints, found = typing.get_type_hints(cls), {}
    for each in dataclasses.fields(cls):
        where = f"{place}{each.name}"
        if each.name in data:
            found[each.name] = _fit(hints[each.name], data[each.name], where)
        elif each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING:
            raise ValueError(f"{where} is missing.")
    return cls(**found)


def _fit(hint: Any, value: Any, where: str) -> Any:
    """The value, if it is of that type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        return None if value is None else _fit(arguments[0], value, where)
    if dataclasses.is_dataclass(hint):
        return _build(hint, value, f"{where}.")
    if origin is list and isinstance(value, list):
        return [_fit(arguments[0], item, f"{where}[{place}]") for place, item in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {key: _fit(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    kinds: Any = (float, int) if hint is float else hint
    if hint is Any or (isinstance(kinds, type | tuple) and isinstance(value, kinds) and value is not True):
        return value
    raise ValueError(f"{where} must not be {value!r}.")


def _plain(value: Any) -> Any:
    """The value in JSON's own types: NaN and infinities become None, numpy and torch scalars numbers."""
    if dataclasses.is_dataclass(value):
        entries = ((each, getattr(value, each.name)) for each in dataclasses.fields(value))
        return {
            each.name: _plain(entry)
            for each, entry in entries
            if entry is not None or "left out" not in each.metadata
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
