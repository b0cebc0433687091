import io
import os
import pickle
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from oltr.data.images import UnreadableImage, decode_image, read_bytes, read_image
from oltr.data.pixels import UPRIGHT
from oltr.data.records import record_path
from oltr.errors import UserError
from tests.helpers.pictures import picture, write_picture
from tests.helpers.records import MAGIC, face, record, write_records

QUARTERS = np.zeros((16, 16, 3), dtype=np.uint8)  # four plain quarters, so that every turn shows
QUARTERS[:8, 8:] = (255, 0, 0)
QUARTERS[8:, :8] = (0, 255, 0)
QUARTERS[8:, 8:] = (0, 0, 255)


def saved(path, image, **options):
    image.save(path, **options)
    return path


def test_pixels_of_the_right_size_are_untouched(tmp_path):
    path = write_picture(tmp_path / "ein bild ü.png", size=8)
    pixels = read_image(path, 8)
    assert pixels.dtype == np.uint8
    assert pixels.flags.writeable
    np.testing.assert_array_equal(pixels, np.asarray(Image.open(path)))


def test_stretched_not_cropped(tmp_path):
    wide = np.repeat(QUARTERS, 3, axis=1)  # 16 × 48
    pixels = read_image(saved(tmp_path / "wide.png", Image.fromarray(wide)), 8)
    assert pixels.shape == (8, 8, 3)
    np.testing.assert_array_equal(
        pixels[[0, 0, -1, -1], [0, -1, 0, -1]], QUARTERS[[0, 0, -1, -1], [0, -1, 0, -1]]
    )


