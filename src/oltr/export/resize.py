"""`data.resize.resized`, bit for bit, as ONNX operators that take pictures of any size.

Cells of pixels are averaged; then rows and after them columns are weighted with whole numbers of 22 bits and
rounded to 8 bits, as Pillow does it. All of these products are of whole numbers below 2^53: exact in float64,
in whatever order a runtime adds them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from onnx import numpy_helper
from onnxscript import opset18
from PIL import Image
from torch import Tensor

from oltr.config import Frame
from oltr.data.pixels import to_pixels
from oltr.data.resize import GAP, SUPPORT

ONE = 2.0**22  # a weight of 1
FLOAT, UINT8, INT32, INT64, DOUBLE = 1, 2, 6, 7, 11  # ONNX's numbers of its types
Value = Any  # a tensor of the graph
op: Any = opset18  # whose type hints know no plain numbers


@torch.library.custom_op("oltr::resize", mutates_args=())
def resize(pixels: Tensor, size: int, resize: str, interpolation: str) -> Tensor:
    """Pictures of one size as a run's frame has them, by Pillow itself: N×H×W×3 → N×3×S×S, uint8."""
    frame = Frame(size, resize, interpolation)
    made = [to_pixels(Image.fromarray(picture), frame) for picture in pixels.numpy()]
    return torch.from_numpy(np.stack(made)).permute(0, 3, 1, 2).contiguous()


@resize.register_fake
def _(pixels: Tensor, size: int, resize: str, interpolation: str) -> Tensor:
    return pixels.new_empty(pixels.shape[0], 3, size, size)


def resize_in_onnx(pixels: Value, size: int, resize: str, interpolation: str) -> Value:
    """The same in ONNX operators."""
    height, width = (op.Squeeze(op.Shape(pixels, start=axis, end=axis + 1)) for axis in (1, 2))
    short = op.Min(height, width)
    down, across = (_span(side, short, Frame(size, resize, interpolation)) for side in (height, width))
    cells_down, cells_across = _cells(down), _cells(across)
    means = _means(pixels, (down, across), (cells_down, cells_across))
    rows = op.MatMul(means, op.Transpose(_weights(across, cells_across, size, interpolation), perm=[1, 0]))
    columns = op.MatMul(_weights(down, cells_down, size, interpolation), _rounded(rows))
    return op.Cast(_rounded(columns), to=UINT8)


class _Span(NamedTuple):
    """What is resized of an axis, as in `data.resize`; all scalars."""

    low: Value  # float64, where it begins and ends
    high: Value
    factor: Value  # int64, pixels that are averaged
    first: Value  # int64, the pixels that are kept: from first to last − 1
    last: Value


def _span(side: Value, short: Value, frame: Frame) -> _Span:
    """What is kept of an axis, and the pixels that a filter reaches from there."""
    low, high = _kept(side, short, frame)
    scale = (high - low) / _d(frame.size)
    factor = op.Max(op.Cast(op.Floor(scale / _d(GAP)), to=INT64), 1)
    reach = op.Max(scale, _d(1)) * _d(SUPPORT[frame.interpolation] - 0.5)
    first = op.Max(op.Cast(op.Floor(low - reach), to=INT64), 0)
    last = op.Min(op.Cast(op.Ceil(high + reach), to=INT64), side)
    return _Span(low, high, factor, first, last)


def _kept(side: Value, short: Value, frame: Frame) -> tuple[Value, Value]:
    """Where the part of an axis that becomes the frame begins and ends, float64."""
    whole = op.Cast(side, to=DOUBLE)
    if frame.resize == "short-side":
        becomes = op.Cast(side * frame.size / short, to=DOUBLE)  # int64: rounded down
        begin = op.Round((becomes - _d(frame.size)) / _d(2))
        return begin * whole / becomes, (begin + _d(frame.size)) * whole / becomes
    low = (whole - op.Cast(short, to=DOUBLE)) / _d(2) if frame.resize == "crop" else _d(0)
    return low, whole - low


class _Cells(NamedTuple):
    """The pixels of an axis in groups of `factor`, the last one with what is left."""

    number: Value  # int64
    missing: Value  # int64, pixels that the last one lacks
    sizes: Value  # number, int64


def _cells(span: _Span) -> _Cells:
    pixels = span.last - span.first
    number = (pixels + span.factor - 1) / span.factor
    sizes = op.Min(pixels - op.Range(0, number, 1) * span.factor, span.factor)
    return _Cells(number, number * span.factor - pixels, sizes)


