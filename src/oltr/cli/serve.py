"""`oltr serve`: a run as a page in the browser, and as an API."""

from __future__ import annotations

import os
from typing import Annotated

import tyro

from oltr.cli.options import Root, Run
from oltr.errors import UserError
from oltr.serve.limits import GIGABYTE, MEGABYTE, Limits


def serve(
    run: Run,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    keep: Annotated[float, tyro.conf.arg(metavar="GB")] = Limits.kept_bytes / GIGABYTE,
    image: Annotated[float, tyro.conf.arg(metavar="MB")] = Limits.image_bytes / MEGABYTE,
    source: Annotated[str | None, tyro.conf.arg(metavar="SOURCE")] = None,
    root: Root = None,
) -> None:
    """Name unknown images on a page in the browser; the model learns at once. Others call the API.

    Images that are sent to the page are kept in RUN/uploads until they are deleted; what was named is in the
    run's history, as with `oltr add-class`. Stop with Ctrl-C.

    Args:
        host: the address to listen on; any but this machine's own needs a token
        port: 0 takes any that is free
        token: what others must know to use it; or in the environment variable OLTR_TOKEN
        keep: gigabytes that the images in RUN/uploads may take
        image: megabytes that one image may have
        source: where the images that the run was trained on are now, if they have moved (for examples)
    """
    try:
        from oltr.serve.run_server import check_address, listening, run_server
    except ModuleNotFoundError as problem:
        raise UserError(
            f"The service needs another package: {problem.name}.", try_this="pip install 'oltr[serve]'"
        ) from None
    from oltr.console import console
    from oltr.runs.trained_run import TrainedRun
    from oltr.serve.service import Service

    token = token if token is not None else os.environ.get("OLTR_TOKEN") or None
    check_address(host, token)
    if not keep > 0 or not image > 0:
        raise UserError("--keep and --image must be above 0.", try_this="--keep 10 --image 50")
    if not 0 <= port < 2**16:
        raise UserError(f"--port {port} is no port.", try_this="--port 8000")
    if root is not None and source is None:
        raise UserError("--root was given without a --source.", try_this="--source SOURCE --root DIR")
    opened = TrainedRun(run, source, root)
    with listening(host, port) as place:
        limits = Limits(image_bytes=int(image * MEGABYTE), kept_bytes=int(keep * GIGABYTE))
        service = Service.of(opened, limits)
        address = f"http://{f'[{host}]' if ':' in host else host}:{place.getsockname()[1]}/"
        console.say(f"{len(opened.class_names)} classes, {len(service.state.snapshot.images):,} images kept")

        def ready() -> None:
            print(address, flush=True)

        run_server(service, place, token, ready)
