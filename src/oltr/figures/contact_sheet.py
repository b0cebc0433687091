"""Many small images on one picture."""

from __future__ import annotations

import numpy as np
from PIL import Image


def contact_sheet(images: np.ndarray, columns: int, zoom: int = 2) -> Image.Image:
    """N×S×S×3 uint8 images row by row, with a thin gap between them, each pixel shown zoom×zoom."""
    count, size = images.shape[:2]
    rows, pitch = -(-count // columns), size + 1
    sheet = np.full((rows * pitch - 1, columns * pitch - 1, 3), 255, dtype=np.uint8)
    for number, image in enumerate(images):
        top, left = number // columns * pitch, number % columns * pitch
        sheet[top : top + size, left : left + size] = image
    return Image.fromarray(sheet.repeat(zoom, axis=0).repeat(zoom, axis=1))
