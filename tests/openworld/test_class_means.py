"""Classes added beside a memory of class means: their means join it, in the network and for kept outputs."""

import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from oltr import Recognizer, TrainedRun
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.nn.extended_head import centred_unit
from oltr.nn.memory_head import ClassMeans, MemoryHead
from oltr.runs.class_changes import AddedClass, ClassChanges
from oltr.runs.train_run import train_run
from oltr.training.configure import configure
from oltr.training.options import TrainOptions

SIZE = 64


def picture(colour, seed):
    noise = np.random.default_rng(seed).normal(0, 30, (SIZE, SIZE, 3))
    return Image.fromarray((np.array(colour) + noise).clip(0, 255).astype(np.uint8))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("means")
    for name, colour in (("red", (200, 40, 40)), ("green", (40, 200, 40)), ("blue", (40, 40, 200))):
        (folder / "photos" / name).mkdir(parents=True)
        for number in range(10):
            picture(colour, number).save(folder / "photos" / name / f"{number}.png")
    config = configure("photos-frozen", "oltr2", image_size=SIZE, changes=["precision=float32"])
    source = read_source(folder / "photos")
    train_run(config, source, folder / "run", TrainOptions(accelerator="cpu"), str(folder / "photos"))
    return folder / "run"


def test_the_mean_of_the_new_images_joins_the_memory(trained):
    recogniser = Recognizer.load(trained)
    before = TrainedRun(trained).as_trained
    yellow = [picture((200, 200, 40), seed) for seed in range(100, 103)]
    recogniser.add_class("yellow", yellow)
    run = TrainedRun(trained)
    (added,), memory = run.changes.added, before.network.head.class_means
    features = run.outputs["val"].features
    seen, mean = memory.seen(features), memory.seen(torch.tensor(added.features)).mean(dim=0)
    row = centred_unit(features, run.exemplars.centre) @ torch.tensor(added.weight) + added.bias
    expected = row + memory.scale * F.cosine_similarity(seen, mean[None])
    logits = run.network.head(features).logits
    torch.testing.assert_close(logits[:, 3], expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(logits[:, :3], before.network.head(features).logits)
    torch.testing.assert_close(run.outputs["val"].logits, logits, rtol=1e-4, atol=1e-4)
    new = Recognizer.load(trained).predict([picture((200, 200, 40), seed) for seed in range(200, 206)])
    assert (new["label"] == "yellow").all()
    recogniser.undo()


def test_more_images_of_a_trained_class_move_its_mean(trained):
    run = TrainedRun(trained)
    memory = run.as_trained.network.head.class_means
    features = run.exemplars.features[:2]
    changes = run.changes
    again = changes.with_images("green", features.numpy())
    assert again.trained == list(changes.trained).index("green")
    counts = np.array([5, 3, 7])
    changed = ClassChanges(changes.trained, (0, 2), ("blue", "red"), (again,))
    found = changed.class_means(run.as_trained.network.head, counts)
    before = memory.means[again.trained]
    count = counts[again.trained]
    expected = (count * before + memory.seen(features).sum(dim=0)) / (count + 2)
    torch.testing.assert_close(found.means[0], expected)
    more = changed.with_images("green", features.numpy())
    assert len(more.features) == 4 and more.trained == again.trained


def test_a_head_without_means_has_none():
    added = AddedClass("lynx", np.zeros(4, np.float32), 0.0, np.ones((2, 4), np.float32))
    changes = ClassChanges(("a",), (0,), ("a",), (added,))
    assert changes.class_means(torch.nn.Linear(4, 1), np.array([3])) is None
    assert changes.class_means(MemoryHead(4, 1), np.array([3])).means.shape == (1, 4)


def test_other_classes_share_the_whitening():
    memory = ClassMeans(3, 4, 20.0)
    others = memory.of_others([torch.ones(4)])
    assert others.whitening.data_ptr() == memory.whitening.data_ptr()
    assert others(torch.ones(2, 4)).shape == (2, 1) and memory.of_others([])(torch.ones(2, 4)).shape == (2, 0)


def test_kept_outputs_are_not_taken_for_those_of_added_classes_without_the_means(trained, tmp_path):
    copy = shutil.copytree(trained, tmp_path / "run")
    assert TrainedRun(copy).outputs["val"].logits.shape[1] == 3
    Recognizer.load(copy).add_class("yellow", [picture((200, 200, 40), seed) for seed in range(100, 103)])
    (copy / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"model\.safetensors"):
        TrainedRun(copy).outputs["val"]


def test_the_network_of_now_shares_the_whitening_and_a_weight_of_zero_is_no_memory(trained, tmp_path):
    copy = shutil.copytree(trained, tmp_path / "run")
    Recognizer.load(copy).add_class("yellow", [picture((200, 200, 40), seed) for seed in range(100, 103)])
    run = TrainedRun(copy)
    head = run.network.head
    assert head.rows.class_means.whitening.data_ptr() == head.head.class_means.whitening.data_ptr()
    head.head.class_means.scale = 0.0
    assert run.class_means(run.changes) is None
