"""τ-normalisation: the power that is chosen and the weights that it leaves, against loops."""

import math

import pytest
import torch
from safetensors.torch import load_file

from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.methods import METHODS, tau_norm
from oltr.methods.tau_norm import best_tau
from oltr.nn.backbone import Backbone
from oltr.recipes import resolve
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from oltr.training.train import train
from tests.helpers.tiny import tiny_config

CLASSES, DIMS = 5, 256
TAUS = METHODS["tau-norm"].all_settings()["taus"]


def example(seed=0, images=40, classes=(0, 1, 2, 3, 4), dims=8):
    """A classifier whose first classes are the longest, and features and labels of images."""
    random = torch.Generator().manual_seed(seed)
    directions = torch.randn(CLASSES, dims, generator=random)
    weight = directions * torch.tensor([9.0, 5.0, 3.0, 1.5, 1.0])[:, None]
    labels = torch.tensor(classes)[torch.randint(0, len(classes), (images,), generator=random)]
    features = directions[labels] + 1.5 * torch.randn(images, dims, generator=random)
    return weight, (features, labels)


def accuracy_loop(weight, features, labels, tau):
    """Mean over the classes that have images of the share of them that is named rightly."""
    right, total = [0] * CLASSES, [0] * CLASSES
    for v, label in zip(features.tolist(), labels.tolist(), strict=True):
        logits = []
        for w in weight.tolist():
            length = math.sqrt(sum(x * x for x in w))
            logits.append(sum(a * b for a, b in zip(w, v, strict=True)) / length**tau)
        if label >= 0:
            right[label] += logits.index(max(logits)) == label
            total[label] += 1
    shares = [r / t for r, t in zip(right, total, strict=True) if t]
    return sum(shares) / len(shares)


@pytest.mark.parametrize("classes", [(0, 1, 2, 3, 4), (0, 3, 4), (1, 2), (-1, 0, 4)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_best_power_equals_a_loop_and_of_equals_is_the_smallest(seed, classes):
    weight, validation = example(seed, classes=classes)
    best, highest = None, -1.0
    for step in range(21):
        accuracy = accuracy_loop(weight, *validation, step * 0.05)
        if accuracy > highest + 1e-12:
            best, highest = step * 0.05, accuracy
    assert best_tau(*validation, weight, TAUS) == pytest.approx(best)
    assert best_tau(*validation, weight, TAUS[::-1]) == pytest.approx(best)


def test_long_weights_make_a_power_above_zero_the_best():
    weight, validation = example(images=200)
    assert best_tau(*validation, weight, TAUS) > 0
    assert best_tau(*validation, torch.nn.functional.normalize(weight), TAUS) == 0  # nothing to shorten


def test_many_classes_are_looked_at_a_few_images_at_a_time(monkeypatch):
    weight, validation = example()
    expected = best_tau(*validation, weight, TAUS)
    monkeypatch.setattr(tau_norm, "LARGEST", 3 * CLASSES)
    assert best_tau(*validation, weight, TAUS) == expected


def finished(validation, **changes):
    """The classifier's weight before the method's last word; its weight and bias after it."""
    torch.manual_seed(0)
    settings = resolve("glyphs", "tau-norm").settings | changes
    method = METHODS["tau-norm"](settings, torch.tensor([40, 20, 10, 5, 2]), image_size=32)
    network = method.build_stage1(Backbone("resnet10_half", 32))
    classifier = network.head.classifier
    before = classifier.weight.detach().clone()
    method.after_training(network, validation)
    return before, classifier.weight.detach(), classifier.bias.detach()


def test_each_weight_is_divided_by_the_power_of_its_length():
    _, validation = example(dims=DIMS)
    before, after, bias = finished(lambda: validation)
    tau = best_tau(*validation, before, TAUS)
    for old, new in zip(before.tolist(), after.tolist(), strict=True):
        length = math.sqrt(sum(x * x for x in old))
        assert new == pytest.approx([x / length**tau for x in old], rel=1e-5)
    assert not bias.any()


@pytest.mark.parametrize("validation", [None, (torch.zeros(0, 256), torch.zeros(0, dtype=torch.int64))])
def test_without_validation_images_the_settings_say_and_so_do_we(validation):
    with pytest.warns(UserWarning, match=r"no validation images to choose τ by: τ is 0\.5"):
        before, after, bias = finished(lambda: validation, tau=0.5)
    torch.testing.assert_close(after, before / before.norm(dim=1, keepdim=True).sqrt())
    assert not bias.any()


def test_an_empty_grid_is_told():
    with pytest.raises(UserError, match=r"settings\.taus is empty"):
        finished(lambda: None, taus=[])


def test_a_finished_run_is_finished_alike_when_asked_again(pack, tmp_path):
    manifest, folder = open_pack(pack).manifest, RunFolder(tmp_path / "run")
    trained = []
    for resume in (False, True):
        train(tiny_config("tau-norm", (1, 1)), manifest, folder.path, TrainOptions(resume=resume))
        trained.append(load_file(folder.model))
    last = load_file(folder.stage_weights(2))
    assert all(torch.equal(trained[0][name], trained[1][name]) for name in last)
    changed = {name for name in last if not torch.equal(trained[0][name], last[name])}
    assert changed <= {"head.classifier.weight", "head.classifier.bias"}
    assert not trained[0]["head.classifier.bias"].any()
    assert folder.run()["remark"].startswith("τ = ")