def _means(pixels: Value, spans: tuple[_Span, _Span], cells: tuple[_Cells, _Cells]) -> Value:
    """The rounded mean of each cell: N×H×W×3 uint8 → N×3×h×w float64."""
    (down, across), (rows, columns) = spans, cells
    kept = op.Slice(pixels, _list(down.first, across.first), _list(down.last, across.last), [1, 2])
    kept = op.Pad(kept, _list(0, 0, 0, 0, 0, rows.missing, columns.missing, 0))
    batch = op.Shape(pixels, start=0, end=1)
    kept = op.Reshape(op.Cast(kept, to=INT32), op.Concat(batch * rows.number, _list(down.factor, -1), axis=0))
    sums = op.ReduceSum(kept, [1], keepdims=0)
    sums = op.ReduceSum(op.Reshape(sums, _list(-1, across.factor, 3)), [1], keepdims=0)
    sums = op.Reshape(sums, op.Concat(batch, _list(rows.number, columns.number, 3), axis=0))
    sums = op.Cast(op.Transpose(sums, perm=[0, 3, 1, 2]), to=DOUBLE)
    count = op.Unsqueeze(rows.sizes, [1]) * columns.sizes  # h×w
    # Pillow's (sum + n // 2) / n is a product with ⌊2^24 / n⌋, that quotient rounded to float32 before.
    share = op.Floor(op.Div(2.0**24, op.Cast(count, to=FLOAT)))
    return op.Floor((sums + op.Cast(count / 2, to=DOUBLE)) * op.Cast(share, to=DOUBLE) / _d(2**24))


def _weights(span: _Span, cells: _Cells, size: int, interpolation: str) -> Value:
    """What each cell of an axis adds to each pixel of the frame: S×cells, whole numbers as float64."""
    first, factor = op.Cast(span.first, to=DOUBLE), op.Cast(span.factor, to=DOUBLE)
    # Pillow hands the box on as float32.
    low, high = (op.Cast((end - first) / factor, to=FLOAT) for end in (span.low, span.high))
    scale = op.Cast(high - low, to=DOUBLE) / _d(size)
    wide = op.Max(scale, _d(1))
    reach = wide * _d(SUPPORT[interpolation])
    steps = op.Cast(op.Unsqueeze(op.Range(0, size, 1), [1]), to=DOUBLE) + _d(0.5)
    centre = op.Cast(low, to=DOUBLE) + steps * scale  # S×1
    begin, end = op.Floor(centre - reach + _d(0.5)), op.Floor(centre + reach + _d(0.5))
    place = op.Cast(op.Range(0, cells.number, 1), to=DOUBLE)  # cells
    filtered = _FILTERS[interpolation](op.Abs((place - centre + _d(0.5)) * (_d(1) / wide)))
    raw = op.Where(op.And(place >= begin, place < end), filtered, _d(0))
    # Added one after the other, as in Pillow: another order would round differently.
    total = op.Slice(op.CumSum(raw, 1), [-1], [2**31 - 1], [1])
    share = raw / op.Where(op.Equal(total, _d(0)), _d(1), total) * _d(ONE)
    return op.Where(share < _d(0), op.Ceil(share - _d(0.5)), op.Floor(share + _d(0.5)))


def _bilinear(x: Value) -> Value:
    return op.Max(_d(1) - x, _d(0))


def _bicubic(x: Value) -> Value:
    """Keys' kernel with a = −1/2."""
    near = (x * _d(1.5) - _d(2.5)) * x * x + _d(1)
    far = (((x - _d(5)) * x + _d(8)) * x - _d(4)) * _d(-0.5)
    return op.Where(x < _d(1), near, op.Where(x < _d(2), far, _d(0)))


_FILTERS = {"bilinear": _bilinear, "bicubic": _bicubic}


def _rounded(sums: Value) -> Value:
    """Weighted sums as pixels again, 0 to 255."""
    return op.Min(op.Max(op.Floor((sums + _d(ONE / 2)) / _d(ONE)), _d(0)), _d(255))


def _list(*values: Value) -> Value:
    """Scalars and plain numbers as one int64 vector."""
    parts = [
        op.Constant(value_ints=[each]) if isinstance(each, int) else op.Reshape(each, [1]) for each in values
    ]
    return op.Concat(*parts, axis=0)


def _d(number: float) -> Value:
    """A float64 constant."""
    return op.Constant(value=numpy_helper.from_array(np.array(number, dtype=np.float64)))
