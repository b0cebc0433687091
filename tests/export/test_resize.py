"""The resizing of an exported model against Pillow, bit for bit."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image
from torch import nn

from oltr.config import Frame
from oltr.data.pixels import to_pixels
from oltr.export.graph import to_onnx

KINDS = [
    Frame(20, resize, interpolation)
    for resize in ("stretch", "crop", "short-side")
    for interpolation in ("bilinear", "bicubic")
]
# Equal, larger, smaller, one side equal, reduced before on both axes or one, with and without a rest.
SIZES = [
    (20, 20), (20, 33), (33, 20), (1, 1), (1, 50), (7, 5), (19, 21), (41, 60), (119, 118), (121, 120),
    (123, 200), (200, 123), (15, 400), (400, 15), (361, 362), (500, 733), (1000, 90),
]  # fmt: skip


class Resize(nn.Module):
    def __init__(self, frame: Frame):
        super().__init__()
        self.frame = frame

    def forward(self, pixels):
        frame = self.frame
        return {"square": torch.ops.oltr.resize(pixels, frame.size, frame.resize, frame.interpolation)}


@pytest.fixture(scope="module")
def session(request) -> onnxruntime.InferenceSession:
    axes = {0: torch.export.Dim("N"), 1: torch.export.Dim("H"), 2: torch.export.Dim("W")}
    example = torch.zeros(2, 30, 40, 3, dtype=torch.uint8)
    model = to_onnx(Resize(request.param), {"pixels": example}, {"pixels": axes})
    return onnxruntime.InferenceSession(model.SerializeToString())


def pictures(height: int, width: int, seed: int) -> np.ndarray:
    """One of noise, one smooth, one of black and white, where filters overshoot."""
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    colours = rng.integers(0, 256, (3, 4, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(colours).resize((width, height), Image.Resampling.BICUBIC))
    return np.stack([noise, smooth, 255 * (noise > 127).astype(np.uint8)])


@pytest.mark.parametrize(("session", "frame"), [(each, each) for each in KINDS], indirect=["session"])
def test_every_pixel_is_pillows(session, frame):
    for seed, (height, width) in enumerate(SIZES):
        given = pictures(height, width, seed)
        (found,) = session.run(None, {"pixels": given})
        wanted = np.stack([to_pixels(Image.fromarray(each), frame) for each in given])
        np.testing.assert_array_equal(found.transpose(0, 2, 3, 1), wanted, f"{height}×{width}")
