"""One picture of one character: a glyph on a textured background, varied the way photographed signs are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.font_manager import get_font
from PIL import Image, ImageDraw, ImageFont

# True italics are left out: they redraw letters so that one class would look like another (italic a like α).
FONTS = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-Oblique",
    "DejaVuSans-BoldOblique",
    "DejaVuSansMono",
    "DejaVuSansMono-Bold",
    "DejaVuSansMono-Oblique",
    "DejaVuSansMono-BoldOblique",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "STIXGeneral",
    "STIXGeneralBol",
)

SUPERSAMPLING = 2
LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)


@dataclass(frozen=True)
class Variety:
    """How far the pictures of one character may differ; wider ranges make the set harder."""

    height: tuple[float, float] = (0.5, 0.85)  # longer side of the glyph, as a share of the picture
    rotation: float = 20.0  # degrees either way; bounded, so that 6 never turns into 9
    shear: float = 0.3
    stretch: float = 0.1
    stroke: float = 0.04  # widest outline added, as a share of the font size
    contrast: tuple[float, float] = (0.2, 0.7)  # luma between glyph and background
    light_ink: float = 0.5  # share of pictures with a light glyph on a dark background
    texture: tuple[float, float] = (0.1, 0.6)  # amplitude of the background, as a share of the contrast
    noise: tuple[float, float] = (0.01, 0.08)
    scratches: int = 3  # most stray strokes in one picture


DEFAULT_VARIETY = Variety()


def draw_glyph(
    character: str, size: int, rng: np.random.Generator, variety: Variety = DEFAULT_VARIETY
) -> np.ndarray:
    """A size × size × 3 picture (uint8) of the character, everything else about it drawn from `rng`."""
    glyph = _glyph_cover(character, size, rng, variety)
    back, ink = _two_colours(rng, variety)
    contrast = abs(float((ink - back) @ LUMA))
    amplitude = contrast * rng.uniform(*variety.texture)
    hue_shift = rng.uniform(-0.5, 1.0, 3).astype(np.float32)
    picture = back + amplitude * _texture(size, rng)[..., None] * hue_shift
    for _ in range(rng.integers(0, variety.scratches + 1)):
        picture = _blend(picture, _scratch_cover(size, rng), _between(back, ink, rng))
    shade = 0.3 * contrast * _gradient(size, rng)[..., None]
    picture = _blend(picture, glyph, ink + shade)
    picture += rng.normal(0.0, rng.uniform(*variety.noise), picture.shape).astype(np.float32)
    return (np.clip(picture, 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)


@lru_cache(maxsize=1)
def font_coverage() -> dict[str, frozenset[int]]:
    """The code points each font really has, so that no picture shows the box of a missing glyph."""
    return {name: frozenset(get_font(str(_font_path(name))).get_charmap()) for name in FONTS}


@lru_cache(maxsize=4096)
def fonts_with(character: str) -> tuple[str, ...]:
    """The fonts that have the character."""
    return tuple(name for name in FONTS if ord(character) in font_coverage()[name])


def _font_path(name: str) -> Path:
    return Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{name}.ttf"


@lru_cache(maxsize=256)
def _font(name: str, pixels: int) -> ImageFont.FreeTypeFont:
    # The basic layout does the same on every machine; the other one depends on an optional library.
    return ImageFont.truetype(str(_font_path(name)), pixels, layout_engine=ImageFont.Layout.BASIC)


def glyph_mask(character: str, font: str, pixels: int, stroke: int = 0) -> Image.Image:
    """The character alone, white on black, cropped to its ink."""
    canvas = Image.new("L", (3 * pixels, 3 * pixels))
    pen = ImageDraw.Draw(canvas)
    pen.text((pixels, pixels // 2), character, font=_font(font, pixels), fill=255, stroke_width=stroke)
    return canvas.crop(canvas.getbbox())


def _glyph_cover(character: str, size: int, rng: np.random.Generator, variety: Variety) -> np.ndarray:
    """How much of each pixel the glyph covers (0..1), the whole glyph inside the picture."""
    fonts = fonts_with(character)
    pixels = SUPERSAMPLING * size
    stroke = round(rng.uniform(0.0, variety.stroke) * pixels)
    mask = glyph_mask(character, fonts[rng.integers(len(fonts))], pixels, stroke)
    forward = _tilt(rng, variety)
    half = np.array(mask.size) / 2
    reach = np.abs(forward) @ half  # half the width and height of the tilted box
    forward *= rng.uniform(*variety.height) * pixels / (2 * reach.max())
    reach = np.abs(forward) @ half
    centre = reach + rng.uniform(0.0, 1.0, 2) * (pixels - 2 * reach)
    back = np.linalg.inv(forward)
    shift = half - back @ centre
    coefficients = (back[0, 0], back[0, 1], shift[0], back[1, 0], back[1, 1], shift[1])
    placed = mask.transform((pixels, pixels), Image.Transform.AFFINE, coefficients, Image.Resampling.BILINEAR)
    return _as_cover(placed)


def _tilt(rng: np.random.Generator, variety: Variety) -> np.ndarray:
    """A random rotation, shear and stretch as one 2 × 2 matrix."""
    angle = math.radians(rng.uniform(-variety.rotation, variety.rotation))
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    stretch = math.exp(rng.uniform(-variety.stretch, variety.stretch))
    lean = np.array([[stretch, rng.uniform(-variety.shear, variety.shear)], [0.0, 1.0 / stretch]])
    return turn @ lean


def _scratch_cover(size: int, rng: np.random.Generator) -> np.ndarray:
    """A stray stroke from one random point to another; drawn before the glyph, so it never hides it."""
    pixels = SUPERSAMPLING * size
    canvas = Image.new("L", (pixels, pixels))
    ends = [float(value) for value in rng.uniform(-0.2, 1.2, 4) * pixels]
    width = max(1, round(float(rng.uniform(0.02, 0.08)) * pixels))
    ImageDraw.Draw(canvas).line(ends, fill=255, width=width)
    return _as_cover(canvas)


def _as_cover(canvas: Image.Image) -> np.ndarray:
    return np.asarray(canvas.reduce(SUPERSAMPLING), dtype=np.float32) / 255.0


def _two_colours(rng: np.random.Generator, variety: Variety) -> tuple[np.ndarray, np.ndarray]:
    """Background and ink whose brightness differs by a drawn amount."""
    gap = rng.uniform(*variety.contrast)
    dark = rng.uniform(0.05, 0.95 - gap)
    back, ink = (dark, dark + gap) if rng.random() < variety.light_ink else (dark + gap, dark)
    return _colour(back, rng), _colour(ink, rng)


def _colour(brightness: float, rng: np.random.Generator) -> np.ndarray:
    """A random colour of that brightness."""
    tint = rng.uniform(-0.25, 0.25, 3).astype(np.float32)
    tint -= tint @ LUMA
    room = min(brightness, 1.0 - brightness)  # beyond it, clipping would change the brightness
    return brightness + tint * np.float32(min(1.0, room / np.abs(tint).max()))


def _between(back: np.ndarray, ink: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A colour on the way from the background to the ink, never quite the ink's."""
    return back + np.float32(rng.uniform(0.2, 0.7)) * (ink - back)


