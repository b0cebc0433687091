"""The rates of the input: measured wherever the images lie, in no time, and without a trace."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
import torch

from oltr.console import Console
from oltr.data.augment import Augment
from oltr.data.image_access import Images, open_images
from oltr.data.images import read_image
from oltr.data.pack import open_pack
from oltr.training import fit as fitting
from oltr.training.fit import fit
from oltr.training.input_rate import InputRate, input_rate
from oltr.training.options import FitOptions
from tests.helpers.pictures import write_picture
from tests.helpers.tiny import tiny_config

CPU = torch.device("cpu")


def images_in(home, pack, folder, read=read_image):
    if home == "pack":
        return open_images(open_pack(pack).manifest, ["train"], 32, 32, CPU)["train"]
    files = [write_picture(folder / f"{number}.png", 32) for number in range(20)]
    if home == "files":
        return Images(32, np.zeros(20, dtype=np.int64), files=files, read=read)
    pixels = torch.zeros((20, 32, 32, 3), dtype=torch.uint8)
    return Images(32, np.zeros(20, dtype=np.int64), np.arange(20), pixels, home="memory")


def states():
    return torch.random.get_rng_state().tolist(), str(np.random.get_state()), random.getstate()


@pytest.mark.parametrize("home", ["pack", "memory", "files"])
def test_rates_are_measured_and_no_random_state_moves(home, pack, tmp_path):
    images, augment = images_in(home, pack, tmp_path), Augment(tiny_config().data)
    before = states()
    rate = input_rate(images, augment, 8, CPU, workers=2)
    assert rate.read > 0 and rate.augmented > 0
    assert states() == before


def test_slow_files_do_not_hold_up_training(pack, tmp_path):
    asked = []

    def slowly(path, size):
        asked.append(path)
        time.sleep(0.1)
        return read_image(path, size)

    images = images_in("files", pack, tmp_path, slowly)
    rate = input_rate(images, Augment(tiny_config().data), 8, CPU, workers=0)
    assert len(asked) == 2  # once to warm up
    assert 0 < rate.read <= 10


def test_every_worker_counts(pack, tmp_path, monkeypatch):
    def slowly(path, size):
        time.sleep(0.1)
        return np.zeros((32, 32, 3))

    monkeypatch.setattr("os.cpu_count", lambda: 4)
    images, augment = images_in("files", pack, tmp_path, slowly), Augment(tiny_config().data)
    one, three, many = (input_rate(images, augment, 8, CPU, workers).read for workers in (1, 3, 9))
    assert three == pytest.approx(3 * one, rel=0.3) and many == pytest.approx(4 * one, rel=0.3)


def test_the_words():
    words = InputRate(read=1_912_345.6, augmented=87.4).words()
    assert words == "1,900,000 images/s read, 87 images/s augmented"


def test_training_says_its_input(pack, tmp_path, capsys):
    on_cpu = FitOptions(accelerator="cpu")
    fit(tiny_config(epochs=(1, 1)), open_pack(pack).manifest, tmp_path / "run", Console(), on_cpu)
    said = capsys.readouterr().err
    assert "images from a memory-mapped pack: " in said
    assert "images/s read, " in said and "images/s augmented; training on " in said


def test_a_quiet_run_measures_nothing(pack, tmp_path, monkeypatch):
    monkeypatch.delattr(fitting, "input_rate")
    quiet = Console(quiet=True)
    fit(tiny_config(epochs=(1, 1)), open_pack(pack).manifest, tmp_path / "run", quiet, FitOptions())
