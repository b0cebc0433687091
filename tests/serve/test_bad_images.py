"""Images that are none, too large, or made to do harm."""

from __future__ import annotations

import io
import os
import resource
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator

import httpx
import pytest
from PIL import Image

from oltr.serve.limits import Limits
from tests.data.test_large_images import png as one_bit_png
from tests.helpers.colours import UNKNOWN
from tests.helpers.serving import files, png, serving, upload

MEGABYTE = 10**6


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def zip_bomb() -> bytes:
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("photo.png", bytes(20 * MEGABYTE))
        return file.getvalue()


def text_bomb() -> bytes:
    """A PNG with a compressed text of 120 MB in front of its pixels."""
    whole = png(UNKNOWN["cyan"], 0)
    body = b"Comment\0\0" + zlib.compress(bytes(120 * MEGABYTE), 1)
    return whole[:33] + chunk(b"zTXt", body) + whole[33:]


def pixel_bomb() -> bytes:
    """A PNG of 8 × 8 pixels whose data go on for 120 MB."""
    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(120 * MEGABYTE), 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


BAD = {
    "no image": (b"these are words", "it is not an image"),
    "empty": (b"", "the file is empty (0 bytes)"),
    "cut short": (png(UNKNOWN["cyan"], 0)[:300], "truncated"),
    "50,000 x 50,000": (one_bit_png(50_000, 50_000, b"\0"), "more than 100 megapixels"),
    "12,000 x 12,000": (one_bit_png(12_000, 12_000, b"\0"), "more than 100 megapixels"),
    "a zip": (zip_bomb(), "it is not an image"),
    "html": (b"<script>alert(1)</script>", "it is not an image"),
    "svg": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "it is not an image"),
}


@pytest.fixture(scope="module")
def shared(plain_run, tmp_path_factory) -> Iterator[httpx.Client]:
    """One service for all of these: none of them changes anything."""
    with serving(shutil.copytree(plain_run, tmp_path_factory.mktemp("bad") / "run")) as client:
        yield client


@pytest.mark.parametrize("call", ["/predict", "/images"])
@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_image_is_told_beside_the_answers_for_the_others(shared, call, kind):
    content, why = BAD[kind]
    good = png(UNKNOWN["cyan"], 1)
    answer = shared.post(call, files=files([("a/bad.png", content), ("good.png", good)]))
    assert answer.status_code == 200
    bad, fine = answer.json().get("predictions") or answer.json()["images"]
    assert why in bad["error"] and not fine["error"] and fine["label"]
    assert (bad.get("path") or bad["name"]) == "a/bad.png"
    if call == "/images":
        kept = shared.get("/images").json()
        assert kept["total"] == 1 and kept["images"][0]["id"] == fine["id"]
        assert sorted(file.suffix for file in (shared.service.state.uploads.folder).glob("*.*")) == [".png"]


def test_each_of_several_bad_files_has_its_own_reason(folder):
    with serving(folder, Limits(image_bytes=5000)) as client:
        sent = [("empty.png", b""), ("large.png", bytes(6000)), ("words.png", b"words")]
        for order in (sent, sent[::-1]):
            found = client.post("/images", files=files(order)).json()["images"]
            reasons = {each["name"]: each["error"] for each in found}
            assert "empty" in reasons["empty.png"]
            assert "larger than 5,000 bytes" in reasons["large.png"]
            assert "not an image" in reasons["words.png"]


def test_a_larger_image_than_allowed_is_not_decoded(folder):
    with serving(folder, Limits(image_pixels=1000)) as client:
        found = client.post("/predict", files=files([png(UNKNOWN["cyan"], 1)])).json()["predictions"][0]
        assert "megapixels" in found["error"] and found["label"] is None


def test_odd_pictures_are_answered_and_shown(client):
    """Of every mode, and of one pixel's height."""
    sent = []
    for mode in ("1", "L", "LA", "P", "RGBA", "CMYK", "I;16", "F"):
        image = Image.new(mode if mode != "I;16" else "I;16", (40, 30))
        kind = "TIFF" if mode in ("CMYK", "F") else "PNG"
        with io.BytesIO() as file:
            image.save(file, kind)
            sent.append((f"{mode}.img", file.getvalue()))
    for size in ((5000, 1), (1, 5000), (1, 1)):
        with io.BytesIO() as file:
            Image.new("RGB", size, (9, size[0] % 200, 40)).save(file, "PNG")
            sent.append((f"{size}.png", file.getvalue()))
    found = client.post("/images", files=files(sent)).json()["images"]
    assert [each["error"] for each in found] == [""] * len(sent)
    for each in found:
        for call in ("thumbnail", "picture"):
            picture = client.get(f"/images/{each['id']}/{call}")
            assert picture.status_code == 200 and picture.headers["content-type"] == "image/jpeg"
            assert max(Image.open(io.BytesIO(picture.content)).size) <= 1600


