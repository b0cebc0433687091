"""One kind of trouble that `check` found."""

from __future__ import annotations

from dataclasses import dataclass

from oltr.wording import first_few


@dataclass(frozen=True)
class Finding:
    """One kind of trouble, in words, everything it concerns, and what helps."""

    kind: str
    message: str
    items: tuple[str, ...] = ()
    advice: str = ""

    def __str__(self) -> str:
        text = f"{self.message}: {first_few(self.items)}." if self.items else f"{self.message}."
        return f"{text} {self.advice}".rstrip()
