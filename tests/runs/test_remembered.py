"""A run with a memory beside its classifier: saved, loaded, resumed, exported, and taught a class."""

import dataclasses

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors.torch import load_file

from oltr import Recognizer
from oltr.data.pack import open_pack
from oltr.methods import METHODS, remember
from oltr.methods.weigh_memory import Weighed
from oltr.runs.train_run import train_run
from oltr.runs.trained_run import TrainedRun
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from tests.helpers.pictures import picture
from tests.helpers.tiny import tiny_config

CPU = TrainOptions(accelerator="cpu")
OF_LOGITS, WEIGHT = 0.5, 6.0


def config(class_means="validation"):
    settings = METHODS["oltr2"].all_settings({"class_means": class_means})
    chosen = tiny_config("oltr2", (1,), backbone="test_resnet", settings=settings)
    return dataclasses.replace(chosen, stage2=None)


@pytest.fixture(scope="module")
def runs(pack, tmp_path_factory):
    """The same training without a memory and with one, whose weight so few images would leave at 0 or not."""
    folder, manifest = tmp_path_factory.mktemp("remembered"), open_pack(pack).manifest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remember, "weigh_memory", lambda *given: Weighed(OF_LOGITS, WEIGHT, 0.25, 0.125))
        for name in ("none", "validation"):
            train_run(config(class_means=name), manifest, folder / name, CPU, str(pack))
    return {name: folder / name for name in ("none", "validation")}


def test_the_logits_are_those_of_the_classifier_and_the_weighted_cosines(runs, pack):
    plain, run = TrainedRun(runs["none"]), TrainedRun(runs["validation"])
    memory, counts = run.network.head.added_memory, torch.from_numpy(open_pack(pack).manifest.train_counts())
    torch.testing.assert_close(
        memory.weights.cpu(), WEIGHT * (1 + remember.RARE / counts).sqrt(), check_dtype=False
    )
    for split in ("val", "test", "open"):
        before, after = plain.outputs[split], run.outputs[split]
        torch.testing.assert_close(after.features, before.features)
        expected = OF_LOGITS * before.logits + memory.cpu()(after.features)
        torch.testing.assert_close(after.logits, expected, rtol=1e-4, atol=1e-4)
    assert "memory" not in str(plain.facts.get("remark"))
    assert run.facts["remark"] == (
        "class means beside the classifier: 0.5 · logits + 6 · cosines "
        "(log-likelihood of validation images +0.250 ± 0.125)"
    )


def test_a_run_resumed_before_the_end_remembers_the_same(runs, pack, tmp_path, monkeypatch):
    monkeypatch.setattr(remember, "weigh_memory", lambda *given: Weighed(OF_LOGITS, WEIGHT, 0.25, 0.125))
    folder, manifest = RunFolder(tmp_path / "run"), open_pack(pack).manifest
    train_run(config(), manifest, folder.path, CPU, str(pack))
    first = load_file(folder.model)
    assert first.keys() == load_file(RunFolder(runs["validation"]).model).keys()
    folder.model.unlink()
    train_run(config(), manifest, folder.path, dataclasses.replace(CPU, resume=True), str(pack))
    again = load_file(folder.model)
    assert "head.added_memory.weights" in first and first.keys() == again.keys()
    torch.testing.assert_close(again, first, rtol=1e-3, atol=1e-4)  # features are those of another layout


def test_the_exported_file_remembers(runs, tmp_path):
    recogniser = Recognizer.load(runs["validation"])
    recogniser.export(tmp_path / "run.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "run.onnx")
    given = np.stack([picture(str(number), 32) for number in range(4)])
    (found,) = session.run(["probabilities"], {"pixels": given})
    wanted = recogniser.predict(list(given))
    np.testing.assert_allclose(found.max(axis=1), wanted["probability"], rtol=1e-4)
    assert [recogniser.classes_[at] for at in found.argmax(axis=1)] == wanted["label"].tolist()


def test_a_class_is_added_beside_it(runs):
    recogniser = Recognizer.load(runs["validation"])
    new = [np.clip(picture("new", 32).astype(int) + number, 0, 255).astype(np.uint8) for number in range(4)]
    recogniser.add_class("new", new[:3])
    assert recogniser.predict(new[3:])["label"].tolist() == ["new"]
    recogniser.undo()


def test_without_validation_images_there_is_none_and_that_is_said(pack, tmp_path, capsys):
    manifest = open_pack(pack).manifest
    table = manifest.table.assign(split=manifest.table["split"].replace("val", "test"))
    train_run(config(), dataclasses.replace(manifest, table=table), tmp_path / "run", CPU, str(pack))
    said = " ".join(capsys.readouterr().err.split())
    assert "no memory beside the classifier: there are no validation images" in said
    assert "head.added_memory.weights" not in load_file(tmp_path / "run" / "model.safetensors")
