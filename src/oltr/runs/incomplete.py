"""What a run folder lacks, and what brings it."""

from __future__ import annotations

from oltr.errors import UserError
from oltr.training.run_folder import RunFolder

RESUME = "the same oltr train command with --resume"
MADE_ANEW = f"{RESUME}, which makes them anew"


def check_finished(folder: RunFolder) -> None:
    """Refuse a run whose training was interrupted: nothing but going on with it helps."""
    if not folder.run()["finished"]:
        raise UserError(f"{folder.path} has not finished training.", try_this=RESUME)


def no_test_outputs(folder: RunFolder) -> UserError:
    """Why a finished run has no outputs of test images."""
    what, images = f"{folder.path} has no outputs of test images.", folder.run()["data"].get("images", {})
    if images.get("test") == 0:
        return UserError(what, "Its data had no test images.", f"oltr evaluate {folder.path} --source SOURCE")
    return UserError(what, try_this=MADE_ANEW)
