"""Bursts: which images belong together, and that they get the answer to the mean of their outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from oltr.data.pack import open_pack
from oltr.data.photo_time import exif_time, photo_time
from oltr.runs.named_images import named_images
from oltr.runs.outputs import Outputs
from oltr.runs.predict import PLAIN
from oltr.runs.predictions import judge
from oltr.runs.predictions.bursts import Bursts, by_sequence, by_time, mean_outputs, whole_bursts
from oltr.runs.train_run import train_run
from oltr.runs.trained_run import TrainedRun
from oltr.training.options import TrainOptions
from tests.helpers.pictures import picture
from tests.helpers.tiny import tiny_config


def photo(path: Path, time: str = "", fraction: str = "", offset: str = "") -> Path:
    exif = Image.Exif()
    for tag, value in ((0x9003, time), (0x9291, fraction), (0x9011, offset)):
        if value:
            exif.get_ifd(0x8769)[tag] = value
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture(path.name, 16)).save(path, exif=exif)
    return path


@pytest.fixture(scope="module")
def run(pack, tmp_path_factory) -> TrainedRun:
    folder = tmp_path_factory.mktemp("runs") / "run"
    options = TrainOptions(accelerator="cpu")
    train_run(tiny_config("oltr", epochs=(1, 1)), open_pack(pack).manifest, folder, options, str(pack))
    return TrainedRun(folder)


def test_times_of_photos(tmp_path):
    whole = exif_time(photo(tmp_path / "a.jpg", "2024:05:01 10:00:00", "25", "+02:00"))
    assert whole.moment.isoformat() == "2024-05-01T10:00:00.250000+02:00" and whole.zone_known
    assert whole.text == "2024-05-01T10:00:00+02:00"
    plain = photo_time(photo(tmp_path / "b.jpg", "2024:05:01 10:00:00"))
    assert plain.text == "2024-05-01T10:00:00Z" and not plain.zone_known and not plain.of_file
    for odd in ("0000:00:00 00:00:00", "yesterday", ""):
        file = photo(tmp_path / "c.jpg", odd)
        assert exif_time(file) is None and photo_time(file).of_file
    (tmp_path / "d.jpg").write_text("no picture")
    assert exif_time(tmp_path / "d.jpg") is None and photo_time(tmp_path / "gone.jpg") is None


def test_bursts_by_time(tmp_path, capsys):
    photo(tmp_path / "n" / "3.jpg", "2024:05:01 10:00:00")
    photo(tmp_path / "n" / "1.jpg", "2024:05:01 10:00:01", "5")
    photo(tmp_path / "n" / "2.jpg", "2024:05:01 10:00:03", "6")  # 2.1 seconds later
    photo(tmp_path / "s" / "1.jpg", "2024:05:01 10:00:00")  # another camera
    photo(tmp_path / "n" / "0.jpg")
    bursts = by_time(named_images([tmp_path]), 2.0)
    names = [str(Path(path).relative_to(tmp_path)) for path in bursts.images.paths]
    assert names == ["n/0.jpg", "n/3.jpg", "n/1.jpg", "n/2.jpg", "s/1.jpg"]
    assert bursts.numbers.tolist() == [0, 1, 1, 2, 3]
    assert bursts.names[2] == str(tmp_path / "n" / "3.jpg")
    assert "1 image without a time" in capsys.readouterr().err
    assert by_time(named_images([tmp_path]), 2.1).numbers.tolist() == [0, 1, 1, 1, 2]


def test_bursts_by_a_column(tmp_path):
    table = pd.DataFrame({"path": list("abcdef"), "event": ["x", "y", "x", "", "y", ""]})
    table.to_csv(tmp_path / "list.csv", index=False)
    bursts = by_sequence(named_images([tmp_path / "list.csv"]), "event")
    assert [Path(path).name for path in bursts.images.paths] == ["a", "c", "b", "e", "d", "f"]
    assert bursts.numbers.tolist() == [0, 0, 1, 1, 2, 3] and bursts.names == ["x", "x", "y", "y", "", ""]


def test_parts_hold_whole_bursts():
    rng = np.random.default_rng(0)
    for _ in range(200):
        lengths = rng.integers(1, 9, rng.integers(1, 12))
        numbers = np.repeat(np.arange(len(lengths)), lengths)
        bursts = Bursts(None, numbers, [])
        parts = whole_bursts(bursts, 6)
        assert [at for part in parts for at in range(*part)] == list(range(len(numbers)))
        for first, end in parts:
            assert first == 0 or numbers[first] != numbers[first - 1]
            assert end - first <= 6 or len(set(numbers[first:end])) == 1
            assert whole_bursts(bursts, 6, first)[0] == (first, end)  # wherever one goes on


def test_means_by_a_loop():
    outputs = Outputs(torch.randn(5, 3), torch.full((5,), -1), torch.randn(5, 2), reachability=torch.rand(5))
    means = mean_outputs(outputs, torch.tensor([0, 2, 0, 2, 2]), 3)
    assert torch.allclose(means.logits[0], (outputs.logits[0] + outputs.logits[2]) / 2)
    assert torch.allclose(means.features[2], outputs.features[[1, 3, 4]].mean(0))
    assert float(means.reachability[2]) == pytest.approx(float(outputs.reachability[[1, 3, 4]].mean()))


def test_each_image_has_the_answer_of_its_burst(run, tmp_path, monkeypatch):
    files = [photo(tmp_path / f"{number}.png") for number in range(7)]
    (tmp_path / "4.png").write_text("no picture")
    events = ["a", "b", "a", "b", "b", "b", "c"]
    pd.DataFrame({"path": files, "event": events}).to_csv(tmp_path / "list.csv", index=False)
    bursts = by_sequence(named_images([tmp_path / "list.csv"]), "event")
    singles = {row["path"]: row for rows in judge.judged(run, bursts.images, PLAIN) for row in rows}
    for at_a_time in (1, 2, 100):
        rows = [row for rows in judge.judged(run, bursts.images, PLAIN, bursts, at_a_time) for row in rows]
        assert [row["path"] for row in rows] == bursts.images.paths
        assert [row["sequence"] for row in rows] == ["a", "a", "b", "b", "b", "b", "c"]
        by_name = {Path(row["path"]).name: row for row in rows}
        assert "not an image" in by_name["4.png"]["error"] and "label" not in by_name["4.png"]
        for event in "abc":
            members = [row for row in rows if row["sequence"] == event and not row["error"]]
            logits, reach = _outputs_of(run, [row["path"] for row in members])
            shares = logits.mean(0).softmax(0)
            for row in members:
                assert row["label"] == run.class_names[int(shares.argmax())]
                assert row["probability"] == pytest.approx(float(shares.max()), rel=1e-3)
                assert row["reachability"] == pytest.approx(float(reach.mean()), rel=1e-3)
        (last,) = [row for row in rows if row["sequence"] == "c"]
        assert last["probability"] == pytest.approx(singles[last["path"]]["probability"], rel=1e-4)


def _outputs_of(run, paths):
    from oltr.runs.given_images import decoded
    from oltr.runs.predict import outputs_of

    ((_, (outputs,)),) = outputs_of(run, decoded(paths, run.config.data.frame))
    return outputs.logits, outputs.reachability


def test_going_on_gives_the_same_digits(run, images_of, tmp_path):
    images = named_images([images_of])
    whole = list(judge.judged(run, images, PLAIN, None, 4))
    assert list(judge.judged(run, images, PLAIN, None, 4, 8)) == whole[2:]


@pytest.fixture
def images_of(tmp_path):
    for number in range(14):
        photo(tmp_path / "many" / f"{number}.png")
    return tmp_path / "many"


def test_an_output_that_is_not_finite_spoils_no_burst(run, tmp_path, monkeypatch):
    files = [photo(tmp_path / f"{number}.png") for number in range(3)]
    pd.DataFrame({"path": files, "event": "a"}).to_csv(tmp_path / "list.csv", index=False)
    bursts = by_sequence(named_images([tmp_path / "list.csv"]), "event")
    forward = run.network.forward

    def one_nan(views):
        output = forward(views)
        output.logits[1] = torch.nan
        return output

    monkeypatch.setattr(run.network, "forward", one_nan)
    (rows,) = judge.judged(run, bursts.images, PLAIN, bursts)
    assert [bool(row["error"]) for row in rows] == [False, True, False]
    assert rows[0]["label"] == rows[2]["label"] and rows[0]["probability"] == rows[2]["probability"]
