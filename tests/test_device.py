"""The device that is chosen; on a CPU, the memory of freed tensors is reused in every thread."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest
import torch

from oltr.device import MALLOC_VARIABLES, best_device, reuse_freed_memory

# Pages that the system clears for each layer of 64 MiB, whose output is freed at once, in a second thread.
PAGES = """
import resource, threading
import torch
from oltr.device import best_device

def layers(number):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(number):
        torch.ones(2**24)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // number

def measure():
    layers(30)  # until aligned blocks have found their places
    print(layers(10))

if {reused}:
    best_device(cpu=True)
thread = threading.Thread(target=measure)
thread.start()
thread.join()
"""
on_glibc = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"


def pages_a_layer(reused: bool) -> int:
    own = {name: value for name, value in os.environ.items() if name not in MALLOC_VARIABLES}
    command = [sys.executable, "-c", PAGES.format(reused=reused)]
    return int(subprocess.run(command, env=own, stdout=subprocess.PIPE, check=True).stdout)


@pytest.mark.skipif(not on_glibc, reason="the malloc of glibc")
def test_freed_memory_is_reused():
    assert pages_a_layer(reused=True) < pages_a_layer(reused=False) / 10


@pytest.mark.parametrize("name", MALLOC_VARIABLES)
def test_what_the_environment_says_of_malloc_stays(name, monkeypatch):
    monkeypatch.setenv(name, "1")
    assert not reuse_freed_memory.__wrapped__()


@pytest.mark.parametrize(("system", "library"), [("linux", "musl"), ("darwin", ""), ("win32", "")])
def test_other_mallocs_are_left_alone(system, library, monkeypatch):
    for name in MALLOC_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "libc_ver", lambda: (library, ""))
    assert not reuse_freed_memory.__wrapped__()


def test_the_cpu_where_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert best_device() == best_device(gpu=1) == torch.device("cpu")


def test_the_gpu_that_was_asked_for(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert best_device() == torch.device("cuda")
    assert best_device(gpu=1) == torch.device("cuda", 1)
    assert best_device(cpu=True) == torch.device("cpu")
