"""The system's chromium, driven by Playwright; tests that need it are skipped where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)
NEEDED = os.environ.get("OLTR_NEEDS_BROWSER") == "1"  # set by .ci/run: then nothing is skipped
needs_browser = pytest.mark.skipif(not CHROMIUM and not NEEDED, reason="no chromium here")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    name = "playwright.sync_api"
    playwright = import_module(name) if NEEDED else pytest.importorskip(name)
    assert CHROMIUM, "OLTR_NEEDS_BROWSER=1, and there is no chromium"
    with playwright.sync_playwright() as engine:
        running = engine.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()
