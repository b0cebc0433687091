"""Labels that people would take for the same one."""

from __future__ import annotations

import unicodedata


def alike(name: str) -> str:
    """Equal for names that differ by case, blanks or Unicode form alone."""
    plain = unicodedata.normalize("NFD", name).casefold()
    return " ".join(unicodedata.normalize("NFC", plain).split())
