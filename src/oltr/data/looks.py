"""How an image looks, in few numbers: a 64-bit hash of its coarse shapes, and a thumbnail to compare."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LOOK_SIZE = 32  # pixels a side of the picture that is looked at
HASH_BITS = 64
PLAIN = 2.0  # grey levels: a picture whose coarse shapes differ less from one colour has none to compare
_DEAD_ZONE = 0.01  # a shape this weak, as a share of all, counts as absent: its sign would be chance
THUMBNAIL = (LOOK_SIZE // 2) ** 2 * 3  # numbers in one
AT_A_TIME = 2**14  # thumbnails in floating point at once
_LUMINANCE = np.array([0.299, 0.587, 0.114], dtype=np.float32)


class Look(NamedTuple):
    """A picture's hash, its thumbnail (uint8, 16×16×3 in a row), and whether it is one plain colour."""

    hash: int
    thumbnail: np.ndarray
    plain: bool


def look_at(pixels: np.ndarray) -> Look:
    """The look of a picture, uint8 32×32×3: the signs of its 64 lowest frequencies after the mean."""
    shapes = (_COSINES @ (pixels @ _LUMINANCE) @ _COSINES.T)[_ROWS, _COLUMNS]
    strength = float(np.sqrt(np.square(shapes).sum()))
    bits = np.packbits(shapes > _DEAD_ZONE * strength)
    half = LOOK_SIZE // 2
    thumbnail = pixels.reshape(half, 2, half, 2, 3).mean(axis=(1, 3)).round().astype(np.uint8).ravel()
    return Look(int(bits.view(np.uint64)[0]), thumbnail, strength / LOOK_SIZE < PLAIN)


def similarity(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The correlation of thumbnails pair by pair, n×768 each: brightness and contrast do not matter."""
    values = np.empty(len(first), dtype=np.float32)
    for start in range(0, len(first), AT_A_TIME):
        part = slice(start, start + AT_A_TIME)
        values[part] = np.einsum("nd,nd->n", _standardised(first[part]), _standardised(second[part]))
    return values


def _standardised(thumbnails: np.ndarray) -> np.ndarray:
    values = thumbnails.astype(np.float32)
    values -= values.mean(axis=1, keepdims=True)
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-6)


def _cosine_basis(frequencies: int) -> np.ndarray:
    """The first rows of the orthonormal discrete cosine transform of LOOK_SIZE values."""
    place = (np.arange(LOOK_SIZE) + 0.5) * np.pi / LOOK_SIZE
    basis = np.cos(np.arange(frequencies)[:, None] * place) * np.sqrt(2 / LOOK_SIZE)
    basis[0] /= np.sqrt(2)
    return basis.astype(np.float32)


def _lowest(frequencies: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the lowest frequencies after the mean, dealt evenly to the hash's four parts."""
    places = [(row, column) for row in range(frequencies) for column in range(frequencies)][1:]
    places.sort(key=lambda place: (sum(place), abs(place[0] - place[1]), place))
    dealt = np.array(places[:HASH_BITS]).reshape(-1, 4, 2).transpose(1, 0, 2).reshape(-1, 2)
    return dealt[:, 0], dealt[:, 1]


_COSINES = _cosine_basis(16)
_ROWS, _COLUMNS = _lowest(16)