def _blend(under: np.ndarray, cover: np.ndarray, colour: np.ndarray) -> np.ndarray:
    return under + cover[..., None] * (colour - under)


def _texture(size: int, rng: np.random.Generator) -> np.ndarray:
    """A pattern with values in −1..1: a gradient, stripes, checks or blotches."""
    kind = rng.integers(4)
    if kind == 0:
        return _gradient(size, rng)
    if kind == 1:
        return _stripes(size, rng)
    if kind == 2:
        return _stripes(size, rng) * _stripes(size, rng)
    return _blotches(size, rng)


@lru_cache(maxsize=8)
def _grid(size: int) -> tuple[np.ndarray, np.ndarray]:
    axis = np.linspace(-1.0, 1.0, size, dtype=np.float32)
    return axis[None, :], axis[:, None]


def _gradient(size: int, rng: np.random.Generator) -> np.ndarray:
    across, down = _grid(size)
    angle = rng.uniform(0.0, 2 * math.pi)
    right, below = math.cos(angle) / math.sqrt(2), math.sin(angle) / math.sqrt(2)
    return np.float32(right) * across + np.float32(below) * down


def _stripes(size: int, rng: np.random.Generator) -> np.ndarray:
    waves, start = rng.uniform(4.0, 18.0), rng.uniform(0.0, 2 * math.pi)
    return np.sin(np.float32(waves) * _gradient(size, rng) + np.float32(start))


def _blotches(size: int, rng: np.random.Generator) -> np.ndarray:
    cells = int(rng.integers(3, 9))
    coarse = Image.fromarray(rng.integers(0, 256, (cells, cells), dtype=np.uint8))
    return np.asarray(coarse.resize((size, size), Image.Resampling.BICUBIC), dtype=np.float32) / 127.5 - 1.0
