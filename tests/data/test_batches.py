from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from oltr.config import DataConfig, StageConfig
from oltr.data import batches as feed
from oltr.data import image_access as opened
from oltr.data.augment import Augment, draw_views, draws_per_view
from oltr.data.batches import EvalBatches, TrainBatches, batch_size
from oltr.data.image_access import Images, open_images
from oltr.data.images import UnreadableImage, read_image
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack, write_pack
from oltr.errors import UserError
from oltr.samplers import generator
from tests.helpers.pictures import write_picture

CPU = torch.device("cpu")
STILL = DataConfig(
    image_size=8, stored_size=8, crop="random", flip=False, jitter=0.0, mean=(0.0,) * 3, std=(1.0,) * 3
)
MOVED = DataConfig(image_size=6, stored_size=8, crop="resized")


def source(folder, number=23):
    """23 training images of three classes, 5 to test and 4 open ones, in mixed order."""
    rows = [(f"train/{i}.png", "abc"[i % 3], "train") for i in range(number)]
    rows += [(f"test/{i}.png", "abc"[i % 3], "test") for i in range(5)]
    rows += [(f"open/{i}.png", "", "open") for i in range(4)]
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    for path, _, _ in rows:
        write_picture(folder / path)
    return Manifest.build(pd.DataFrame(rows, columns=["path", "label", "split"]), folder)


def as_files(manifest, split, size=8):
    return Images(size, manifest.labels(split), files=manifest.paths(split))


@pytest.fixture
def manifest(tmp_path):
    return source(tmp_path / "bilder ä")


def share_between(monkeypatch, rank, world):
    monkeypatch.setattr(feed, "rank", lambda: rank)
    monkeypatch.setattr(feed, "world_size", lambda: world)


def views_of(images, stage, key, workers=0):
    """An epoch's (views, labels), augmented."""
    batches = TrainBatches(images, stage, key, CPU, workers)
    return [(Augment(MOVED).train(pixels, draws), labels) for pixels, draws, labels in batches]


def labelled_files(manifest, split):
    """(pixels, label) of every image, decoded one by one."""
    return [
        (read_image(path, 8), label)
        for path, label in zip(manifest.paths(split), manifest.labels(split).tolist(), strict=True)
    ]