def test_what_was_sent_is_never_sent_on(client):
    """A picture with a script in its metadata comes back as a JPEG of its own, without it."""
    with io.BytesIO() as file:
        Image.new("RGB", (60, 60)).save(file, "JPEG", comment=b"<script>alert(1)</script>")
        (number,) = upload(client, [("a.html", file.getvalue())])
    for call in ("thumbnail", "picture"):
        answer = client.get(f"/images/{number}/{call}")
        assert b"script" not in answer.content
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_bombs_take_little_memory(serve, folder):
    """In a process of its own, whose peak can be told."""
    with serve(folder) as server, httpx.Client(base_url=server.address, timeout=60) as client:
        upload(client, [png(UNKNOWN["cyan"], 1)])
        before = peak(server.process)
        sent = [("zip.png", zip_bomb()), ("text.png", text_bomb()), ("pixels.png", pixel_bomb())]
        found = client.post("/images", files=files(sent)).json()["images"]
        assert "not an image" in found[0]["error"] and found[1]["error"]
        assert client.post("/predict", files=files(sent)).status_code == 200
        assert peak(server.process) - before < 60 * MEGABYTE


def peak(process: int) -> int:
    """The most memory that a process has had, in bytes."""
    with open(f"/proc/{process}/status", encoding="utf-8") as status:  # noqa: PTH123
        found = next(line for line in status if line.startswith("VmHWM"))
    return int(found.split()[1]) * 1024


def test_the_peak_of_this_process_is_read_rightly():
    assert abs(peak(os.getpid()) - resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024) < 50 * MEGABYTE


@pytest.mark.parametrize("said", [True, False], ids=["with its length", "without its length"])
def test_too_long_a_request_is_refused_before_it_is_read(folder, said):
    with serving(folder, Limits(request_bytes=100_000, json_bytes=2_000)) as client:
        for kind, most in (("multipart/form-data; boundary=x", 100_000), ("application/json", 2_000)):
            taken = 0
            part = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\n'

            def body(part=part) -> Iterator[bytes]:
                nonlocal taken
                yield part
                for _ in range(10_000):
                    taken += 1000
                    yield bytes(1000)

            headers = {"content-type": kind} | ({"content-length": str(10**9)} if said else {})
            call = "/images" if "multipart" in kind else "/reject"
            answer = client.post(call, content=body(), headers=headers)
            assert answer.status_code == 413, (kind, answer.text)
            assert f"larger than {most:,} bytes" in answer.json()["error"]
        assert client.get("/state").json()["images"]["total"] == 0


def test_a_long_stream_is_cut_off(serve, folder):
    """Over a real connection: the server stops reading soon after its limit."""
    with serve(folder) as server, httpx.Client(base_url=server.address, timeout=60) as client:
        sent, refused = streamed(client, 30 * MEGABYTE, "application/json")  # JSON may have 10 MB
        assert refused and sent < 20 * MEGABYTE


@pytest.mark.soak
def test_a_gigabyte_is_refused_in_little_memory(serve, folder):
    with serve(folder) as server, httpx.Client(base_url=server.address, timeout=600) as client:
        upload(client, [png(UNKNOWN["cyan"], 1)])
        before = peak(server.process)
        sent, refused = streamed(client, 1000 * MEGABYTE, "multipart/form-data; boundary=x")
        assert refused and sent < 520 * MEGABYTE
        assert peak(server.process) - before < 50 * MEGABYTE
        assert client.get("/health").status_code == 200


def streamed(client: httpx.Client, length: int, kind: str) -> tuple[int, bool]:
    """Bytes that were taken of a body without a stated length, and whether it was refused."""
    sent, piece = 0, bytes(256 * 1024)

    def body() -> Iterator[bytes]:
        nonlocal sent
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\n'
        while sent < length:
            sent += len(piece)
            yield piece

    call = "/images" if kind.startswith("multipart") else "/reject"
    try:
        return sent, client.post(call, content=body(), headers={"content-type": kind}).status_code == 413
    except httpx.TransportError:  # hung up while we were still sending
        return sent, True


def test_more_files_than_allowed_and_more_than_there_is_room_for(folder):
    with serving(folder, Limits(images=3, kept_bytes=12_000)) as client:
        many = [png(UNKNOWN["cyan"], seed) for seed in range(8)]
        for call in ("/predict", "/images"):
            answer = client.post(call, files=files(many[:4]))
            assert answer.status_code == 413
            assert "4 images" in answer.json()["error"] and "3" in answer.json()["why"]
        first = upload(client, many[:3])
        answer = client.post("/images", files=files(many[3:6]))
        assert answer.status_code == 413 and "no room" in answer.json()["error"]
        assert "12,000" in answer.json()["why"] and "--keep" in answer.json()["try"]
        assert client.get("/state").json()["images"]["total"] == 3
        client.delete(f"/images/{first[0]}").raise_for_status()
        upload(client, many[3:4])
        assert client.post("/images", files=files(many[1:3])).json()["again"] == 2
