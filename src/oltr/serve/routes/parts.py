"""What every call needs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request

from oltr.serve.service import Service

FIRST_CHANGES = 100  # told with an action


def _service(request: Request) -> Service:
    """The service, aware of what other processes did to its run."""
    service: Service = request.app.state.service
    service.state.catch_up()
    return service


Serving = Annotated[Service, Depends(_service)]
Offset = Annotated[int, Query(ge=0, le=10**9)]
Limit = Annotated[int, Query(ge=1, le=1000)]