def number_of(view, known):
    """Which of the known images a view without augmentation shows."""
    pixels = (view * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()
    (number,) = [i for i, (image, _) in enumerate(known) if np.array_equal(image, pixels)]
    return number


def homes(manifest, tmp_path):
    """The same images in memory, in a pack and as files."""
    packed = open_pack(write_pack(manifest, 8, tmp_path / "x.pack")).manifest
    return {
        "memory": open_images(manifest, ["train", "test", "open"], 8, 8, CPU),
        "a memory-mapped pack": open_images(packed, ["train", "test", "open"], 8, 8, CPU),
        "files": {split: as_files(manifest, split) for split in ("train", "test", "open")},
    }


def test_images_are_the_same_wherever_they_lie(manifest, tmp_path):
    for home, images in homes(manifest, tmp_path).items():
        for split in ("train", "test", "open"):
            known = labelled_files(manifest, split)
            assert images[split].home == home and len(images[split]) == len(known)
            order = [np.array([2, 0, 3]), np.array([1])]
            for indices, pixels in zip(order, images[split].batches(order, CPU, 0), strict=True):
                assert pixels.dtype == torch.uint8
                assert np.array_equal(pixels.permute(0, 2, 3, 1).numpy(), [known[i][0] for i in indices])
            assert images[split].labels.tolist() == [label for _, label in known]
    assert set(images["open"].labels) == {-1}


def test_too_many_images_for_memory_stay_files(manifest, monkeypatch):
    monkeypatch.setattr(opened, "KEPT_IN_MEMORY", 32 * 8 * 8 * 3 - 1)
    assert open_images(manifest, ["train", "test", "open"], 8, 8, CPU)["train"].home == "files"
    monkeypatch.setattr(opened, "KEPT_IN_MEMORY", 32 * 8 * 8 * 3)
    assert open_images(manifest, ["train", "test", "open"], 8, 8, CPU)["train"].home == "memory"


@pytest.mark.parametrize("sampler", ["shuffle", "class-aware", "balanced"])
def test_labels_belong_to_their_images(sampler, manifest):
    images = open_images(manifest, ["train"], 8, 8, CPU)["train"]
    known = labelled_files(manifest, "train")
    batches = TrainBatches(images, StageConfig(batch_size=5, sampler=sampler), (0, 1, 2), CPU, 0)
    seen = []
    for pixels, draws, labels in batches:
        views = Augment(STILL).train(pixels, draws)
        assert views.shape == (5, 3, 8, 8) and labels.shape == (5,)
        for view, label in zip(views, labels.tolist(), strict=True):
            number = number_of(view, known)
            assert known[number][1] == label
            seen.append(number)
    assert len(batches) == 23 // 5 and len(seen) == 20
    assert seen == batches.order().tolist()
    if sampler == "shuffle":
        assert len(set(seen)) == 20


def test_an_epoch_depends_on_its_key_alone(manifest):
    images = open_images(manifest, ["train"], 8, 8, CPU)["train"]

    def epoch(*key):
        return torch.cat([views for views, _ in views_of(images, StageConfig(batch_size=5), key)])

    assert torch.equal(epoch(0, 1, 2), epoch(0, 1, 2))
    for other in [(1, 1, 2), (0, 2, 2), (0, 1, 3)]:
        assert not torch.equal(epoch(0, 1, 2), epoch(*other))


def test_views_are_drawn_from_key_and_step(manifest):
    images = open_images(manifest, ["train"], 8, 8, CPU)["train"]
    batches = TrainBatches(images, StageConfig(batch_size=5), (7, 1, 0), CPU, 0)
    order = batches.order()
    for step, batch in enumerate(batches):
        (pixels,) = images.batches([order[5 * step : 5 * step + 5]], CPU, 0)
        assert torch.equal(batch.pixels, pixels)
        assert torch.equal(batch.draws, draw_views(generator(7, 1, 0, step), 5))


def test_views_with_strong_augmentation_have_more_draws(manifest):
    images, strong = open_images(manifest, ["train"], 8, 8, CPU)["train"], replace(STILL, colour=0.5)
    plain, longer = (
        list(TrainBatches(images, StageConfig(batch_size=5), (7, 1, 0), CPU, 0, data))
        for data in (None, strong)
    )
    for step, (batch, other) in enumerate(zip(plain, longer, strict=True)):
        assert torch.equal(other.draws, draw_views(generator(7, 1, 0, step), 5, draws_per_view(strong)))
        assert torch.equal(other.draws[:, :34], batch.draws) and torch.equal(other.pixels, batch.pixels)
        assert Augment(strong).train(other.pixels, other.draws).shape == (5, 3, 8, 8)


@pytest.mark.parametrize("sampler", ["shuffle", "class-aware"])
def test_the_parts_of_two_processes_make_up_the_batch_of_one(sampler, manifest, monkeypatch):
    images = open_images(manifest, ["train"], 8, 8, CPU)["train"]
    stage = StageConfig(batch_size=6, sampler=sampler, images_per_class=2)

    def epoch():
        return views_of(images, stage, (0, 2, 1))

    whole = epoch()
    parts = []
    for rank in range(2):
        share_between(monkeypatch, rank, 2)
        parts.append(epoch())
    assert len(whole) == len(parts[0]) == len(parts[1]) == 3
    for (views, labels), first, second in zip(whole, *parts, strict=True):
        assert torch.equal(torch.cat([first[0], second[0]]), views)
        assert torch.equal(torch.cat([first[1], second[1]]), labels)


def test_the_batch_is_a_multiple_of_the_processes_and_not_larger_than_the_set(monkeypatch):
    assert batch_size(StageConfig(batch_size=128), 50) == 50
    assert batch_size(StageConfig(batch_size=32), 50) == 32
    share_between(monkeypatch, 0, 3)
    assert batch_size(StageConfig(batch_size=128), 50) == 48
    assert batch_size(StageConfig(batch_size=32), 50) == 30
    with pytest.raises(UserError, match="2 training images are too few for 3 processes"):
        batch_size(StageConfig(), 2)


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 4, 100])
def test_evaluation_shows_each_image_once(size, world, manifest, monkeypatch):
    images, known = open_images(manifest, ["train"], 8, 8, CPU)["train"], labelled_files(manifest, "train")
    seen = []
    for rank in range(world):
        share_between(monkeypatch, rank, world)
        batches = EvalBatches(images, Augment(STILL), size, CPU, 0)
        own, sizes = [], []
        for views, labels in batches:
            sizes.append(len(views))
            for view, label in zip(views, labels.tolist(), strict=True):
                own.append(number_of(view, known))
                assert known[own[-1]][1] == label
        assert own == list(range(rank, 23, world))
        assert len(sizes) == len(batches) and max(sizes) <= size
        seen += own
    assert sorted(seen) == list(range(23))


