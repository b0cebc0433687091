"""On a CPU, the memory of freed tensors is reused, in every thread."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest
import torch

from oltr.device import SET_BY_USER, keep_freed_memory, network_device

LAYER = 64 * 2**20  # bytes
FAULTS = """
import resource, sys, threading
import torch
from oltr.device import keep_freed_memory, network_device

if {kept}:
    network_device(cpu=True)

def layer():  # its output is freed at once
    torch.ones({bytes} // 4)

def faults():
    for _ in range(30):  # aligned blocks find their places
        layer()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        layer()
    print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 10, keep_freed_memory())

thread = threading.Thread(target=faults)
thread.start()
thread.join()
"""
needs_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc is set")


def faults_a_layer(kept: bool, environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Pages that the system clears for a layer of 64 MiB, run in a second thread; whether malloc was set."""
    own = {name: value for name, value in os.environ.items() if name not in SET_BY_USER} | (environment or {})
    command = [sys.executable, "-c", FAULTS.format(kept=kept, bytes=LAYER)]
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=True)
    pages, was_set = done.stdout.split()
    return int(pages), was_set


@needs_glibc
def test_freed_memory_is_used_again():
    pages = LAYER // os.sysconf("SC_PAGE_SIZE")
    without, _ = faults_a_layer(kept=False)
    kept, was_set = faults_a_layer(kept=True)
    assert without > pages / 2, "the default returns memory to the system: is this test still needed?"
    assert kept < pages / 100
    assert was_set == "True"


@needs_glibc
@pytest.mark.parametrize("name", SET_BY_USER)
def test_what_the_environment_says_stays(name):
    value = "glibc.malloc.check=0" if name == "GLIBC_TUNABLES" else "4194304"
    _, was_set = faults_a_layer(kept=True, environment={name: value})
    assert was_set == "False"


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not keep_freed_memory.__wrapped__()


def test_the_cpu_where_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert network_device() == torch.device("cpu")


def test_the_gpu_that_was_asked_for(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert network_device() == torch.device("cuda")
    assert network_device(gpu=1) == torch.device("cuda", 1)
    assert network_device(cpu=True) == torch.device("cpu")
