"""Images: answered, kept, listed, shown, deleted."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, File, Path, Query, Request, Response, UploadFile

from oltr.serve import schema
from oltr.serve.conflict import Missing, TooLarge
from oltr.serve.explanation import explanation_png
from oltr.serve.intake import Sent
from oltr.serve.limits import Limits
from oltr.serve.listings import image_list, unknown_list
from oltr.serve.marks import Status
from oltr.serve.routes.parts import Limit, Offset, Serving
from oltr.serve.uploads import shown_name

router = APIRouter(tags=["images"])
PICTURE = 1600  # longer side
FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}
Files = Annotated[list[UploadFile], File(description="image files", min_length=1)]
ImageId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]


def _pictures(kind: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {f"image/{kind}": {}}, "description": "a picture"}}


@router.post("/predict", response_model=schema.Predictions)
def predict(
    service: Serving,
    request: Request,
    files: Files,
    only: Annotated[
        list[str] | None, Query(description="classes that can occur: commas between, or one each time")
    ] = None,
) -> dict[str, Any]:
    """Answers for images, which are not kept; the same as those of `oltr predict`."""
    model, rows = service.intake.predict(_sent(files, service.state.limits), only)
    request.app.state.metrics.count(rows)
    return {"model": model, "predictions": rows}


@router.post("/images", response_model=schema.KeptImages)
def keep(service: Serving, request: Request, files: Files) -> dict[str, Any]:
    """Keep images among those that wait; an image that is there already is not kept twice."""
    sent = _sent(files, service.state.limits)
    found, again = service.intake.keep(sent)
    now = service.state.snapshot
    records = [
        (now.record(each) if each in now.images else {"name": file.name, "error": "it was deleted at once"})
        if isinstance(each, str)
        else each
        for each, file in zip(found, sent, strict=True)
    ]
    request.app.state.metrics.count(records)
    return {"images": records, "again": again}


@router.get("/images", response_model=schema.ImageList)
def images(
    service: Serving,
    status: Status | None = None,
    label: Annotated[str | None, Query(description="whose answer is this class, or unknown")] = None,
    named: Annotated[str | None, Query(description="that a person gave this name")] = None,
    offset: Offset = 0,
    limit: Limit = 100,
) -> dict[str, Any]:
    """Kept images, the newest first."""
    return image_list(service.state.snapshot, status, label, named, offset, limit)


@router.get("/unknowns", response_model=schema.UnknownList)
def unknowns(service: Serving, offset: Offset = 0, limit: Limit = 100) -> dict[str, Any]:
    """Images that wait for a name; what to label first comes first."""
    return unknown_list(service.state.snapshot, service.state.grouper.groups, offset, limit)


@router.get("/images/{number}", response_model=schema.ImageRecord)
def image(service: Serving, number: ImageId) -> dict[str, Any]:
    """One image."""
    return service.state.snapshot.record(number)


@router.get("/images/{number}/thumbnail", response_class=Response, responses=_pictures("jpeg"))
def thumbnail(service: Serving, number: ImageId) -> Response:
    """A small picture."""
    return Response(service.intake.thumbnail(number), media_type="image/jpeg", headers=FOR_EVER)


@router.get("/images/{number}/picture", response_class=Response, responses=_pictures("jpeg"))
def picture(service: Serving, number: ImageId) -> Response:
    """A larger picture."""
    return Response(service.intake.picture(number, PICTURE), media_type="image/jpeg", headers=FOR_EVER)


@router.get("/images/{number}/explanation", response_class=Response, responses=_pictures("png"))
def explanation(service: Serving, number: ImageId) -> Response:
    """Why the image is answered as it is, as one picture."""
    found = explanation_png(service.state, number)
    return Response(found, media_type="image/png", headers={"cache-control": "no-store"})


@router.delete("/images/{number}", status_code=204, response_class=Response)
def delete(service: Serving, number: ImageId) -> Response:
    """Forget an image; a class that was learned from it stays."""
    service.intake.delete([number])
    return Response(status_code=204)


@router.delete("/images", response_model=schema.Deleted)
def delete_all(
    service: Serving,
    status: Status,
    at_most: Annotated[int | None, Query(ge=0, description="none are deleted where there are more")] = None,
) -> dict[str, int]:
    """Forget all images of a status."""
    return {"deleted": service.intake.delete_all(status, at_most)}


@router.get("/examples", response_class=Response, responses=_pictures("jpeg"), tags=["classes"])
def example(
    service: Serving,
    name: str,
    number: Annotated[int, Query(ge=0, le=100)] = 0,
    model: Annotated[str | None, Query(description="of which it is; then it may be kept for ever")] = None,
) -> Response:
    """A small picture of a class."""
    examples = service.examples
    found = examples.picture(name, number)
    if found is None:
        raise Missing(f"There is no picture {number} of {name!r}.")
    headers = FOR_EVER if model == examples.run.model_version else {"cache-control": "no-cache"}
    return Response(found, media_type="image/jpeg", headers=headers)


def _sent(files: Sequence[UploadFile], limits: Limits) -> list[Sent]:
    """The files' bytes, of those that are not too large."""
    if len(files) > limits.images:
        raise TooLarge(
            f"The request has {len(files)} images.", f"One may have {limits.images}.", "several requests"
        )
    found = []
    for file in files:
        name = shown_name(file.filename)
        file.file.seek(0, io.SEEK_END)
        if file.file.tell() > limits.image_bytes:
            found.append(Sent(name, b"", f"it is larger than {limits.image_bytes:,} bytes"))
            continue
        file.file.seek(0)
        found.append(Sent(name, file.file.read()))
    return found