@pytest.mark.parametrize("limit", [1, 2, 7, 22, 23, 24, 1000])
def test_a_limit_spreads_evenly_over_the_images_and_shows_none_twice(limit, manifest):
    images = as_files(manifest, "train")
    indices = EvalBatches(images, Augment(STILL), 4, CPU, 0, limit=limit).indices.tolist()
    assert len(indices) == min(limit, 23) == len(set(indices))
    assert indices == sorted(indices)
    gaps = np.diff(indices)
    assert limit == 1 or (indices[0], indices[-1]) == (0, 22)
    assert len(gaps) == 0 or gaps.max() - gaps.min() <= 1


@pytest.mark.parametrize("workers", [0, 2])
def test_files_give_the_batches_of_memory(workers, manifest):
    inside, outside = open_images(manifest, ["train"], 8, 8, CPU)["train"], as_files(manifest, "train")
    stage = StageConfig(batch_size=5, sampler="class-aware", images_per_class=2)
    before = torch.random.get_rng_state()
    epochs = [
        views_of(images, stage, (3, 2, 1), number) for images, number in ((inside, 0), (outside, workers))
    ]
    for (views, labels), (others, other_labels) in zip(*epochs, strict=True):
        assert torch.equal(views, others) and torch.equal(labels, other_labels)
    evaluations = [
        torch.cat([views for views, _ in EvalBatches(images, Augment(MOVED), 4, CPU, number)])
        for images, number in ((inside, 0), (outside, workers))
    ]
    assert torch.equal(*evaluations)
    # Reading leaves the global generator alone: dropout must not depend on where the images lie.
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_image_that_breaks_during_training_is_one_clear_message(workers, manifest):
    images = as_files(manifest, "train")
    images.files[3].write_bytes(b"broken")
    with pytest.raises(UnreadableImage, match=r"cannot be read: it is not an image") as caught:
        list(EvalBatches(images, Augment(STILL), 4, CPU, workers))
    assert caught.value.path == images.files[3]
    assert "Traceback" not in str(caught.value)


def test_a_pack_smaller_than_the_network_needs_is_refused(manifest, tmp_path):
    packed = open_pack(write_pack(manifest, 8, tmp_path / "small.pack")).manifest
    assert open_images(packed, ["train"], 8, 8, CPU)["train"].size == 8
    with pytest.raises(UserError, match=r"small\.pack holds images of 8 px, but 16 px are needed"):
        open_images(packed, ["train"], 18, 16, CPU)


def test_images_stored_smaller_than_the_network_needs_are_refused(manifest):
    with pytest.raises(UserError, match="kept at 8 px, but 16 px are needed"):
        open_images(manifest, ["train"], 8, 16, CPU)


def test_a_larger_pack_is_seen_whole_at_the_size_asked_for(tmp_path):
    across, down = np.meshgrid(np.arange(48), np.arange(48))
    smooth = np.stack([5 * across, 5 * down, 2 * (across + down)], axis=2).astype(np.uint8)
    Image.fromarray(smooth).save(tmp_path / "smooth.png")
    rows = [("smooth.png", "a", "train")]
    manifest = Manifest.build(pd.DataFrame(rows, columns=["path", "label", "split"]), tmp_path)
    packed = open_pack(write_pack(manifest, 24, tmp_path / "large.pack")).manifest
    images = open_images(packed, ["train"], 16, 8, CPU)["train"]
    assert images.size == 16
    (batch,) = images.batches([np.array([0])], CPU, workers=0)
    decoded = read_image(tmp_path / "smooth.png", 16).transpose(2, 0, 1).astype(int)
    assert batch.dtype == torch.uint8 and abs(batch[0].numpy().astype(int) - decoded).max() <= 2


def test_unreadable_files_are_told_all_at_once_when_they_are_read_into_memory(manifest):
    for number in (1, 2):
        manifest.paths("train")[number].write_bytes(b"")
    with pytest.raises(UserError, match="2 of 23 images cannot be read"):
        open_images(manifest, ["train"], 8, 8, CPU)
