"""Feature files: NumPy's, and MegaFace's `.bin`, one matrix or one file an image."""

from __future__ import annotations

import itertools
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from oltr.console import console
from oltr.errors import UserError
from oltr.identify.samples import GIVEN, Samples
from oltr.wording import count

HEADER = np.dtype("<i4")  # rows, columns, bytes a row, type of element
FLOAT32 = 5  # OpenCV's CV_32F
FORMS = (
    ".npz with `features` (N×D) and `labels` (N), .npy for distractors, .bin with a label a line in the .txt "
    "beside it, or a folder IDENTITY/IMAGE.bin"
)


def is_feature_source(source: str | Path) -> bool:
    """Whether a source holds features rather than images."""
    path = Path(source).expanduser()
    return path.suffix.lower() in (".npz", ".npy", ".bin") or (path.is_dir() and _has_bins(path))


def read_features(source: str | Path) -> Samples:
    """Features and identities from a file or folder of features."""
    path = Path(source).expanduser()
    if not path.exists():
        raise UserError(f"There is no feature file {path}.", f"A feature file is {FORMS}.")
    if path.is_dir():
        return _read_folder(path)
    return {".npz": _read_npz, ".npy": _read_npy}.get(path.suffix.lower(), _read_matrix)(path)


def _read_npy(path: Path) -> Samples:
    """Features of nobody, mapped rather than read."""
    try:
        features = np.lib.format.open_memmap(path, mode="c")
    except Exception as problem:  # NumPy reads headers as Python, and fails as Python does
        raise _unreadable(path, problem) from None
    return Samples(str(path), {GIVEN: _floats(features, path)}, np.full(features.shape[:1], -1))


def _read_npz(path: Path) -> Samples:
    if not zipfile.is_zipfile(path):
        raise _unreadable(path, "It is not an archive as numpy.savez writes it.")
    try:
        with np.load(path, allow_pickle=False) as file:
            there = list(file)
            arrays = {name: file[name] for name in ("features", "labels", "paths") if name in file}
        for name in ("labels", "paths"):
            if name in arrays and arrays[name].dtype.kind == "S":
                arrays[name] = np.char.decode(arrays[name], "utf-8")
    except Exception as problem:  # of zip, zlib, NumPy and of its headers, which are Python
        objects = "Object arrays" in str(problem)
        raise _unreadable(path, "Names are saved by labels.astype(str)." if objects else problem) from None
    if missing := sorted({"features", "labels"} - set(there)):
        raise UserError(
            f"{path} has no array called {' and none called '.join(missing)}.",
            f"It holds {', '.join(there) or 'nothing'}.",
            "numpy.savez(FILE, features=..., labels=...)",
        )
    labels, paths = arrays["labels"], arrays.get("paths")
    if labels.ndim != 1 or labels.dtype.kind not in "iuU":
        raise UserError(f"The labels of {path} are not a list of names or integers.")
    if paths is not None and (paths.shape != labels.shape or paths.dtype.kind != "U"):
        raise UserError(f"The paths of {path} are not a name for each of {count(len(labels), 'label')}.")
    return Samples(str(path), {GIVEN: _floats(arrays["features"], path)}, labels, paths)


def _unreadable(path: Path, why: object) -> UserError:
    return UserError(f"{path} cannot be read as a feature file.", str(why))


def _floats(features: np.ndarray, path: Path) -> Tensor:
    """As a tensor, which has fewer forms of numbers than NumPy."""
    if features.dtype.kind != "f":
        raise UserError(f"The features of {path} are {features.dtype}, not floats.")
    kind = features.dtype.newbyteorder("=") if features.dtype.itemsize <= 8 else np.dtype(np.float64)
    return torch.from_numpy(features.astype(kind, copy=False))


def read_bin(path: Path) -> np.ndarray:
    """A matrix as MegaFace's tools write it: four little-endian integers, then rows of float32."""
    header = np.fromfile(path, HEADER, 4)
    size = path.stat().st_size - header.nbytes
    if len(header) < 4 or header[3] != FLOAT32 or min(header) < 1:
        raise UserError(
            f"{path} is no feature file of MegaFace's form.",
            f"Its first four integers are {header.tolist()}, not rows, columns, bytes a row and 5 (float32).",
        )
    rows, columns, stride = (int(number) for number in header[:3])
    # A single column is written as rows of one number; its stride may be that of the whole column.
    stride = columns * 4 if columns == 1 else stride
    if stride < columns * 4 or stride % 4 or size < rows * stride - (stride - columns * 4):
        raise UserError(f"{path} is cut off: {rows}×{columns} float32 do not fit in {size:,} bytes.")
    numbers = np.fromfile(path, "<f4", offset=header.nbytes)
    if stride == columns * 4:
        return numbers[: rows * columns].reshape(rows, columns)
    padded = np.zeros(rows * stride // 4, np.float32)
    padded[: len(numbers)] = numbers[: len(padded)]
    return padded.reshape(rows, stride // 4)[:, :columns].copy()


def _read_matrix(path: Path) -> Samples:
    features, listed = read_bin(path), path.with_suffix(".txt")
    if not listed.is_file():
        raise UserError(
            f"There is no label list {listed}.",
            f"{path} holds {count(len(features), 'feature')}; the list has a label a line.",
        )
    try:
        text = listed.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as problem:
        raise UserError(f"{listed} is not UTF-8 text (byte {problem.start}).") from None
    labels = [line.strip() for line in text.removesuffix("\n").split("\n")]
    while len(labels) > len(features) and not labels[-1]:  # empty lines at the end
        labels.pop()
    if len(labels) != len(features):
        raise UserError(
            f"{listed} has {count(len(labels), 'line')}, {path} has {count(len(features), 'feature')}."
        )
    return Samples(str(path), {GIVEN: torch.from_numpy(features)}, np.array(labels, dtype=object))


def _read_folder(folder: Path) -> Samples:
    """IDENTITY/IMAGE.bin, at any depth; the innermost folder is the identity."""
    files, features = sorted(folder.rglob("*.bin")), np.empty((0, 0), np.float32)
    with console.progress("features") as progress:
        for row, file in enumerate(files):
            vector = read_bin(file).ravel()
            if not row:
                features = np.empty((len(files), len(vector)), np.float32)
            if len(vector) != features.shape[1]:
                raise UserError(
                    f"The features of {folder} are of unequal width: {files[0].name} has "
                    f"{features.shape[1]} numbers, {file} has {len(vector)}."
                )
            features[row] = vector
            progress(row + 1, len(files))
    labels = np.array([file.parent.name for file in files], dtype=object)
    paths = np.array([file.relative_to(folder).as_posix() for file in files], dtype=object)
    return Samples(str(folder), {GIVEN: torch.from_numpy(features)}, labels, paths)


def _has_bins(folder: Path) -> bool:
    """Whether a `.bin` is among the first files below a folder, without a walk through a million images."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return any(file.suffix == ".bin" for file in itertools.islice(files, 100))
