"""Post-hoc adjustment: the τ that is chosen against loops, when it is not, and the run that keeps it."""

from __future__ import annotations

import copy
import dataclasses
import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from oltr.data.pack import open_pack
from oltr.nn.heads import LinearHead
from oltr.nn.shifted_logits import shift_logits
from oltr.runs.outputs import Outputs
from oltr.runs.train_run import train_run
from oltr.runs.trained_run import TrainedRun
from oltr.training import adjust as module
from oltr.training.adjust import TAUS, best_tau, log_frequencies
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from tests.helpers.tiny import tiny_config

CPU = TrainOptions(accelerator="cpu")


def example(seed, images=120, bias=0.6):
    """Logits that hold `bias` of the log frequencies, the labels, and training counts."""
    random, counts = np.random.default_rng(seed), np.array([400, 100, 30, 8, 2])
    labels = random.integers(0, 5, images)
    logits = random.normal(0, 1, (images, 5)) + bias * np.log(counts)
    logits[np.arange(images), labels] += 1.8
    return torch.from_numpy(logits), torch.from_numpy(labels), torch.from_numpy(counts)


def predicted(logits, counts):
    return torch.stack([(logits - tau * log_frequencies(counts)).argmax(dim=1) for tau in TAUS], dim=1)


def chosen_by_loops(logits, labels, counts):
    """τ, gain and standard error, image by image."""

    def right(tau, i):
        values = [
            z - tau * math.log(n / counts.sum()) for z, n in zip(logits[i], counts.tolist(), strict=True)
        ]
        return int(values.index(max(values)) == labels[i])

    known = [i for i in range(len(labels)) if labels[i] >= 0]
    present = sorted({int(labels[i]) for i in known})
    number = {c: sum(int(labels[i]) == c for i in known) for c in present}

    def accuracy(tau):
        shares = [sum(right(tau, i) for i in known if labels[i] == c) / number[c] for c in present]
        return sum(shares) / len(shares)

    best = 0.0
    for step in range(1, 9):  # outwards from 0
        for tau in (step / 4, -step / 4):
            if tau >= -0.5 and accuracy(tau) > accuracy(best) + 1e-12:
                best = tau
    gain = accuracy(best) - accuracy(0)
    variance = 0.0
    for i in known:
        weight = 1 / (len(present) * number[int(labels[i])])
        variance += weight**2 * (right(best, i) - right(0, i)) ** 2
    error = math.sqrt(variance)
    return best if gain > error else 0.0, gain, error


@pytest.mark.parametrize(("bias", "images"), [(0.6, 60), (0.0, 60), (-0.3, 80), (1.2, 30)])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_choice_equals_a_loop(seed, bias, images):
    logits, labels, counts = example(seed, images, bias)
    labels[::9] = -1  # open
    labels[labels == 2] = 1  # a class without images
    found = best_tau(predicted(logits, counts), labels)
    tau, gain, error = chosen_by_loops(logits, labels, counts)
    assert found.tau == tau and (found.gain, found.standard_error) == pytest.approx((gain, error), abs=1e-6)


def test_logits_that_hold_the_frequencies_lose_them_and_balanced_ones_stay():
    assert best_tau(*_answers(0, 2000, 1.0)).tau == pytest.approx(1.0, abs=0.25)
    assert best_tau(*_answers(1, 2000, 0.0)).tau == 0
    assert best_tau(*_answers(2, 2000, -0.5)).tau < 0


def _answers(seed, images, bias):
    logits, labels, counts = example(seed, images, bias)
    return predicted(logits, counts), labels


def test_one_image_is_never_enough_and_of_equals_the_nearest_to_zero_is_taken():
    labels = torch.arange(10) % 2
    said = labels[:, None].repeat(1, len(TAUS))
    said[0, : TAUS.index(0.25)] = 1  # wrong up to 0
    alone = best_tau(said, labels)
    assert alone.tau == 0 and alone.gain == pytest.approx(0.1)
    assert str(alone) == "τ = 0, by accuracy on validation (the best other has +10.0 ± 10.0 points)"
    said[2:5, : TAUS.index(0.25)] = 1 - labels[2:5, None]
    assert best_tau(said, labels).tau == 0.25
    equal = labels[:, None].repeat(1, len(TAUS))
    equal[:4, TAUS.index(0.0)] = 1 - labels[:4]
    assert best_tau(equal, labels).tau == 0.25  # rather than −0.25, 0.5 ...
    assert str(best_tau(said[:, :1].repeat(1, len(TAUS)), labels)).endswith("(no other is better)")