def test_a_large_jpeg_shrinks_as_if_decoded_whole(tmp_path):
    ramp = np.linspace(0, 255, 1024).astype(np.uint8)
    large = np.stack(
        [np.tile(ramp, (1024, 1)), np.tile(ramp[:, None], (1, 1024)), np.full((1024, 1024), 90)], -1
    )
    path = saved(tmp_path / "large.jpg", Image.fromarray(large.astype(np.uint8)), quality=95)
    whole = Image.open(path).convert("RGB").resize((64, 64), Image.Resampling.BILINEAR)
    assert np.abs(read_image(path, 64).astype(int) - np.asarray(whole).astype(int)).max() <= 3


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif"])
def test_exif_rotation_is_applied(tmp_path, orientation, suffix):
    upright = np.concatenate([QUARTERS, QUARTERS[:, :8] // 2], axis=1)  # 16 × 24: turning swaps the sides
    undo = {5: 5, 6: 8, 8: 6, 7: 7}.get(orientation, orientation)  # the opposite turn
    stored = Image.fromarray(upright)
    if undo != 1:
        stored = stored.transpose(UPRIGHT[undo])
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 100, "subsampling": 0} if suffix == ".jpg" else {}
    path = saved(tmp_path / f"turned{suffix}", stored, exif=exif, **options)
    expected = read_image(saved(tmp_path / "upright.png", Image.fromarray(upright)), 12)
    assert np.abs(read_image(path, 12).astype(int) - expected.astype(int)).max() <= 6


def test_broken_exif_does_not_lose_the_picture(tmp_path):
    path = saved(
        tmp_path / "a.jpg", Image.fromarray(QUARTERS), exif=b"Exif\0\0II*\0\x08\0\0\0\xff\xff garbage"
    )
    assert read_image(path, 16).shape == (16, 16, 3)


def test_sixteen_bits_are_scaled_by_their_full_range(tmp_path):
    grey = np.array([[0, 65535], [32896, 4112]], dtype=np.uint16)
    for name in ("grey.png", "grey.tif"):
        pixels = read_image(saved(tmp_path / name, Image.fromarray(grey)), 2)
        assert pixels[..., 0].tolist() == [[0, 255], [128, 16]]
        assert (pixels[..., 0] == pixels[..., 2]).all()


def test_thirty_two_bits_and_floats(tmp_path):
    wide = Image.fromarray(np.array([[0, 1_000_000], [500_000, 0]], dtype=np.int32))
    assert read_image(saved(tmp_path / "wide.tif", wide), 2)[..., 0].tolist() == [[0, 255], [128, 0]]
    unit = Image.fromarray(np.array([[0.0, 1.0], [0.5, np.nan]], dtype=np.float32))
    assert read_image(saved(tmp_path / "unit.tif", unit), 2)[..., 1].tolist() == [[0, 255], [128, 0]]


def test_cmyk_grey_and_palette(tmp_path):
    colour = Image.new("RGB", (8, 8), (200, 30, 60))
    cmyk = read_image(saved(tmp_path / "a.jpg", colour.convert("CMYK"), quality=100), 8)
    assert np.abs(cmyk.astype(int) - (200, 30, 60)).max() <= 4
    grey = read_image(saved(tmp_path / "b.png", Image.new("L", (8, 8), 77)), 8)
    assert (grey == 77).all()
    palette = read_image(saved(tmp_path / "c.png", colour.quantize(4)), 8)
    assert np.abs(palette.astype(int) - (200, 30, 60)).max() <= 4
    assert (read_image(saved(tmp_path / "d.png", Image.new("1", (8, 8), 1)), 8) == 255).all()


def test_clear_parts_become_white(tmp_path):
    layer = Image.new("RGBA", (4, 4), (255, 0, 0, 255))
    layer.putpixel((0, 0), (0, 0, 0, 0))
    for name, image, options in [
        ("rgba.png", layer, {}),
        ("la.png", Image.new("LA", (4, 4), (0, 0)), {}),
        ("palette.png", Image.new("P", (4, 4), 0), {"transparency": 0}),
        ("palette.gif", Image.new("P", (4, 4), 0), {"transparency": 0}),
        ("grey.png", Image.new("L", (4, 4), 9), {"transparency": 9}),
    ]:
        assert read_image(saved(tmp_path / name, image, **options), 4)[0, 0].tolist() == [255, 255, 255], name
    assert read_image(tmp_path / "rgba.png", 4)[2, 2].tolist() == [255, 0, 0]


@pytest.mark.parametrize("suffix", [".gif", ".webp", ".png", ".tif"])
def test_an_animation_gives_its_first_frame(tmp_path, suffix):
    frames = [Image.new("RGB", (16, 16), colour) for colour in ("white", "black", "red")]
    options = {"lossless": True} if suffix == ".webp" else {}
    path = saved(tmp_path / f"film{suffix}", frames[0], save_all=True, append_images=frames[1:], **options)
    assert (read_image(path, 16) == 255).all()


def test_unreadable_files_say_which_and_why(tmp_path):
    good = write_picture(tmp_path / "good.png", size=64)
    Image.fromarray(picture("photo", 64)).save(tmp_path / "good.jpg")
    cases = {
        "nowhere.png": (None, "no such file"),
        "empty.png": (b"", "0 bytes"),
        "words.png": (b"these are words", "not an image"),
        "cut.png": (good.read_bytes()[:-400], ""),
        "cut.jpg": ((tmp_path / "good.jpg").read_bytes()[:-400], "truncated"),
    }
    for name, (content, reason) in cases.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(UnreadableImage) as refused:
            read_image(tmp_path / name, 8)
        assert isinstance(refused.value, UserError)
        assert name in str(refused.value)
        assert reason in refused.value.reason
        assert refused.value.path == tmp_path / name
    with pytest.raises(UnreadableImage):
        read_image(tmp_path, 8)


def bomb(side):
    """A PNG of a few bytes that claims side × side pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0"))
        + chunk(b"IEND", b"")
    )


def test_a_decompression_bomb_is_refused(tmp_path):
    (tmp_path / "bomb.png").write_bytes(bomb(60_000))
    with pytest.raises(UnreadableImage, match="more than 500 megapixels, the most that is read"):
        read_image(tmp_path / "bomb.png", 8)


def test_the_error_survives_pickling():
    error = pickle.loads(pickle.dumps(UnreadableImage("a b.png", "it is odd")))
    assert (str(error.path), error.reason) == ("a b.png", "it is odd")
    assert "a b.png" in str(error)


def test_the_own_size_is_told():
    buffer = io.BytesIO()
    Image.new("RGB", (300, 200)).save(buffer, "JPEG")
    pixels, size = decode_image(buffer.getvalue(), 16, "x.jpg")
    assert pixels.shape == (16, 16, 3)
    assert size == (300, 200)


def test_threads_read_the_same_as_one(tmp_path):
    paths = [write_picture(tmp_path / f"{i}.png", size=32) for i in range(40)]
    alone = [read_image(path, 16) for path in paths]
    with ThreadPoolExecutor(8) as threads:
        for one, other in zip(alone, threads.map(lambda path: read_image(path, 16), paths), strict=True):
            np.testing.assert_array_equal(one, other)


def test_images_in_a_record_file(tmp_path):
    contents = {key: record(key, face(str(key))) for key in range(40)}
    contents[40] = record(40, b"even" + MAGIC + b"this")
    offsets = write_records(tmp_path / "train.rec", contents)
    paths = {key: tmp_path / record_path("train.rec", offset) for key, offset in offsets.items()}
    with ThreadPoolExecutor(8) as threads:
        for key, pixels in enumerate(threads.map(lambda key: read_image(paths[key], 24), range(40))):
            np.testing.assert_array_equal(pixels, picture(str(key), 24))
    assert read_bytes(str(paths[40])) == b"even" + MAGIC + b"this"


def test_places_in_record_files_that_hold_no_image(tmp_path):
    offsets = write_records(tmp_path / "train.rec", {1: record(1, face("1")), 0: record((2, 3))})
    write_picture(tmp_path / "a.png")
    for path, reason in [
        (f"train.rec/{offsets[0]}.jpg", "0 bytes"),
        ("train.rec/000000000004.jpg", "at byte 4: there is"),
        ("train.rec/999999999999.jpg", "the file ends at byte"),
        ("train.rec/cat.jpg", "no such file"),
        ("other.rec/000000000000.jpg", "no such file"),
        ("a.png/000000000000.jpg", "no such file"),
    ]:
        with pytest.raises(UnreadableImage) as refused:
            read_image(tmp_path / path, 8)
        assert reason in refused.value.reason
        assert refused.value.path == tmp_path / path


def test_nothing_is_said_on_the_console(tmp_path):
    palette = Image.new("P", (4, 4), 0)
    palette.save(tmp_path / "bytes.png", transparency=b"\0\x80")  # Pillow warns about this one
    (tmp_path / "odd.tif").write_bytes(_tiff_with_a_broken_tag())
    (tmp_path / "large.png").write_bytes(bomb(10_000))  # in Pillow's range of warnings
    code = (
        "import sys\n"
        "from oltr.data.images import UnreadableImage, read_image\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n        read_image(name, 4)\n"
        "    except UnreadableImage:\n        pass\n"
    )
    names = [str(path) for path in sorted(tmp_path.iterdir())]
    done = subprocess.run(
        [sys.executable, "-c", code, *names],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def _tiff_with_a_broken_tag():
    info = TiffImagePlugin.ImageFileDirectory_v2()
    info[270] = "a description that the file will be too short for"
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4)).save(buffer, "TIFF", tiffinfo=info)
    return buffer.getvalue()[:-20]
