"""A run that learns from a finished one: the step against its formula, what it leaves, what is refused."""

from __future__ import annotations

import dataclasses
import json
import shutil

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

from oltr.config import DistillConfig, StageConfig
from oltr.data.augment import Augment
from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.losses import distillation_loss
from oltr.methods import remember
from oltr.methods.weigh_memory import Weighed
from oltr.training.build import build_method, build_network
from oltr.training.configure import configure
from oltr.training.load_network import load_network
from oltr.training.optimizer import make_optimizer
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from oltr.training.step import Step
from oltr.training.teacher import Teacher, load_teacher
from oltr.training.train import train
from tests.helpers.gpu import needs_gpu
from tests.helpers.tiny import tiny_config
from tests.helpers.training import stop_at
from tests.training.test_views import MANY, SIZE, a_batch, recording_step

ON_CPU = TrainOptions(accelerator="cpu", workers=0)
COUNTS = torch.tensor([9, 7, 5, 4, 3, 2])


@pytest.fixture(scope="module")
def manifest(pack):
    return open_pack(pack).manifest


@pytest.fixture(scope="module")
def taught_by(manifest, tmp_path_factory):
    """A finished run; read-only."""
    out = tmp_path_factory.mktemp("teacher") / "experts"
    train(tiny_config("experts", (1,), stage2=None), manifest, out, ON_CPU)
    return out


def test_class_means_added_after_training_do_not_teach(manifest, tmp_path, monkeypatch):
    monkeypatch.setattr(remember, "weigh_memory", lambda *given: Weighed(0.5, 6.0, 0.25, 0.125))
    config = tiny_config("oltr2", (1,), backbone="test_resnet", stage2=None)
    train(config, manifest, tmp_path / "oltr2", ON_CPU)
    folder = RunFolder(tmp_path / "oltr2")
    images = torch.rand(4, 3, config.data.image_size, config.data.image_size)
    with torch.no_grad():
        whole = load_network(folder, config, torch.tensor(manifest.train_counts()))(images)
    taught = load_teacher(student(folder.path), manifest)(images)
    memory = load_file(folder.model)
    assert memory["head.added_memory.of_logits"] == 0.5
    trained = F.linear(whole.direct_feature, memory["head.classifier.weight"], memory["head.classifier.bias"])
    torch.testing.assert_close(taught, trained)
    assert (taught - whole.logits).abs().max() > 0.1


@pytest.fixture
def copied(taught_by, tmp_path):
    """The same, to change."""
    return shutil.copytree(taught_by, tmp_path / "copied")


def student(teacher, method="plain", epochs=(1, 1), **changes):
    share = changes.pop("share", 0.5)
    distill = DistillConfig(str(teacher), share) if teacher else DistillConfig(None, share)
    return tiny_config(method, epochs, distill=distill, backbone="test_resnet", **changes)


def a_teacher(**distill):
    """Of the student's kind, with other weights."""
    config = tiny_config("plain", seed=1)
    network = build_network(config, build_method(config, COUNTS), 1)
    return Teacher(network, DistillConfig("somewhere", **distill))


def taught_step(stage, teacher):
    """The step of a method that has all hooks (tests/training/test_views.py), with a teacher."""
    step = recording_step(stage)
    step.batch_loss.teacher = teacher
    return step


def same_weights(one, other):
    one, other = (load_file(RunFolder(each).model) for each in (one, other))
    assert one.keys() == other.keys()
    return not [name for name in one if not torch.equal(one[name], other[name])]


@pytest.mark.parametrize(("views", "mix"), [(1, "none"), (1, "mixup"), (3, "cutmix")])
def test_the_loss_of_a_step_is_the_formula(views, mix):
    stage = dataclasses.replace(MANY, views=views, mix=mix)
    step, batch = taught_step(stage, a_teacher(share=0.3, temperature=4.0)), a_batch(stage)
    loss, _, _ = step.batch_loss(*batch)
    method, network = step.batch_loss.method, step.batch_loss.network
    images, targets = step.batch_loss.views(*batch, *([] if mix != "none" else [None]))
    output, theirs = network(images), step.batch_loss.teacher.network(images).logits
    assert len(theirs) == SIZE * views
    one = method.mixed_loss if mix != "none" else method.loss
    expected = 0.7 * one(1, network, output, targets)["cross_entropy"]
    expected = expected + 0.3 * distillation_loss(output.logits, theirs, 4.0)
    if views > 1:
        parts = [output.rows(slice(at, at + SIZE)) for at in range(SIZE, len(images), SIZE)]  # the clean ones
        expected = expected + method.across_views(1, network, parts, batch.labels[:SIZE])["consistency"]
    torch.testing.assert_close(loss, expected)


