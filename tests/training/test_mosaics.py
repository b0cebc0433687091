"""Steps with mosaics: their term against a slow loop, for every method, resumed, and off by default."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from safetensors.torch import load_file

from oltr.config import StageConfig
from oltr.data.augment import Augment
from oltr.data.batches import MixedBatch, TrainBatch
from oltr.data.mosaics import half_of, mosaics
from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.methods import METHODS
from oltr.training.build import build_method, build_network
from oltr.training.configure import configure
from oltr.training.frozen import freeze
from oltr.training.optimizer import make_optimizer
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from oltr.training.step import BatchLoss, Step
from oltr.training.train import train
from tests.helpers.gpu import needs_gpu
from tests.helpers.tiny import tiny_config
from tests.helpers.training import stop_at

ON_CPU = TrainOptions(accelerator="cpu", workers=0)
COUNTS = torch.tensor([9, 7, 5, 4, 3, 2])
SIZE = 18
KINDS = [{}, {"views": 2}, {"mix": "mixup"}, {"views": 2, "mix": "cutmix"}]


def a_batch(stage, seed=0, device="cpu"):
    random, mixed = torch.Generator().manual_seed(seed), stage.mix != "none"
    rows = SIZE * (1 + mixed)
    pixels = torch.randint(0, 256, (rows, 32, 32, 3), generator=random, dtype=torch.uint8).permute(0, 3, 1, 2)
    draws = torch.rand(SIZE * (stage.views + mixed) + half_of(SIZE), 34, generator=random)
    labels = torch.randint(0, 6, (rows,), generator=random)
    parts = [pixels, draws, labels] + ([torch.rand(SIZE, 5, generator=random)] if mixed else [])
    return (MixedBatch if mixed else TrainBatch)(*(part.to(device) for part in parts))


def with_mosaics(method="oltr", weight=0.5, **changes):
    """The tiny configuration with mosaics in both stages."""
    config = tiny_config(method, **changes)
    stages = {
        f"stage{n}": dataclasses.replace(config.stage(n), mosaics=weight)
        for n in range(1, config.num_stages + 1)
    }
    return dataclasses.replace(config, **stages)


def a_step(name, number=1, device="cpu", graph=False, **changes):
    torch.manual_seed(0)
    config = with_mosaics(name)
    method = build_method(config, COUNTS)
    network = build_network(config, method, number).train()
    method.on_stage_start(number, network, lambda: torch.randn(6, network.direct_feature.dims))
    stage = dataclasses.replace(config.stage(number), **changes)
    freeze(network, stage, 32)
    method.to(device)
    network.to(device)
    augment = Augment(config.data, device)
    optimizer = make_optimizer(network, stage, fused=device == "cuda")
    for group in optimizer.param_groups:
        group["lr"] = group["base_lr"]
    loss = BatchLoss(method, number, network, augment, precision="float32", config=stage)
    return Step(loss, optimizer, graph=graph)


def spread(logits):
    """−Σ log p_k / K of one picture."""
    total = math.log(sum(math.exp(z) for z in logits))
    return sum(total - z for z in logits) / len(logits)


ANSWERING = ["plain", "oltr", "ldam-drw", "balanced-softmax", "logit-adjusted", "experts", "oltr2"]


@pytest.mark.parametrize("name", ANSWERING)
def test_the_term_is_the_mean_cross_entropy_to_uniform_of_the_logits_that_the_network_answers_with(name):
    step = a_step(name)
    method, network = step.batch_loss.method, step.batch_loss.network.eval()
    output = network(torch.randn(5, 3, 32, 32, generator=torch.Generator().manual_seed(1)))
    rows = output.logits.tolist()
    if name == "experts":
        rows = network.head.expert_logits(output.direct_feature).flatten(0, 1).tolist()
    expected = sum(map(spread, rows)) / len(rows)
    assert method.open_loss(1, network, output).item() == pytest.approx(expected, rel=1e-5)
    assert expected > math.log(6)


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_mosaics_of_the_last_view_go_with_the_views_and_add_their_weighted_term(changes):
    step = a_step("balanced-softmax", **changes)
    stage, batch = step.batch_loss.views.stage, a_batch(step.batch_loss.views.stage)
    method, network = step.batch_loss.method, step.batch_loss.network
    given = []
    method.after_step = lambda stage, network, output, labels: given.append((output, labels))
    images, targets = step.batch_loss.views(*batch, *([None] if stage.mix == "none" else []))
    shown = stage.views * SIZE
    made = images[shown:]
    assert torch.equal(made, mosaics(images[shown - SIZE : shown], batch.draws[-half_of(SIZE) :]))
    whole = network(images)  # one pass: batch norms see views and mosaics together
    views, opened = whole.rows(slice(shown)), whole.rows(slice(shown, None))
    loss = method.loss if stage.mix == "none" else method.mixed_loss
    expected = loss(1, network, views, targets)["cross_entropy"] + 0.5 * method.open_loss(1, network, opened)
    torch.testing.assert_close(step.batch_loss(*batch)[0], expected)
    step(batch)
    (((output, labels)),) = given
    left = slice(SIZE if stage.mix != "none" and stage.views > 1 else 0, None)
    assert len(output.logits) == len(labels) == len(views.rows(left).logits)
    torch.testing.assert_close(output.logits, views.logits[left])


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_trains_with_mosaics(name):
    for number in range(1, with_mosaics(name).num_stages + 1):
        steps = a_step(name, number), a_step(name, number, mosaics=0.0)
        for step in steps:
            for seed in range(2):
                batch = a_batch(step.batch_loss.views.stage, seed)
                kept = len(batch.draws) if step is steps[0] else SIZE
                step(batch._replace(draws=batch.draws[:kept]))
            assert torch.isfinite(step.loss_sum)
        with_term, without = (step.batch_loss.network.state_dict() for step in steps)
        assert all(torch.isfinite(value).all() for value in with_term.values())
        assert any(not torch.equal(value, without[key]) for key, value in with_term.items())


def test_a_network_learns_to_spread_over_mosaics():
    step = a_step("plain", mosaics=2.0, lr=0.05, classifier_lr=0.05)
    batch, spreads = a_batch(step.batch_loss.views.stage), []
    real = step.batch_loss.method.open_loss

    def noted(*about):
        spreads.append(real(*about).item())
        return real(*about)

    step.batch_loss.method.open_loss = noted
    for _ in range(40):
        step(batch)
    assert spreads[-1] - math.log(6) < 0.05 < max(spreads) - math.log(6)


def test_a_compiler_takes_mosaics_in_one_graph():
    step = a_step("plain", views=2)
    views, batch = step.batch_loss.views, a_batch(step.batch_loss.views.stage)
    compiled = torch.compile(lambda *batch: views(*batch, None)[0], fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*batch), views(*batch, None)[0])


def test_an_interrupted_run_resumes_exactly(pack, tmp_path, monkeypatch):
    manifest, config = open_pack(pack).manifest, with_mosaics("oltr-paper")
    train(config, manifest, tmp_path / "straight", ON_CPU)
    stop_at(monkeypatch, 12)
    with pytest.raises(KeyboardInterrupt):
        train(config, manifest, tmp_path / "run", ON_CPU)
    train(config, manifest, tmp_path / "run", dataclasses.replace(ON_CPU, resume=True))
    straight, resumed = (load_file(RunFolder(tmp_path / name).model) for name in ("straight", "run"))
    assert [name for name in straight if not torch.equal(straight[name], resumed[name])] == []


def test_a_run_says_its_mosaics(pack, tmp_path, capsys):
    train(with_mosaics("plain", epochs=(1,)), open_pack(pack).manifest, tmp_path / "run", ON_CPU)
    assert "; mosaics of no class (weight 0.5)" in " ".join(capsys.readouterr().err.split())


def test_what_makes_no_sense_is_refused():
    assert StageConfig().mosaics == 0
    with pytest.raises(UserError, match=r"(?s)stage1\.mosaics is -1.*0 or more"):
        configure("glyphs", "oltr", changes=["stage1.mosaics=-1"])
    with pytest.raises(UserError, match=r"(?s)mosaics of no class.*backbone is frozen.*stage1\.mosaics=0"):
        configure("photos-frozen", "plain", changes=["stage1.mosaics=0.5"])


@needs_gpu
@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_a_graph_with_mosaics_gives_the_same_weights(monkeypatch, changes):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    results = []
    for graph in (False, True):
        step = a_step("balanced-softmax", device="cuda", graph=graph, **changes)
        for seed in range(8):
            step(a_batch(step.batch_loss.views.stage, seed, "cuda"))
        results.append({name: value.cpu() for name, value in step.batch_loss.network.state_dict().items()})
    for name, tensor in results[0].items():
        torch.testing.assert_close(results[1][name], tensor, rtol=0, atol=0, msg=name)
