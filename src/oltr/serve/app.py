"""The HTTP face of a service: the page, and the API that it and others use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from oltr import __version__
from oltr.console import console
from oltr.errors import Locked, MachineError, NoRoom, UserError, machine_error
from oltr.serve import schema
from oltr.serve.batcher import TooBusy
from oltr.serve.conflict import Conflict, Missing, TooLarge
from oltr.serve.guard import Guard, cookie_name, knows
from oltr.serve.in_flight import InFlight
from oltr.serve.metrics import Measured, Metrics
from oltr.serve.routes import about, images, naming
from oltr.serve.service import Service

PAGE = Path(__file__).parent / "page"
STATUS = {Conflict: 409, Missing: 404, TooLarge: 413, NoRoom: 507, MachineError: 503}  # the first that fits
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": schema.Problem, "description": "Bad input"},
    401: {"model": schema.Problem, "description": "No token, or a wrong one"},
    404: {"model": schema.Problem, "description": "There is no such image, class or action"},
    409: {"model": schema.Problem, "description": "Somebody else was quicker"},
    413: {"model": schema.Problem, "description": "Too large, or no room"},
    422: {"model": schema.Problem, "description": "A request of another shape"},
    503: {"model": schema.Problem, "description": "Too busy (try again), or a file that cannot be used"},
    507: {"model": schema.Problem, "description": "The service's disk is full"},
}


class PageFiles(StaticFiles):
    """Asked for again each time, so that a page never meets scripts of another version."""

    def file_response(self, *words: Any, **options: Any) -> Response:
        answer = super().file_response(*words, **options)
        answer.headers["cache-control"] = "no-cache"
        return answer


def create_app(service: Service, token: str | None = None) -> FastAPI:
    """The application; with a token it answers who knows it, without one this machine alone."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    metrics = Metrics(service.state)
    # No /docs: its scripts would come from elsewhere.
    app = FastAPI(
        title="oltr",
        version=__version__,
        summary="Open long-tailed recognition: images answered, unknown ones named, classes learned at once",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=REFUSALS,
    )
    cookie = cookie_name(service.state.run.path)
    app.state.service, app.state.metrics, app.state.token, app.state.cookie = service, metrics, token, cookie
    for part in (about, images, naming):
        app.include_router(part.router)
    app.mount("/static", PageFiles(directory=PAGE), name="static")

    @app.get("/", include_in_schema=False)
    def page(request: Request) -> Response:
        name = "index.html" if knows(token, cookie, request.scope) else "login.html"
        return FileResponse(PAGE / name, headers={"cache-control": "no-cache"})

    limits = service.state.limits
    app.add_middleware(InFlight, most=limits.in_flight_bytes, request_bytes=limits.request_bytes)
    app.add_middleware(Measured, metrics=metrics)
    app.add_middleware(
        Guard,
        token=token,
        cookie=cookie,
        request_bytes=limits.request_bytes,
        json_bytes=limits.json_bytes,
    )
    _tell_problems(app)
    return app


def _tell_problems(app: FastAPI) -> None:
    @app.exception_handler(UserError)
    def refused(_: Request, problem: UserError) -> JSONResponse:
        status = next((code for kind, code in STATUS.items() if isinstance(problem, kind)), 400)
        if isinstance(problem, MachineError):
            console.warn(str(problem))
        return _problem(
            status,
            problem.what,
            problem.why,
            problem.try_this,
            getattr(problem, "conflicts", []),
            retry=isinstance(problem, Locked),
        )

    @app.exception_handler(OSError)
    def failed(request: Request, problem: OSError) -> JSONResponse:
        reason = problem.strerror or type(problem).__name__
        return refused(request, machine_error(problem)(f"The service could not use a file: {reason}."))

    @app.exception_handler(TooBusy)
    def busy(_: Request, __: TooBusy) -> JSONResponse:
        return _problem(503, "Too many images wait.", try_this="again in a second", retry=True)

    @app.exception_handler(RequestValidationError)
    def misshapen(_: Request, problem: RequestValidationError) -> JSONResponse:
        found = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in problem.errors()[:5]]
        return _problem(422, "The request has another shape than it should.", "; ".join(found))

    @app.exception_handler(HTTPException)
    def other(request: Request, problem: HTTPException) -> JSONResponse:
        if isinstance(problem.__cause__, OSError):  # while the files of a form were put aside
            return failed(request, problem.__cause__)
        return _problem(problem.status_code, str(problem.detail))


def _problem(
    status: int, what: str, why: str = "", try_this: str = "", conflicts: Any = (), retry: bool = False
) -> JSONResponse:
    body = {"error": what, "why": why, "try": try_this} | ({"conflicts": conflicts} if conflicts else {})
    return JSONResponse(body, status, headers={"retry-after": "1"} if retry else None)
