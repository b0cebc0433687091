"""Which precision a network runs in, and that finding out costs a step nothing."""

from __future__ import annotations

import pytest
import torch

from oltr.training import precision

# Without a GPU, autocast says that it does nothing.
pytestmark = pytest.mark.filterwarnings("ignore:CUDA is not available")
CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def asked(monkeypatch):
    """Our questions to a GPU that has bfloat16, as they come."""
    questions: list[bool] = []

    def is_bf16_supported(including_emulation=True):
        if including_emulation:  # autocast's own question, which it asks each time where there is a GPU
            return True
        torch._dynamo.graph_break()  # nothing the compiler could follow
        questions.append(including_emulation)
        return True

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", is_bf16_supported)
    precision._asked_once.cache_clear()
    yield questions
    precision._asked_once.cache_clear()


@pytest.mark.parametrize("has", [True, False])
def test_bfloat16_is_taken_of_itself_only_where_the_gpu_has_it(asked, monkeypatch, has):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: has)
    monkeypatch.setattr(torch, "autocast", lambda *_, enabled, **__: enabled)
    assert precision.autocast(GPU, "auto") == has
    assert precision.autocast(GPU, "bfloat16") and not precision.autocast(GPU, "float32")
    assert precision.autocast(CPU, "bfloat16") and not precision.autocast(CPU, "auto")


def test_the_gpu_is_asked_once_and_only_if_it_matters(asked):
    for device, wish in ((CPU, "auto"), (CPU, "bfloat16"), (GPU, "float32"), (GPU, "bfloat16")):
        precision.autocast(device, wish)
    assert asked == []
    for _ in range(3):
        precision.autocast(GPU, "auto")
    assert asked == [False]  # not for what it can emulate


def test_the_question_does_not_break_a_compiled_step(asked):
    @torch.compile(backend="eager", fullgraph=True)
    def step(x):
        with precision.autocast(GPU, "auto"):
            return x @ x

    step(torch.ones(2, 2))
    assert asked == [False]
