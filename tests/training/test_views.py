"""Steps with several views and mixed images: against an obvious loop, for every method, and resumed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

from oltr.config import DistillConfig, StageConfig
from oltr.data.augment import Augment
from oltr.data.batches import MixedBatch, TrainBatch, TrainBatches
from oltr.data.image_access import Images
from oltr.data.mosaics import half_of
from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.methods import METHODS
from oltr.methods.balanced_softmax import BalancedSoftmax
from oltr.training.build import build_method, build_network
from oltr.training.configure import configure
from oltr.training.ema import WeightAverage
from oltr.training.frozen import freeze
from oltr.training.load_network import load_network
from oltr.training.optimizer import make_optimizer
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from oltr.training.schedule import LearningRates
from oltr.training.step import WARM_UP, BatchLoss, Step
from oltr.training.teacher import Teacher
from oltr.training.train import train
from oltr.training.views import Views
from tests.helpers.gpu import needs_gpu
from tests.helpers.tiny import tiny_config
from tests.helpers.training import stop_at

ON_CPU = TrainOptions(accelerator="cpu", workers=0)
MANY = StageConfig(views=3, mix="cutmix", mix_chance=0.7, mix_partner="balanced", lr=0.01, classifier_lr=0.01)
SIZE = 6
RECORDER = "tests.training.test_views:Recorder"


def a_batch(stage, seed=0, device="cpu"):
    random = torch.Generator().manual_seed(seed)
    mixed = stage.mix != "none"
    rows, views = SIZE * (1 + mixed), stage.views + mixed
    pixels = torch.randint(0, 256, (rows, 32, 32, 3), generator=random, dtype=torch.uint8).permute(0, 3, 1, 2)
    mosaics = half_of(SIZE) if stage.mosaics else 0
    draws = torch.rand(SIZE * views + mosaics, 34, generator=random)
    labels = torch.randint(0, 6, (rows,), generator=random)
    parts = [pixels, draws, labels] + ([torch.rand(SIZE, 5, generator=random)] if mixed else [])
    return (MixedBatch if mixed else TrainBatch)(*(part.to(device) for part in parts))


def mixing_changes(**changes):
    """The tiny configuration with views and mixing in both stages."""
    config = tiny_config(changes.pop("method", "oltr"), **changes)
    wanted = {"views": 2, "mix": "cutmix", "mix_partner": "balanced"}
    stages = {
        f"stage{n}": dataclasses.replace(config.stage(n), **wanted) for n in range(1, config.num_stages + 1)
    }
    return dataclasses.replace(config, **stages)


def test_rows_come_view_by_view_and_the_first_alone_is_mixed():
    augment = Augment(tiny_config().data)
    batch = a_batch(MANY)
    images, targets = Views(augment, MANY)(*batch)
    own, partners = batch.labels.split(SIZE)
    assert targets.first.tolist() == own.tolist() * 3
    assert targets.second.tolist() == [*partners.tolist(), *own.tolist() * 2]
    share = targets.share
    assert (share[SIZE:] == 1).all() and (share[:SIZE] < 1).any() and (share[:SIZE] == 1).any()
    drawn = [a if u < s else b for a, b, u, s in zip(own, partners, batch.mixing[:, 4], share, strict=False)]
    assert targets.drawn.tolist() == [*map(int, drawn), *own.tolist() * 2]
    clean = [
        augment.train(batch.pixels[rows], batch.draws[draws])
        for rows, draws in (
            (slice(0, SIZE), slice(0, SIZE)),
            (slice(SIZE, None), slice(SIZE, 2 * SIZE)),  # the partners
            (slice(0, SIZE), slice(2 * SIZE, 3 * SIZE)),
            (slice(0, SIZE), slice(3 * SIZE, None)),
        )
    ]
    assert torch.equal(images[SIZE:], torch.cat(clean[2:]))
    from_own, from_partner = ((images[:SIZE] == each).all(dim=1) for each in clean[:2])
    assert (from_own | from_partner).all()
    torch.testing.assert_close(from_own.float().mean(dim=(1, 2)), share[:SIZE], atol=2e-3, rtol=0)


def test_without_mixing_labels_are_repeated():
    stage = StageConfig(views=2)
    batch = a_batch(stage)
    images, labels = Views(Augment(tiny_config().data), stage)(*batch, None)
    assert images.shape == (2 * SIZE, 3, 32, 32) and labels.tolist() == batch.labels.tolist() * 2
    assert not torch.equal(images[:SIZE], images[SIZE:])


class Recorder(BalancedSoftmax):
    """Notes what it is given; a term of its own, in which projected views are compared."""

    def build_stage1(self, backbone):
        network = super().build_stage1(backbone)
        dims = network.direct_feature.dims
        # A norm and a bias before it too: parts of every kind.
        network.auxiliary = nn.ModuleDict({"project": nn.Sequential(nn.Linear(dims, 4), nn.BatchNorm1d(4))})
        return network

    def across_views(self, stage, network, views, labels):
        self.views, self.labels = views, labels
        first, *others = (network.auxiliary["project"](view.direct_feature) for view in views)
        return {"consistency": sum(F.mse_loss(first, other.detach()) for other in others)}

    def after_step(self, stage, network, output, labels):
        self.after = output, labels


def recording_step(stage, **options):
    torch.manual_seed(0)
    config = tiny_config("plain")
    method = Recorder({}, torch.tensor([9, 7, 5, 4, 3, 2]), 32)
    network = build_network(config, method, 1).train()
    freeze(network, stage, 32)
    batch_loss = BatchLoss(
        method, 1, network, Augment(config.data), precision="float32", config=stage, **options
    )
    optimizer = make_optimizer(network, stage, fused=False)
    for group in optimizer.param_groups:
        group["lr"] = group["base_lr"]
    return Step(batch_loss, optimizer)


@pytest.mark.parametrize("mix", ["none", "cutmix", "mixup"])
def test_the_hook_gets_each_clean_view_and_its_term_is_added(mix):
    stage = dataclasses.replace(MANY, mix=mix)
    step, batch = recording_step(stage), a_batch(stage)
    loss, output, labels = step.batch_loss(*batch)
    method, network = step.batch_loss.method, step.batch_loss.network
    # The one forward pass, as a loop: batch norms see all views together.
    images, targets = step.batch_loss.views(*batch, *([] if mix != "none" else [None]))
    whole = network(images)
    clean = range(0 if mix == "none" else 1, 3)
    assert [len(view.logits) for view in method.views] == [SIZE] * len(clean)
    for number, view in zip(clean, method.views, strict=True):
        rows = slice(number * SIZE, (number + 1) * SIZE)
        torch.testing.assert_close(view.logits, whole.logits[rows])
        torch.testing.assert_close(view.direct_feature, whole.direct_feature[rows])
    assert method.labels.tolist() == batch.labels[:SIZE].tolist()
    one = method.mixed_loss if mix != "none" else method.loss
    expected = one(1, network, whole, targets)["cross_entropy"]
    views = [whole.rows(slice(at, at + SIZE)) for at in range(0, 3 * SIZE, SIZE)][clean.start :]
    expected = expected + method.across_views(1, network, views, batch.labels[:SIZE])["consistency"]
    torch.testing.assert_close(loss, expected)
    # Of mixed images the clean views alone go to `after_step`.
    left = slice(SIZE if mix != "none" else 0, None)
    assert labels.tolist() == (batch.labels[:SIZE].tolist() * 3)[left]
    torch.testing.assert_close(output.logits, whole.logits[left])


def test_of_two_views_one_of_them_mixed_the_hook_gets_both():
    step = recording_step(dataclasses.replace(MANY, views=2))
    step.batch_loss(*a_batch(dataclasses.replace(MANY, views=2)))
    assert len(step.batch_loss.method.views) == 2


def test_with_one_mixed_view_after_step_gets_the_larger_label():
    stage = dataclasses.replace(MANY, views=1)
    step, batch = recording_step(stage), a_batch(stage)
    step(batch)
    output, labels = step.batch_loss.method.after
    _, targets = step.batch_loss.views(*batch)
    own, partners = batch.labels.split(SIZE)
    expected = [a if s >= 0.5 else b for a, b, s in zip(own, partners, targets.share, strict=True)]
    assert labels.tolist() == list(map(int, expected)) and len(output.logits) == SIZE
    assert not hasattr(step.batch_loss.method, "views")  # the hook needs two


def test_auxiliary_parts_learn_with_several_views_and_are_frozen_with_one():
    for views in (1, 2):
        stage = dataclasses.replace(MANY, views=views)
        step = recording_step(stage)
        auxiliary = step.batch_loss.network.auxiliary
        before = [parameter.detach().clone() for parameter in auxiliary.parameters()]
        groups = [group for group in step.optimizer.param_groups if group["role"] == "auxiliary"]
        assert [group["base_lr"] for group in groups] == [stage.lr] * (views - 1)
        for seed in range(2):
            step(a_batch(stage, seed))
        moved = [not torch.equal(a, b) for a, b in zip(before, auxiliary.parameters(), strict=True)]
        # A bias before a norm has no gradient, up to rounding.
        assert moved[0] is (views == 2) and moved[2] is (views == 2)
        inside = {id(parameter) for parameter in step.batch_loss.parameters()}
        assert all(id(parameter) in inside for parameter in auxiliary.parameters())


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_trains_with_views_and_mixed_images(name):
    for number in (1, 2):
        config = mixing_changes(method=name)
        if number > config.num_stages:
            continue
        method = build_method(config, torch.tensor([9, 7, 5, 4, 3, 2]))
        network = build_network(config, method, number).train()
        method.on_stage_start(number, network, lambda net=network: torch.randn(6, net.direct_feature.dims))
        stage = config.stage(number)
        freeze(network, stage, 32)
        step = Step(
            BatchLoss(method, number, network, Augment(config.data), precision="float32", config=stage),
            make_optimizer(network, stage, fused=False),
        )
        before = {key: value.clone() for key, value in network.state_dict().items()}
        for group in step.optimizer.param_groups:
            group["lr"] = group["base_lr"]
        for seed in range(2):
            step(a_batch(stage, seed))
        after = network.state_dict()
        assert torch.isfinite(step.loss_sum)
        assert all(torch.isfinite(value).all() for value in after.values())
        assert any(not torch.equal(value, before[key]) for key, value in after.items())


@pytest.mark.parametrize("stage", [StageConfig(), MANY, dataclasses.replace(MANY, mosaics=0.5)])
def test_a_compiler_takes_a_whole_step_in_one_graph(stage):
    # Each break in it is a return to the host, and values that go through the device's memory.
    torch._dynamo.reset()
    config = tiny_config("oltr2", settings={"experts": 2, "consistency": 0.5})
    method = build_method(config, torch.tensor([9, 7, 5, 4, 3, 2]))
    network, taught_by = (build_network(config, method, 1) for _ in range(2))
    loss = BatchLoss(
        method,
        1,
        network.train(),
        Augment(config.data),
        precision="float32",
        config=stage,
        teacher=Teacher(taught_by, DistillConfig("a run"), [5, 4, 3, 2, 1, 0]),
    )
    batch = a_batch(stage)
    compiled = torch.compile(loss, fullgraph=True, dynamic=False, backend="eager")
    torch.testing.assert_close(compiled(*batch)[0], loss(*batch)[0])


@pytest.mark.parametrize(("method", "at"), [("oltr-paper", 12), (RECORDER, 12), (RECORDER, 20)])
def test_an_interrupted_run_resumes_exactly(pack, tmp_path, monkeypatch, method, at):
    manifest, config = open_pack(pack).manifest, mixing_changes(method=method)
    train(config, manifest, tmp_path / "straight", ON_CPU)
    stop_at(monkeypatch, at)
    with pytest.raises(KeyboardInterrupt):
        train(config, manifest, tmp_path / "run", ON_CPU)
    train(config, manifest, tmp_path / "run", dataclasses.replace(ON_CPU, resume=True))
    folders = [RunFolder(tmp_path / name) for name in ("straight", "run")]
    for file in ("model", "last stage"):
        straight, resumed = (load_file(f.model if file == "model" else f.stage_weights(2)) for f in folders)
        assert [name for name in straight if not torch.equal(straight[name], resumed[name])] == []
        auxiliary = any(name.startswith("auxiliary.") for name in straight)
        assert auxiliary == (file == "last stage" and method == RECORDER)


def test_a_finished_model_is_without_its_auxiliary_parts(pack, tmp_path):
    manifest, config = open_pack(pack).manifest, mixing_changes(method=RECORDER, epochs=(1, 1))
    trained, *_ = train(config, manifest, tmp_path / "run", ON_CPU)
    counts = torch.from_numpy(manifest.train_counts())
    loaded = load_network(RunFolder(tmp_path / "run"), config, counts)
    assert trained.auxiliary is None and loaded.auxiliary is None
    pictures = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(loaded(pictures).logits, trained.eval()(pictures).logits)


def test_a_run_says_its_views(pack, tmp_path, capsys):
    train(mixing_changes(method="plain", epochs=(1,)), open_pack(pack).manifest, tmp_path / "run", ON_CPU)
    said = " ".join(capsys.readouterr().err.split())
    assert "; 2 views of each image, cutmix with a class-balanced partner (chance 0.5)" in said


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ("stage1.views=0", r"stage1\.views is 0.*1 or more"),
        ("stage1.mix=cutmax", r"stage1\.mix is 'cutmax'.*none, cutmix, mixup"),
        ("stage1.mix_chance=1.5", r"stage1\.mix_chance is 1\.5.*0 to 1"),
        ("stage1.mix_partner=any", r"stage1\.mix_partner is 'any'.*batch, balanced"),
        ("stage1.weight_decay_on=some", r"stage1\.weight_decay_on is 'some'.*all, matrices"),
    ],
)
def test_values_that_make_no_sense_are_refused(change, answer):
    with pytest.raises(UserError, match=f"(?s){answer}"):
        configure("glyphs", "oltr", changes=[change])


@pytest.mark.parametrize("change", ["stage1.views=2", "stage1.mix=mixup"])
def test_features_of_a_frozen_backbone_have_one_view(change):
    with pytest.raises(UserError, match=r"(?s)stage1 has .*backbone is frozen.*--set stage1\.views=1"):
        configure("photos-frozen", "plain", changes=[change])


@needs_gpu
def test_a_graph_with_views_and_mixed_images_gives_the_same_weights(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    results = []
    for graph in (False, True):
        step = recording_step(MANY)
        batch_loss = step.batch_loss
        batch_loss.method.to("cuda")
        batch_loss.network.to("cuda")
        batch_loss.augment = Augment(tiny_config().data, "cuda")
        batch_loss.views.augment = batch_loss.augment
        step = Step(batch_loss, make_optimizer(batch_loss.network, MANY, fused=True), graph=graph)
        for seed in range(8):
            step(a_batch(MANY, seed, "cuda"))
        results.append({name: value.cpu() for name, value in batch_loss.network.state_dict().items()})
    for name, tensor in results[0].items():
        torch.testing.assert_close(results[1][name], tensor, rtol=0, atol=0, msg=name)


# Every part of the method and of the step at once: experts, both terms on views, mosaics, averages.
EVERYTHING = ["settings.experts=3", "settings.consistency=1", "stage1.mosaics=0.5", "stage1.batch_size=16"]


def modern_step(device, graph):
    """The step of the modern recipe as a run builds it, rates and batches with it."""
    torch.manual_seed(0)
    config = configure("cifar100-lt-100-modern", "oltr2", changes=EVERYTHING)
    stage, labels = config.stage1, np.arange(40) % 8
    method = build_method(config, torch.full((8,), 5)).to(device)
    network = build_network(config, method, 1).to(device, memory_format=torch.channels_last).train()
    freeze(network, stage, 32)
    optimizer = make_optimizer(network, stage, fused=device.type == "cuda")
    rates = LearningRates(optimizer, stage, device)
    loss = BatchLoss(
        method, 1, network, Augment(config.data, device), precision=config.precision, config=stage
    )
    step = Step(loss, optimizer, average=WeightAverage(network, stage.ema), graph=graph)
    pixels = torch.randint(0, 256, (40, 32, 32, 3), dtype=torch.uint8).to(device)
    images = Images(32, labels, np.arange(40), pixels)
    batches = [
        batch
        for epoch in range(4)
        for batch in TrainBatches(images, stage, (0, 1, epoch), device, 0, config.data)
    ]
    rates.start_epoch(0, len(batches))
    return step, rates, batches


def test_the_step_of_the_modern_recipe_takes_all_parts_at_once():
    step, rates, batches = modern_step(torch.device("cpu"), graph=False)
    for number, batch in enumerate(batches[:2]):
        rates.set(number)
        step(batch)
    assert torch.isfinite(step.loss_sum)
    learning = [p for p in step.batch_loss.network.parameters() if p.requires_grad]
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in learning)


@needs_gpu
def test_the_step_of_the_modern_recipe_is_recorded_and_never_waits(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    results = []
    for graph in (False, True):
        step, rates, batches = modern_step(torch.device("cuda"), graph)
        try:
            for number, batch in enumerate(batches):
                torch.cuda.set_sync_debug_mode("error" if number > WARM_UP else "default")
                rates.set(number)
                step(batch)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert (step.recorded is not None) == graph
        network = step.batch_loss.network
        results.append({name: value.cpu() for name, value in network.state_dict().items()})
    for name, tensor in results[0].items():
        torch.testing.assert_close(results[1][name], tensor, rtol=1e-3, atol=1e-4, msg=name)
