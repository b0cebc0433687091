"""What all tests share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

# Small tensors everywhere: more than one thread per process only makes the tests slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from tests.helpers.colours import oltr_run, photo_folder, plain_run, strangers  # noqa: F401
from tests.helpers.tiny import tiny_pack

# On a GPU convolutions would be rounded to TF32, and tests compare with slow float32 versions.
torch.backends.cudnn.allow_tf32 = False
# A shell that starts the tests in the background has SIGINT ignored, and every process they start would, too:
# tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def pack(tmp_path_factory) -> Path:
    """A tiny long-tailed, open set; read-only."""
    return tiny_pack(tmp_path_factory.mktemp("tiny data"))  # a space in the path, on purpose