def test_with_the_whole_share_a_student_moves_towards_its_teacher():
    stage = StageConfig(lr=0.01, classifier_lr=0.01)
    teacher, batch = a_teacher(share=1.0), a_batch(stage)
    before = {name: value.clone() for name, value in teacher.network.state_dict().items()}
    step = taught_step(stage, teacher)
    distances = []
    for _ in range(12):
        distances.append(float(step.batch_loss(*batch)[0].detach()))
        step(batch)
    assert distances[-1] < 0.3 * distances[0]
    assert all(torch.equal(value, before[name]) for name, value in teacher.network.state_dict().items())
    assert all(parameter.grad is None for parameter in teacher.network.parameters())


def test_a_teacher_is_no_part_of_its_student():
    step = taught_step(StageConfig(), a_teacher())
    theirs = {id(value) for value in step.batch_loss.teacher.network.parameters()}
    inside = [*step.batch_loss.parameters(), *(p for g in step.optimizer.param_groups for p in g["params"])]
    assert theirs and not theirs & {id(value) for value in inside}
    assert not any("teacher" in name for name in step.batch_loss.state_dict())


def test_a_compiler_takes_the_teacher_in_one_graph():
    teacher = a_teacher()
    images, logits = torch.randn(4, 3, 32, 32), torch.randn(4, 6)

    def loss(images, logits):
        return torch.stack(teacher.share([logits.mean()], logits, teacher(images))).sum()

    compiled = torch.compile(loss, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(images, logits), loss(images, logits))


def test_share_0_is_the_run_without_a_teacher_and_half_is_another(manifest, taught_by, tmp_path, capsys):
    runs = {"none": (None, 0.5), "zero": (taught_by, 0.0), "half": (taught_by, 0.5)}
    for name, (teacher, share) in runs.items():
        train(student(teacher, share=share), manifest, tmp_path / name, ON_CPU)
    assert same_weights(tmp_path / "none", tmp_path / "zero")
    assert not same_weights(tmp_path / "none", tmp_path / "half")  # of the same names: no teacher is in it
    said = " ".join(capsys.readouterr().err.split())
    assert f"teacher {taught_by} (share 0.5, temperature 2)" in said
    told = RunFolder(tmp_path / "half").run()["teacher"]
    assert told == {"path": str(taught_by), "weights_sha256": RunFolder(taught_by).weights_sha256()}
    assert "teacher" not in RunFolder(tmp_path / "none").run()


def test_stages_that_leave_the_backbone_alone_have_no_teacher(manifest, taught_by, tmp_path, capsys):
    train(student(taught_by, "crt"), manifest, tmp_path / "run", ON_CPU)
    said = " ".join(capsys.readouterr().err.split())
    first, second = said.split("stage 2:")
    assert "temperature 2" in first and "temperature 2" not in second


def test_an_interrupted_run_resumes_exactly(manifest, taught_by, tmp_path, monkeypatch):
    config = student(
        taught_by, stage2=None, stage1=StageConfig(epochs=2, batch_size=16, lr=0.01, ema=0.9, views=2)
    )
    train(config, manifest, tmp_path / "straight", ON_CPU)
    stop_at(monkeypatch, 6)  # 4 steps an epoch
    with pytest.raises(KeyboardInterrupt):
        train(config, manifest, tmp_path / "run", ON_CPU)
    saved = RunFolder(tmp_path / "run").load_checkpoint()
    assert not any("teacher" in name for part in ("network", "method") for name in saved[part])
    train(config, manifest, tmp_path / "run", dataclasses.replace(ON_CPU, resume=True))
    assert same_weights(tmp_path / "straight", tmp_path / "run")


def test_a_run_goes_on_with_its_own_teacher_alone(manifest, copied, taught_by, tmp_path, monkeypatch):
    config, again = student(copied), dataclasses.replace(ON_CPU, resume=True)
    stop_at(monkeypatch, 10)
    with pytest.raises(KeyboardInterrupt):
        train(config, manifest, tmp_path / "run", ON_CPU)
    with pytest.raises(UserError, match=r"(?s)another configuration.*distill\.teacher: .* → None"):
        train(student(None), manifest, tmp_path / "run", again)
    folder = RunFolder(tmp_path / "run")
    folder.check_same(student(taught_by), manifest)  # the same weights in another place
    weights = load_file(RunFolder(copied).model)
    save_file({name: 2 * value for name, value in weights.items()}, RunFolder(copied).model)
    with pytest.raises(UserError, match=r"(?s)distill\.teacher: its weights are others now"):
        train(config, manifest, tmp_path / "run", again)
    other = shutil.copytree(copied, tmp_path / "other")
    with pytest.raises(UserError, match=r"(?s)distill\.teacher: .*copied → .*other"):
        folder.check_same(student(other), manifest)
    shutil.rmtree(copied)
    folder.check_same(config, manifest)  # as of a finished run, which needs it no longer


