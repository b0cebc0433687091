"""Pictures with shapes, as photographs have them, and copies of them as people make them."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageEnhance


def scene(seed: int, width: int = 160, height: int = 120) -> Image.Image:
    """Soft shapes of several sizes and colours; another seed, another picture."""
    rng = np.random.default_rng(seed)
    total = np.zeros((height, width, 3))
    for cells, strength in ((3, 70), (6, 40), (12, 20), (40, 8)):
        for channel in range(3):
            blot = Image.fromarray(rng.normal(size=(cells, cells)).astype(np.float32))
            total[..., channel] += strength * np.asarray(
                blot.resize((width, height), Image.Resampling.BICUBIC)
            )
    return Image.fromarray(np.clip(total + 128, 0, 255).astype(np.uint8))


def copies(picture: Image.Image) -> dict[str, Image.Image]:
    """The same picture re-encoded, resized, brightened, darkened, cropped a little."""
    width, height = picture.size
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=40)
    return {
        "encoded": Image.open(buffer),
        "smaller": picture.resize((width // 2, height // 2), Image.Resampling.LANCZOS),
        "larger": picture.resize((width * 2, height * 2), Image.Resampling.BICUBIC),
        "brighter": ImageEnhance.Brightness(picture).enhance(1.1),
        "darker": ImageEnhance.Brightness(picture).enhance(0.85),
        "cropped": picture.crop((3, 2, width - 3, height - 2)),
    }


def textures(size: int = 64) -> dict[str, Image.Image]:
    """Pictures without noise that have little in common: gradients, waves, rings, boards."""
    y, x = np.mgrid[0:size, 0:size] / size
    radius = np.hypot(x - 0.5, y - 0.5)
    fields = {
        "right": x,
        "left": 1 - x,
        "down": y,
        "up": 1 - y,
        "centre": 1 - radius,
        "corner": np.hypot(x, y) / 1.5,
        "rings": np.sin(30 * radius) / 2 + 0.5,
    }
    for waves in (1, 2, 3, 5, 8):
        fields |= {f"upright {waves}": np.sin(2 * np.pi * waves * x) / 2 + 0.5}
        fields |= {f"lying {waves}": np.sin(2 * np.pi * waves * y) / 2 + 0.5}
        fields |= {f"slanted {waves}": np.sin(2 * np.pi * waves * (x + y) / 2) / 2 + 0.5}
        fields |= {f"board {waves}": ((2 * waves * x).astype(int) + (2 * waves * y).astype(int)) % 2.0}
    return {
        name: Image.fromarray((255 * field).astype(np.uint8)).convert("RGB") for name, field in fields.items()
    }
