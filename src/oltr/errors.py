"""The one error a user may see without a traceback."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can mend: what was wrong, why it matters, what to try."""

    def __init__(self, what: str, why: str = "", try_this: str = ""):
        self.what, self.why, self.try_this = what, why, try_this
        hint = try_this if try_this.endswith("?") or not try_this else f"Try: {try_this}"
        parts = (what, why, hint)
        super().__init__("\n".join(part for part in parts if part))