@pytest.mark.parametrize("sizes", [[1], [1, 100], [1] + [10] * 99, [2, 50]])
def test_one_image_is_never_enough_whatever_its_class_weighs(sizes):
    labels = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    said = labels[:, None].repeat(1, len(TAUS))
    said[0, : TAUS.index(0.25)] = len(sizes)  # wrong up to 0
    found = best_tau(said, labels)
    assert found.tau == 0 and found.gain == found.standard_error == pytest.approx(
        1 / (len(sizes) * sizes[0]), abs=1e-6
    )


def test_noise_hardly_chooses_and_hardly_hurts():
    """Balanced logits, few images: whatever is chosen, accuracy on many others falls by little."""
    logits, labels, counts = example(99, 20_000, 0.0)
    many = (predicted(logits, counts) == labels[:, None]).double().mean(dim=0)
    losses = []
    for seed in range(100):
        found = best_tau(*_answers(seed, 60, 0.0))
        losses.append(float(many[TAUS.index(0.0)] - many[TAUS.index(found.tau)]))
    assert sum(loss > 0 for loss in losses) < 10 and np.mean(losses) < 0.002


def test_a_head_with_a_shift_is_still_that_head():
    torch.manual_seed(0)
    head, shift, direct = LinearHead(4, 3).eval(), torch.tensor([1.0, 0.0, -2.0]), torch.randn(5, 4)
    before, names = head(direct), set(head.state_dict())
    shift_logits(head, shift)
    other = copy.deepcopy(head)
    for each in (head, other):
        assert torch.equal(each(direct).logits, before.logits + shift)
        assert torch.equal(each(direct).direct_feature, before.direct_feature)
    assert set(head.state_dict()) == names | {"shift"} and isinstance(head, LinearHead)


def small(**changes):
    return tiny_config("plain", (1,), backbone="test_resnet", **changes)


@pytest.mark.parametrize("chosen", [None, 0.75])
def test_the_run_keeps_what_was_chosen_on_its_validation_images(chosen, pack, tmp_path, capsys, monkeypatch):
    manifest = open_pack(pack).manifest
    plain = train_run(small(), manifest, tmp_path / "plain", CPU, str(pack))
    before = Outputs.load(tmp_path / "plain" / "outputs" / "val.safetensors")
    counts = torch.from_numpy(manifest.train_counts())
    wanted = best_tau(predicted(before.logits, counts), before.labels)
    if chosen is not None:  # so few images choose τ = 0
        wanted = dataclasses.replace(wanted, tau=chosen)
        monkeypatch.setattr(module, "best_tau", lambda *given: wanted)
    train_run(small(adjust="validation"), manifest, tmp_path / "run", CPU, str(pack))
    folder, run = RunFolder(tmp_path / "run"), TrainedRun(tmp_path / "run")
    assert folder.run()["adjustment"] == dataclasses.asdict(wanted) == run.report["adjustment"]
    assert f"post-hoc adjustment: {wanted}" in capsys.readouterr().err
    assert ("head.shift" in load_file(folder.model)) == bool(wanted.tau)
    expected = before.logits - wanted.tau * log_frequencies(counts)
    torch.testing.assert_close(run.outputs["val"].logits, expected, rtol=1e-4, atol=1e-4)
    assert "adjustment" not in plain and "adjustment" not in RunFolder(tmp_path / "plain").run()


def test_a_resumed_run_is_adjusted_alike(pack, tmp_path):
    manifest, folder = open_pack(pack).manifest, RunFolder(tmp_path / "run")
    config = small(adjust="fixed", adjust_tau=1.5)
    train_run(config, manifest, folder.path, CPU, str(pack))
    first = load_file(folder.model)
    folder.model.unlink()
    train_run(config, manifest, folder.path, dataclasses.replace(CPU, resume=True), str(pack))
    again = load_file(folder.model)
    assert first.keys() == again.keys() and all(torch.equal(first[name], again[name]) for name in first)
    counts = torch.from_numpy(manifest.train_counts()).float()
    torch.testing.assert_close(first["head.shift"], -1.5 * (counts.log() - counts.log().mean()))


def test_without_validation_images_there_is_none_and_that_is_said(pack, tmp_path, capsys):
    manifest = open_pack(pack).manifest
    table = manifest.table.assign(split=manifest.table["split"].replace("val", "test"))
    config = small(adjust="validation")
    train_run(config, dataclasses.replace(manifest, table=table), tmp_path / "run", CPU, str(pack))
    assert "no validation images to choose τ by: no post-hoc adjustment" in capsys.readouterr().err
    kept = RunFolder(tmp_path / "run").run()["adjustment"]
    assert (kept["tau"], kept["by"]) == (0, "none")
    assert "head.shift" not in load_file(tmp_path / "run" / "model.safetensors")
