"""The one error a user may see without a traceback, and those of its kind that are the machine's fault."""

from __future__ import annotations

import errno


class UserError(Exception):
    """Something the user can mend: what was wrong, why it matters, what to try."""

    def __init__(self, what: str, why: str = "", try_this: str = ""):
        self.what, self.why, self.try_this = what, why, try_this
        hint = try_this if try_this.endswith("?") or not try_this else f"Try: {try_this}"
        parts = (what, why, hint)
        super().__init__("\n".join(part for part in parts if part))


class MachineError(UserError):
    """Something that was asked for rightly, and that the machine could not do."""


class Locked(MachineError):
    """A file that somebody else holds; later it may work."""


class NoRoom(MachineError):
    """A disk that is full."""


def machine_error(problem: OSError) -> type[MachineError]:
    """What the system's refusal is."""
    return NoRoom if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else MachineError
