"""Which precision a network runs in, and that finding out costs a step nothing."""

from __future__ import annotations

import pytest
import torch

from oltr.data.augment import Augment, draws_per_view
from oltr.training import precision
from oltr.training.build import build_method, build_network
from oltr.training.step import BatchLoss
from tests.helpers.tiny import tiny_config

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
def test_bfloat16_is_taken_of_itself_only_where_the_machine_has_it(asked, monkeypatch, has):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: has)
    monkeypatch.setattr(precision, "cpu_has_bfloat16", lambda: has)
    monkeypatch.setattr(torch, "autocast", lambda *_, enabled, **__: enabled)
    for device in (CPU, GPU):
        assert precision.autocast(device, "auto", training=True) == has
        for training in (True, False):
            assert precision.autocast(device, "bfloat16", training=training)
            assert not precision.autocast(device, "float32", training=training)
    assert precision.autocast(GPU, "auto") == has
    assert not precision.autocast(CPU, "auto")  # the same answers on every CPU


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


@pytest.mark.parametrize(("has", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_a_step_on_a_cpu_is_in_bfloat16_where_the_cpu_has_it(monkeypatch, has, dtype):
    monkeypatch.setattr(precision, "cpu_has_bfloat16", lambda: has)
    config = tiny_config("plain")
    method = build_method(config, torch.tensor([4, 4]))
    network, seen = build_network(config, method, 1), []
    network.backbone.register_forward_hook(lambda _, __, maps: seen.append(maps.dtype))
    augment = Augment(config.data)
    loss = BatchLoss(method, 1, network, augment, precision="auto", config=config.stage1)
    size = config.data.stored_size
    draws = torch.rand(4, draws_per_view(config.data))
    loss(torch.zeros(4, 3, size, size, dtype=torch.uint8), draws, torch.tensor([0, 1, 0, 1]))
    assert seen == [dtype]
