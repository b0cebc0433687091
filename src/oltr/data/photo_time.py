"""When a photo was taken: what its camera wrote into it, or else the time of the file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from PIL import Image

from oltr.data.heif import SUFFIXES, register_heif

EXIF, ORIGINAL, SUBSECOND, OFFSET = 0x8769, 0x9003, 0x9291, 0x9011  # tags of EXIF 2.31


@dataclass(frozen=True)
class PhotoTime:
    """A moment, and how far it can be trusted."""

    moment: datetime  # aware; a camera that tells no time zone is taken to be in UTC
    zone_known: bool = False
    of_file: bool = False  # the file's time of change, for want of any other

    @property
    def text(self) -> str:
        """ISO 8601 with a zone, in whole seconds."""
        return self.moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def exif_time(path: str | Path) -> PhotoTime | None:
    """DateTimeOriginal with its fraction and its zone; None where a file has none, or cannot be read."""
    try:
        if Path(path).suffix.lower() in SUFFIXES:
            register_heif()
        with Image.open(path) as image:
            tags = image.getexif().get_ifd(EXIF)
        moment = datetime.strptime(str(tags[ORIGINAL]).strip("\0 "), "%Y:%m:%d %H:%M:%S")
    except Exception:  # decoders of broken files raise almost anything, and some cameras write 0000:00:00
        return None
    fraction = str(tags.get(SUBSECOND, "")).strip("\0 ")
    if fraction.isdecimal():
        moment += timedelta(seconds=float(f"0.{fraction}"))
    zone = _zone(str(tags.get(OFFSET, "")))
    return PhotoTime(moment.replace(tzinfo=zone or UTC), zone is not None)


def photo_time(path: str | Path) -> PhotoTime | None:
    """The time in the photo, or that of its file; None where there is no file."""
    found = exif_time(path)
    if found is not None:
        return found
    try:
        changed = Path(path).stat().st_mtime
    except OSError:
        return None
    return PhotoTime(datetime.fromtimestamp(changed, UTC), zone_known=True, of_file=True)


def _zone(text: str) -> timezone | None:
    """`+02:00`."""
    try:
        offset = datetime.strptime(text.strip("\0 "), "%z").utcoffset()
    except ValueError:
        return None
    return None if offset is None else timezone(offset)
