"""What a request meets that somebody else did meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oltr.errors import UserError


class Conflict(UserError):
    """A request that was right when its sender saw the page, and is no longer."""

    def __init__(
        self, what: str, why: str = "", try_this: str = "", conflicts: Sequence[dict[str, Any]] = ()
    ):
        super().__init__(what, why, try_this)
        self.conflicts = list(conflicts)


class Missing(UserError):
    """Something that is not there, or no longer."""


class TooLarge(UserError):
    """More than the service takes."""
