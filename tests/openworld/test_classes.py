"""Classes added, removed, renamed and undone in a run: what it answers, keeps and says."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from oltr import Recognizer, UserError
from oltr.data.sources import read_source
from oltr.openworld.add_class import add_class
from oltr.openworld.change_classes import remove_class, rename_class, undo
from oltr.openworld.class_row import prior_strength
from oltr.openworld.collected_data import collected_manifest
from oltr.runs.exemplars import exemplar_rows
from oltr.runs.outputs import Outputs
from oltr.runs.trained_run import TrainedRun
from oltr.training.run_folder import RunFolder
from tests.helpers.pictures import write_picture


def answers(run: TrainedRun, files) -> list[str]:
    return run.predict(files)["label"].tolist()


def test_a_new_class_is_known_at_once_and_after_opening_again(run, strangers):
    name, files = next(iter(strangers.items()))
    result = add_class(run, "lynx", files[:5])
    assert result.images == 5 and result.action == 1
    assert run.class_names[-1] == "lynx" and run.counts[-1] == 5
    again = TrainedRun(run.path)
    assert answers(again, files[5:]) == answers(run, files[5:])
    assert answers(run, files[5:]).count("lynx") >= 3, name


def test_all_kinds_of_heads_take_a_class(oltr_run, tmp_path, strangers):
    run = TrainedRun(shutil.copytree(oltr_run, tmp_path / "run"))
    files = next(iter(strangers.values()))
    before = run.predict(files[:5])["reachability"]
    add_class(run, "lynx", files[:5])
    after = run.predict(files[:5])
    assert (after["reachability"] <= before + 1e-5).all() and (after["reachability"] < before).any()
    assert after["label"].tolist().count("lynx") >= 4


def test_cached_outputs_follow_the_classes(run, strangers, photo_folder):
    add_class(run, "lynx", next(iter(strangers.values()))[:5])
    remove_class(run, run.class_names[1])
    cached, fresh = run.outputs["test"], run.on(photo_folder).outputs["test"]
    assert torch.allclose(cached.logits, fresh.logits, atol=1e-4)
    assert torch.equal(cached.labels, fresh.labels)
    # What lies in the folder is still of the trained network.
    kept = Outputs.load(run.folder.outputs / "test.safetensors")
    assert kept.logits.shape[1] == 6 and len(kept) == len(cached) + 6


def test_removing_leaves_the_other_logits_as_they_are(run, photo_folder):
    files = sorted((photo_folder / "test").rglob("*.png"))
    before, gone = run.as_trained.outputs["test"].logits, run.class_names[2]
    remove_class(run, gone)
    assert gone not in set(answers(run, files)) and len(run.class_names) == 5
    assert torch.equal(run.as_trained.outputs["test"].logits, before)
    with pytest.raises(UserError, match="no class called"):
        remove_class(run, gone)


def test_a_renamed_class_keeps_its_answers_and_its_images(run, photo_folder):
    files = sorted((photo_folder / "test").rglob("*.png"))
    before, name = answers(run, files), run.class_names[0]
    rename_class(run, name, "snow leopard")
    assert answers(run, files) == ["snow leopard" if label == name else label for label in before]
    assert run.measure().closed.overall == TrainedRun(run.path).report.closed.overall
    assert set(run.manifest.rows("test")["label"]) == set(run.class_names)
    with pytest.raises(UserError, match="already"):
        rename_class(run, run.class_names[1], "snow leopard")


def test_undo_goes_back_step_by_step(run, strangers):
    files = [file for some in strangers.values() for file in some]
    first, version = run.predict(files), run.model_version
    add_class(run, "lynx", next(iter(strangers.values()))[:5])
    second = run.predict(files)
    rename_class(run, "lynx", "Lynx")
    assert undo(run).kind == "rename"
    assert run.predict(files).equals(second)
    undo(run)
    assert run.predict(files).equals(first) and run.model_version == version
    with pytest.raises(UserError, match="nothing to undo"):
        undo(run)
    assert [each.kind for each in run.history.actions()] == ["add", "rename", "undo", "undo"]


def test_the_threshold_keeps_its_rate_on_known_images(run, strangers):
    add_class(run, "lynx", next(iter(strangers.values()))[:8])
    val = run.scored("val").values
    assert run.rule.rejects(val).float().mean() <= run.rule.unknown_rate
    assert run.rule.unknown_rate == run.as_trained.rule.unknown_rate


def test_the_threshold_stays_where_the_last_validation_images_go_with_their_class(run, photo_folder):
    file = run.folder.outputs / "val.safetensors"
    val = Outputs.load(file)
    val.subset(np.flatnonzero(val.labels == 1)).save(file)
    before = TrainedRun(run.path).rule
    remove_class(run, run.class_names[1])
    assert run.rule == before
    assert len(TrainedRun(run.path).predict(photo_folder / "test")) > 0


def test_a_rule_kept_with_other_classes_is_settled_again(run, strangers):
    wanted = run.other_rule(unknown_rate=0.2)
    add_class(run, "lynx", next(iter(strangers.values()))[:8])
    run.keep_rule(run.other_rule(unknown_rate=0.2))
    kept = run.rule
    assert TrainedRun(run.path).rule == kept
    undo(run)
    assert TrainedRun(run.path).rule == wanted


def test_another_rule_of_one_object_is_settled_again(folder, strangers):
    recognizer = Recognizer.load(folder, unknown_rate=0.2, verbose=False)
    recognizer.add_class("lynx", next(iter(strangers.values()))[:8])
    assert recognizer.threshold_ == TrainedRun(folder).other_rule(unknown_rate=0.2).threshold
    fixed = Recognizer.load(folder, threshold=0.3, verbose=False).remove_class("red")
    assert fixed.threshold_ == 0.3


def test_more_images_of_a_class(run, strangers, photo_folder):
    files = next(iter(strangers.values()))
    add_class(run, "lynx", files[:1])
    add_class(run, "lynx", files[1:6], more=True)
    assert run.class_names.count("lynx") == 1 and run.counts[-1] == 6
    known = run.class_names[0]
    add_class(run, known, sorted((photo_folder / "val" / known).iterdir())[:2], more=True)
    assert run.class_names[-1] == known and len(run.class_names) == 7
    assert run.counts[-1] == run.as_trained.counts[0] + 2
    assert run.outputs["test"].labels.tolist().count(len(run.class_names) - 1) == 6
    undo(run)
    assert run.class_names[0] == known


def test_fitted_scores_know_the_added_images(run, strangers):
    files = next(iter(strangers.values()))
    before = run.under(run.other_rule("knn", unknown_rate=0.05)).predict(files[:5])["unknown_score"]
    add_class(run, "lynx", files[:5])
    after = run.under(run.other_rule("knn", unknown_rate=0.05)).predict(files[:5])["unknown_score"]
    assert after.mean() < before.mean()


def test_the_report_says_that_classes_have_changed(run, strangers):
    before = json.loads(run.folder.report.read_text())
    add_class(run, "lynx", next(iter(strangers.values()))[:3])
    noted = json.loads(run.folder.report.read_text())
    assert "lynx" in noted.pop("note") and noted == before
    undo(run)
    assert json.loads(run.folder.report.read_text()) == before
    remove_class(run, run.class_names[0])
    run.measure().save(run.folder.report)
    assert "note" not in json.loads(run.folder.report.read_text())


def test_images_that_do_not_agree_are_warned_of(run, strangers, photo_folder):
    one, other = list(strangers.values())
    known = sorted((photo_folder / "train" / run.class_names[0]).iterdir())[:2]
    alike = add_class(run, "alike", one[:5]).warnings
    undo(run)
    mixed = add_class(run, "mixed", [*one[:4], other[0], *known]).warnings
    found = next(w for w in mixed if run.class_names[0] in w.text and "known class" in w.text)
    assert set(found.rows) <= {5, 6} and found.rows
    assert len(mixed) > len(alike)


@pytest.mark.parametrize("name", ["", "  ", "unknown", "a\nb"])
def test_names_that_are_none(run, strangers, name):
    with pytest.raises(UserError, match="no name"):
        add_class(run, name, next(iter(strangers.values()))[:2])


def test_bad_images_change_nothing(run, strangers, tmp_path):
    (tmp_path / "text.jpg").write_text("not an image")
    files = next(iter(strangers.values()))
    with pytest.raises(UserError, match="1 image of 3 cannot be read"):
        add_class(run, "lynx", [*files[:2], tmp_path / "text.jpg"])
    with pytest.raises(UserError, match="already"):
        add_class(run, run.class_names[0], files[:2])
    with pytest.raises(UserError, match="did you mean"):
        add_class(run, run.class_names[0] + "x", files[:2], more=True)
    assert not run.folder.history.exists() and not run.folder.collected.exists()


def test_equal_files_count_once(run, strangers, tmp_path):
    file = next(iter(strangers.values()))[0]
    twin = shutil.copy(file, tmp_path / "twin.png")
    assert add_class(run, "lynx", [file, twin, file]).images == 1
    with pytest.raises(UserError, match="already"):
        add_class(run, "lynx", [twin], more=True)


def test_two_copies_of_a_run_that_learn_different_things_are_different_models(plain_run, tmp_path, strangers):
    runs = [TrainedRun(shutil.copytree(plain_run, tmp_path / name)) for name in ("a", "b")]
    for run, files in zip(runs, strangers.values(), strict=True):
        add_class(run, "lynx", files[:2])
    assert runs[0].model_version != runs[1].model_version


def test_another_source_does_not_move_the_threshold(run, strangers, photo_folder, tmp_path):
    add_class(run, "lynx", next(iter(strangers.values()))[:4])
    other = shutil.copytree(photo_folder, tmp_path / "other")
    for file in sorted((other / "val").rglob("*.png"))[::2]:
        file.unlink()
    assert TrainedRun(run.path).on(other).rule == run.rule


def test_a_class_named_as_its_open_images_are_is_measured_on_them_after_retraining(run, strangers, tmp_path):
    name, files = next(iter(strangers.items()))
    add_class(run, name, files[:3])
    manifest = read_source(collected_manifest(run, RunFolder(tmp_path / "next")))
    assert (manifest.rows("test")["label"] == name).sum() == len(files) - 3  # not those in train
    assert name not in set(manifest.rows("open")["label"])


def test_arrays_and_pictures_are_kept_as_files(folder):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 30, 3), dtype=np.uint8)
    recognizer = Recognizer.load(folder, verbose=False)
    recognizer.add_class("noise", [pixels, Image.fromarray(pixels[::-1].copy())])
    assert recognizer.classes_[-1] == "noise"
    kept = sorted((folder / "collected").iterdir())
    assert len(kept) == 2
    assert any(np.array_equal(np.asarray(Image.open(file)), pixels) for file in kept)
    assert Recognizer.load(folder).undo().classes_ == TrainedRun(folder).as_trained.class_names


def test_a_saved_recogniser_takes_its_classes_along(folder, strangers, tmp_path):
    recognizer = Recognizer.load(folder, verbose=False)
    files = next(iter(strangers.values()))
    recognizer.add_class("lynx", files[:5]).rename_class("lynx", "Lynx").save(tmp_path / "saved")
    shutil.rmtree(folder)
    loaded = Recognizer.load(tmp_path / "saved")
    assert loaded.predict(files).drop(columns="path").equals(recognizer.predict(files).drop(columns="path"))


def test_somebody_elses_change_is_not_overwritten(folder, strangers):
    mine, theirs = TrainedRun(folder), TrainedRun(folder)
    _ = mine.class_names
    files = next(iter(strangers.values()))
    add_class(theirs, "lynx", files[:2])
    for change in (
        lambda: add_class(mine, "lynx", files[2:4]),
        lambda: remove_class(mine, mine.class_names[0]),
        lambda: undo(mine),
    ):
        with pytest.raises(UserError, match=r"meanwhile|nothing to undo"):
            change()
    mine.reread_classes()
    assert remove_class(mine, "lynx") == 2


def test_a_damaged_history_is_told(folder):
    (folder / "history.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(UserError, match=r"history\.sqlite cannot be read"):
        _ = TrainedRun(folder).class_names


def test_everything_collected_is_a_manifest(run, strangers, tmp_path):
    files = next(iter(strangers.values()))
    add_class(run, "lynx", files[:3])
    rename_class(run, run.class_names[0], "first")
    remove_class(run, run.class_names[1])
    manifest = read_source(collected_manifest(run, RunFolder(tmp_path / "next")))
    assert set(manifest.classes) == set(run.class_names)
    assert dict(zip(manifest.classes, manifest.train_counts().tolist(), strict=True)) == dict(
        zip(run.class_names, run.counts.tolist(), strict=True)
    )
    paths = manifest.rows("train").query("label == 'lynx'")["path"]
    assert sorted((manifest.root / path).read_bytes() for path in paths) == sorted(
        file.read_bytes() for file in files[:3]
    )


def test_exemplars_are_ten_of_each_class_at_most():
    labels = np.repeat([0, 1, 2], [3, 25, 10])
    rows = exemplar_rows(labels, seed=0)
    assert np.bincount(labels[rows]).tolist() == [3, 10, 10] and len(set(rows)) == 23


def test_exemplars_that_are_gone_are_made_again(run, strangers):
    files = next(iter(strangers.values()))
    kept = run.exemplars
    run.folder.exemplars.unlink()
    again = TrainedRun(run.path)
    assert torch.equal(again.exemplars.labels, kept.labels)
    assert torch.allclose(again.exemplars.features, kept.features, atol=1e-4)
    add_class(again, "lynx", files[:2])


def test_how_logits_depend_on_frequencies_is_seen(run):
    random = torch.Generator().manual_seed(0)
    others, counts = list(range(6)), torch.tensor([80.0, 40, 20, 10, 5, 2])
    frequencies = (counts / counts.mean()).log()
    labels = torch.arange(6).repeat_interleave(200)
    balanced = torch.randn(1200, 6, generator=random)
    balanced[torch.arange(1200), labels] += 1.0  # softmax of these is the posterior under equal counts
    for lacking in (0.0, 1.0):
        logits = balanced + (1 - lacking) * frequencies
        run._outputs["own "] = {"val": Outputs(logits, labels, torch.zeros(1200, 1))}
        run.own_outputs = lambda score=None: run._outputs["own "]
        assert prior_strength(run, others, frequencies) == pytest.approx(lacking, abs=0.15)


def test_a_picture_of_nothing_is_added_too(run, tmp_path):
    files = [write_picture(tmp_path / f"{i}.png", size=24) for i in range(3)]
    add_class(run, "noise", files)
    assert set(answers(run, files)) == {"noise"}