def test_stage_1_is_shared_by_runs_of_one_teacher_alone(manifest, copied, tmp_path):
    train(student(copied), manifest, tmp_path / "plain", ON_CPU)
    shared = dataclasses.replace(ON_CPU, stage1_from=tmp_path / "plain")
    train(student(copied, "class-aware"), manifest, tmp_path / "same", shared)
    with pytest.raises(UserError, match=r"(?s)cannot be shared.*distill\.teacher: .* → None"):
        train(student(None, "class-aware"), manifest, tmp_path / "run", shared)
    weights = load_file(RunFolder(copied).model)
    save_file({name: 2 * value for name, value in weights.items()}, RunFolder(copied).model)
    with pytest.raises(UserError, match=r"(?s)cannot be shared.*the teacher's weights"):
        train(student(copied, "class-aware"), manifest, tmp_path / "run", shared)


def test_classes_in_another_order_are_paired_by_name(manifest, taught_by, copied):
    order = [3, 1, 0, 5, 4, 2]
    classes = RunFolder(copied).classes()
    (copied / "classes.json").write_text(json.dumps([classes[place] for place in order]))
    weights = load_file(RunFolder(copied).model)
    for name, value in weights.items():
        if name.startswith("head.") and value.shape[-2:-1] == (6,):
            weights[name] = value[..., order, :].contiguous()
    save_file(weights, RunFolder(copied).model)
    one, other = (load_teacher(student(each), manifest) for each in (taught_by, copied))
    assert one.order is None and other.order is not None
    images = torch.randn(3, 3, 32, 32)
    torch.testing.assert_close(other(images), one(images))


def changed_data(folder, **changes):
    facts = yaml.safe_load((folder / "run.yaml").read_text())
    facts["config"]["data"] |= changes
    (folder / "run.yaml").write_text(yaml.safe_dump(facts))


def renamed(folder):
    classes = RunFolder(folder).classes()
    (folder / "classes.json").write_text(
        json.dumps([{**entry, "name": f"new {entry['name']}"} for entry in classes])
    )


def unfinished(folder):
    facts = yaml.safe_load((folder / "run.yaml").read_text())
    (folder / "run.yaml").write_text(yaml.safe_dump(facts | {"finished": False}))


def broken(folder):
    weights = load_file(RunFolder(folder).model)
    save_file({name: value * torch.nan for name, value in weights.items()}, RunFolder(folder).model)


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (lambda folder: (folder / "run.yaml").unlink(), "is not a run folder.*no run.yaml"),
        (shutil.rmtree, "is not a run folder.*no such folder"),
        (unfinished, "has not finished training.*--resume"),
        (lambda folder: RunFolder(folder).model.unlink(), "model.safetensors is missing"),
        (
            renamed,
            r"other classes than the source.*not know .* and 3 more.*Only it knows new .*another teacher",
        ),
        (lambda folder: changed_data(folder, image_size=48), r"other views.*data\.image_size: 48 → 32"),
        (lambda folder: changed_data(folder, resize="crop"), r"other views.*data\.resize: crop → stretch"),
        (lambda folder: changed_data(folder, mean=[0.1, 0.2, 0.3]), r"other views.*data\.mean: .*--set"),
        (broken, "NaN or infinite logits"),
    ],
)
def test_a_teacher_that_cannot_teach_is_refused_before_training(manifest, copied, tmp_path, change, answer):
    change(copied)
    with pytest.raises(UserError, match=f"(?s){answer}"):
        train(student(copied), manifest, tmp_path / "run", ON_CPU)
    assert not (tmp_path / "run").exists()


def test_other_images_are_told(manifest, taught_by, capsys):
    load_teacher(student(taught_by), manifest)
    assert "other images" not in capsys.readouterr().err
    fewer = dataclasses.replace(manifest, table=manifest.table.drop(index=manifest.positions("train")[0]))
    load_teacher(student(taught_by), fewer)
    assert "was trained on other images" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ("distill.share=1.5", r"distill\.share is 1\.5.*0 to 1"),
        ("distill.temperature=0", r"distill\.temperature is 0"),
        ("distill.techer=runs/a", "did you mean teacher"),
        ("stage1.frozen=[backbone]", "no stage trains the backbone.*--train-backbone all"),
    ],
)
def test_values_that_make_no_sense_are_refused(change, answer):
    changes = ["stage2=null", change]
    with pytest.raises(UserError, match=f"(?s){answer}"):
        configure("glyphs", "plain", teacher="runs/experts", changes=changes)


@needs_gpu
def test_a_graph_with_a_teacher_gives_the_same_weights(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    results = []
    for graph in (False, True):
        batch_loss = taught_step(MANY, a_teacher().to(torch.device("cuda"))).batch_loss
        batch_loss.method.to("cuda")
        batch_loss.network.to("cuda")
        batch_loss.augment = batch_loss.views.augment = Augment(tiny_config().data, "cuda")
        step = Step(batch_loss, make_optimizer(batch_loss.network, MANY, fused=True), graph=graph)
        for seed in range(8):
            step(a_batch(MANY, seed, "cuda"))
        results.append({name: value.cpu() for name, value in batch_loss.network.state_dict().items()})
    for name, tensor in results[0].items():
        torch.testing.assert_close(results[1][name], tensor, rtol=0, atol=0, msg=name)
