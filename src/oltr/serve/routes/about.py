"""How the service is, and who may use it."""

from __future__ import annotations

import hmac
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from oltr import __version__
from oltr.serve import schema
from oltr.serve.listings import group_state
from oltr.serve.routes.parts import Serving

router = APIRouter(tags=["about"])
YEAR = 365 * 24 * 3600


@router.get("/state", response_model=schema.StateRecord)
def state(service: Serving, request: Request) -> dict[str, Any]:
    """All that changes, in few numbers; `revision` grows with every change that a page would show."""
    held = service.state
    revision = held.revision  # first: what is newer than it says will be asked for again
    now, limits = held.snapshot, held.limits
    statuses = ("unknown", "known", "named", "rejected")
    return {
        "run": now.run.name,
        "path": str(now.run.path),
        "model": now.run.model_version,
        "method": now.run.method,
        "classes": len(now.run.class_names),
        "last_action": now.last_action,
        "revision": revision,
        "images": {"total": len(now.images)} | {status: now.counts[status] for status in statuses},
        "bytes": now.bytes,
        "cap": limits.kept_bytes,
        "limits": {key: getattr(limits, key) for key in schema.LimitsRecord.model_fields},
        "clusters": group_state(held),
        "token": request.app.state.token is not None,
    }


@router.get("/health", response_model=schema.Health)
def health(service: Serving) -> dict[str, str]:
    """Whether it answers."""
    return {"status": "ok", "model": service.state.snapshot.run.model_version, "version": __version__}


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request) -> Response:
    """For Prometheus."""
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4")


@router.post("/login", status_code=204, response_class=Response)
def login(given: schema.Login, request: Request) -> Response:
    """Exchange the token for a cookie, for the page."""
    token = request.app.state.token
    if token is not None and not hmac.compare_digest(given.token.encode(errors="replace"), token.encode()):
        return JSONResponse({"error": "The token is wrong.", "why": "", "try": ""}, 401)
    answer = Response(status_code=204)
    if token is not None:
        secure = request.url.scheme == "https"
        name = request.app.state.cookie
        answer.set_cookie(name, token, max_age=YEAR, httponly=True, samesite="strict", secure=secure)
    return answer
