"""HEIC and HEIF images, as phones write them, through pillow-heif where it is installed."""

from __future__ import annotations

import threading

SUFFIXES = (".heic", ".heif")
CURE = 'pip install "oltr[heif]"'
BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1")

_lock = threading.Lock()
_registered = False


def is_heif(content: bytes) -> bool:
    """Whether a file's bytes are HEIF with HEVC inside, whatever its name ends in."""
    return content[4:8] == b"ftyp" and content[8:12] in BRANDS


def register_heif() -> bool:
    """Let Pillow open HEIF, once in a process; False where pillow-heif is not installed."""
    global _registered
    with _lock:
        if not _registered:
            try:
                import pillow_heif
            except ImportError:
                return False
            pillow_heif.register_heif_opener()
            _registered = True
    return True
