"""A small run whose classes can be changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from oltr.runs.trained_run import TrainedRun


@pytest.fixture
def folder(plain_run, tmp_path) -> Path:
    return shutil.copytree(plain_run, tmp_path / "run")


@pytest.fixture
def run(folder) -> TrainedRun:
    return TrainedRun(folder)
