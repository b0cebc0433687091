"""A small run that is served."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.helpers.page import browser, serve_page, visit  # noqa: F401
from tests.helpers.serving import serving
from tests.helpers.serving_processes import Serve, serving_processes


@pytest.fixture(scope="session")
def serve() -> Iterator[Serve]:
    """`oltr serve` in processes of its own."""
    with serving_processes() as serve:
        yield serve


@pytest.fixture
def folder(plain_run, tmp_path) -> Path:
    return shutil.copytree(plain_run, tmp_path / "run")


@pytest.fixture
def client(folder) -> Iterator[TestClient]:
    """Of a service in this process; `client.service` is the service."""
    with serving(folder) as client:
        yield client
