"""The names of the open classes, where there is more to them than being open."""

from __future__ import annotations

from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.wording import count


def open_class_names(manifest: Manifest) -> list[str]:
    """The class of each open image; refused where all have one name, as images do that nobody named."""
    names = manifest.rows("open")["label"].tolist()
    if len(set(names)) < 2:
        raise UserError(
            f"The open images have {count(len(set(names)), 'class name')}, so their number cannot be varied.",
            try_this="a manifest that gives each open image the name of its class",
        )
    return names
