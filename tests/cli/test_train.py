"""`oltr train` on every form of source, with every kind of image; what it says, and where."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from oltr.runs.trained_run import TrainedRun
from tests.cli.conftest import QUICK
from tests.helpers.pictures import class_folders, picture, write_picture
from tests.helpers.training import stop_at

LOGGED = ("loss", "overall", "open_f")


def test_a_flat_folder(oltr, photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = oltr("train", photos, *QUICK)
    assert said.code == 0
    assert "overall" in said.out and "Split made for you" not in said.out
    for note in (
        "Split made for you",
        "unknown/ is the open split",
        "stage 1: 1 epoch of",
        "run folder: runs/my photos",
        "a page of it: oltr report 'runs/my photos ñ-oltr'",
    ):
        assert note in said.err
    report = json.loads((tmp_path / "runs" / "my photos ñ-oltr" / "report.json").read_text())
    assert {row["name"] for row in report["per_class"]} == {"cat", "dög", "雪 豹"} and "open" in report
    assert not list(tmp_path.rglob("*.part"))


def forms(folder):
    """The same twelve images as each kind of source."""
    rows = []
    for split, number in (("train", 3), ("val", 1), ("test", 2)):
        class_folders(folder / "split" / split, {"0": number, "1": number}, size=16)
        rows += [(f"{split}/{name}/{i}.png", name, split) for name in "01" for i in range(number)]
    table = pd.DataFrame(rows, columns=["path", "label", "split"])
    table.to_csv(folder / "split" / "a.csv", index=False)
    table.assign(root=str(folder / "split")).to_parquet(folder / "b.parquet", index=False)
    (folder / "lists").mkdir()
    for split, part in table.groupby("split"):
        lines = [f"{path} {label}" for path, label in zip(part["path"], part["label"], strict=True)]
        (folder / "lists" / f"My_{split}.txt").write_text("\n".join(lines))
    return {
        "folders": [folder / "split"],
        "csv": [folder / "split" / "a.csv"],
        "parquet": [folder / "b.parquet"],
        "lists": [folder / "lists", "--root", folder / "split"],
    }


def test_every_form_of_source_gives_the_same_run(oltr, tmp_path):
    reports = {}
    for form, words in forms(tmp_path).items():
        said = oltr("train", *words, *QUICK, "--out", tmp_path / "runs" / form, "--json")
        assert said.code == 0, said.err
        reports[form] = json.loads(said.out)
        reports[form].pop("train_seconds")
    assert all(report == reports["folders"] for report in reports.values())


def test_dry_run_says_what_would_be_done(oltr, pack, tmp_path):
    command = ("train", pack, *QUICK, "--out", tmp_path / "run", "--dry-run")
    said = oltr(*command)
    assert said.code == 0 and "backbone: test_resnet" in said.out and "6 classes" in said.out
    plan = json.loads(oltr(*command, "--json").out)
    assert plan["config"]["stage1"]["batch_size"] == 8 and plan["data"]["images"]["train"] == 64
    assert not (tmp_path / "run").exists()


def odd_images(folder):
    """Every kind of image that cameras, scanners and the web come up with."""
    pixels = Image.fromarray(picture("odd", 24))
    turned = Image.Exif()
    turned[0x0112] = 6
    (folder / "odd").mkdir()
    grey = np.asarray(pixels)[..., 0]
    Image.fromarray(grey.astype(np.uint16) * 257).save(folder / "odd" / "16bit.png")
    pixels.convert("CMYK").save(folder / "odd" / "cmyk.jpg")
    pixels.convert("P").save(folder / "odd" / "palette.png")
    pixels.save(folder / "odd" / "animated.gif", save_all=True, append_images=[pixels.rotate(90)])
    pixels.save(folder / "odd" / "rotated.jpg", exif=turned)
    pixels.convert("RGBA").save(folder / "odd" / "clear.webp")
    pixels.crop((0, 0, 1, 1)).save(folder / "odd" / "pixel.bmp")
    return folder


def test_odd_images_train(oltr, tmp_path):
    source = odd_images(class_folders(tmp_path / "photos", {"even": 6}, size=24))
    said = oltr("train", source, *QUICK, "--out", tmp_path / "run")
    assert said.code == 0 and "2 classes" in said.out, said.err
    assert oltr("data", "check", source).code == 0


def test_thin_and_empty_classes_are_warned_about(oltr, tmp_path):
    source = class_folders(tmp_path / "photos", {"cat": 6, "dog": 6, "lynx": 1, "bear": 0}, size=16)
    write_picture(source / "loose.png")
    said = oltr("train", source, *QUICK, "--out", tmp_path / "run")
    assert said.code == 0
    assert "warning: 1 class has a single training image: lynx." in said.err
    assert "warning: Empty: 1 class folder, bear." in said.err
    assert "warning: Ignored: 1 image outside any class folder." in said.err


def test_without_test_images_the_model_is_still_kept(oltr, tmp_path):
    source = class_folders(tmp_path / "photos" / "train", {"a": 4, "b": 4}, size=16).parent
    said = oltr("train", source, *QUICK, "--out", tmp_path / "run")
    assert said.code == 0 and said.out == "" and "no test images" in said.err
    assert (tmp_path / "run" / "model.safetensors").is_file() and not (
        tmp_path / "run" / "report.json"
    ).exists()


def test_stage_one_taken_over(oltr, pack, trained, tmp_path):
    command = ("train", pack, *QUICK, "--out", tmp_path / "run", "--stage1-from", trained["plain"])
    said = oltr(*command)
    assert said.code == 0 and "stage 1:" not in said.err and "stage 2:" in said.err
    shutil.rmtree(tmp_path / "run")
    for flags, told in [
        ("--seed 1", "  seed: 0 → 1\n"),
        ("--epochs 3 1", "  stage1.epochs: 1 → 3\n"),
        ("--method balanced-softmax", "  the method's first stage: plain → balanced-softmax\n"),
    ]:
        oltr(*command, *flags.split()).refused("cannot be shared", told, "or no --stage1-from")
        assert not (tmp_path / "run").exists()


def test_a_teacher(oltr, pack, trained, tmp_path):
    words = ("train", pack, *QUICK, "--method", "plain", "--out", tmp_path / "run")
    said = oltr(*words, "--teacher", trained["oltr"], "--dry-run", "--json")
    assert json.loads(said.out)["config"]["distill"]["teacher"] == str(trained["oltr"])
    assert json.loads(said.out)["checked"][-1] == f"the teacher {trained['oltr']}"
    said = oltr(*words, "--teacher", trained["oltr"], "--set", "distill.share=0.25")
    assert said.code == 0 and f"teacher {trained['oltr']} (share 0.25, temperature 2)" in said.err
    assert TrainedRun(tmp_path / "run").facts["teacher"]["path"] == str(trained["oltr"])
    again = oltr(*words, "--teacher", trained["plain"], "--set", "distill.share=0.25", "--resume")
    again.refused("another configuration", f"distill.teacher: {trained['oltr']} → {trained['plain']}")
    oltr("train", "--from", trained["plain"], "--teacher", trained["oltr"]).refused("--from takes source")


def test_tensorboard_counts_epochs_as_the_metrics_do_also_after_an_interruption(
    oltr, pack, tmp_path, monkeypatch
):
    run = tmp_path / "run"
    command = ("train", pack, *QUICK, "--epochs", "3", "1", "--out", run, "--tensorboard")
    stop_at(monkeypatch, 2 * 8 + 4)  # 8 steps an epoch: in the third
    assert oltr(*command).code == 130
    assert oltr(*command, "--resume").code == 0
    metrics = pd.read_csv(run / "metrics.csv")
    for stage, rows in metrics.groupby("stage"):
        events = EventAccumulator(str(run / "tensorboard" / f"stage{stage}")).Reload()
        assert set(events.Tags()["scalars"]) == {f"stage{stage}/{name}" for name in LOGGED}
        for name in LOGGED:
            logged = [(event.step, event.value) for event in events.Scalars(f"stage{stage}/{name}")]
            assert logged == [(e, pytest.approx(v)) for e, v in zip(rows["epoch"], rows[name], strict=True)]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_finished_run_shows_its_result_again(oltr, pack, trained, tmp_path, options):
    run = shutil.copytree(trained["oltr"], tmp_path / "run")
    command = ("train", pack, *QUICK, "--out", run)
    oltr(*command).refused("holds a run already", "--resume")
    said = oltr(*command, "--resume", *options)
    assert said.code == 0 and "stage 1:" not in said.err
    if options:
        assert json.loads(said.out) == json.loads((run / "report.json").read_text())


def test_resuming_with_another_configuration(oltr, pack, trained, tmp_path):
    run = shutil.copytree(trained["oltr"], tmp_path / "run")
    command = ("train", pack, *QUICK, "--out", run, "--resume")
    oltr(*command, "--set", "stage2.lr=0.5", "--seed", "3").refused(
        "stage2.lr: ", "seed: 0 → 3", "a new --out"
    )
    oltr(*command, "--method", "plain").refused("method: oltr → plain")
    (run / "report.json").unlink()  # of a finished run nothing else is read again
    (run / "checkpoints" / "last.pt").write_bytes(b"half")
    oltr(*command).refused("last.pt cannot be read")
