"""A run whose classes were changed, measured: which images test which class, and from what."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from oltr import Recognizer, UserError
from oltr.console import console
from oltr.data.pack import open_pack
from oltr.openworld.add_class import add_class
from oltr.openworld.change_classes import remove_class, rename_class
from oltr.openworld.collected_data import collected_manifest
from oltr.report.page.worst import worst_images
from oltr.runs.explain.explain import explain
from oltr.runs.nearest_images import NearestImages
from oltr.runs.train_run import train_run
from oltr.runs.trained_run import TrainedRun
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from tests.helpers.tiny import tiny_config, tiny_pack

PINK, CYAN = "pink", "cyan"


def accuracy(report, name: str) -> float | None:
    return next(each.accuracy for each in report.per_class if each.name == name)


@pytest.fixture
def warnings(monkeypatch) -> list[str]:
    told: list[str] = []
    monkeypatch.setattr(console, "warn", told.append)
    return told


def assert_measured_on_its_images(run: TrainedRun, measured: TrainedRun, files, others) -> None:
    """Beside the answers of `predict`, image by image."""
    report, told = measured.measure(), run.predict(files)
    assert report.note is None
    assert accuracy(report, CYAN) == pytest.approx((told["label"] == CYAN).mean())
    assert report.open.unknown_recall == pytest.approx(run.predict(others)["unknown"].mean())
    assert len(measured.outputs["open"]) == len(others)
    assert (measured.outputs["test"].labels == run.class_names.index(CYAN)).sum() == len(files)


def test_open_images_of_an_added_class_test_it(run, strangers, photo_folder, tmp_path):
    add_class(run, CYAN, strangers[CYAN][:3])
    elsewhere = shutil.copytree(photo_folder, tmp_path / "elsewhere")
    next((elsewhere / "train" / "red").iterdir()).unlink()  # other data now
    for measured in (run, run.on(photo_folder), run.on(elsewhere)):
        assert_measured_on_its_images(run, measured, strangers[CYAN][3:], strangers[PINK])


def test_test_images_of_an_added_class_test_it(run, strangers, photo_folder, tmp_path):
    add_class(run, CYAN, strangers[CYAN][:3])
    other = shutil.copytree(photo_folder, tmp_path / "other")
    for file in sorted((other / "open" / CYAN).iterdir())[:6]:  # some here, some there
        (other / "test" / CYAN).mkdir(exist_ok=True)
        shutil.move(file, other / "test" / CYAN / file.name)
    assert_measured_on_its_images(run, run.on(other), strangers[CYAN][3:], strangers[PINK])
    shutil.rmtree(other / "train")
    shutil.rmtree(other / "open" / CYAN)
    assert_measured_on_its_images(run, run.on(other), strangers[CYAN][3:6], strangers[PINK])
    with pytest.raises(UserError, match="never saw"):
        run.as_trained.on(_with_stranger(photo_folder, strangers, tmp_path))
    with pytest.raises(UserError, match="never saw"):
        run.on(_with_stranger(photo_folder, strangers, tmp_path))


def _with_stranger(photo_folder, strangers, tmp_path):
    other = shutil.copytree(photo_folder, tmp_path / "stranger", dirs_exist_ok=True)
    shutil.copytree(strangers[PINK][0].parent, other / "test" / PINK, dirs_exist_ok=True)
    return other


def test_a_class_learned_from_all_its_images_is_not_measured(run, strangers):
    add_class(run, CYAN, strangers[CYAN])
    report = run.measure()
    assert accuracy(report, CYAN) is None and CYAN in report.note
    assert len(run.outputs["open"]) == len(strangers[PINK])


def test_images_given_with_more_are_no_test_images(run, photo_folder, tmp_path):
    files = sorted((photo_folder / "test" / "red").iterdir())
    add_class(run, "red", files[:2], more=True)
    assert (run.outputs["test"].labels == run.class_names.index("red")).sum() == len(files) - 2
    assert set(collected_manifest(run, RunFolder(tmp_path / "next")).read_text().splitlines()).isdisjoint(
        f"test/red/{file.name},red,test" for file in files[:2]
    )


def test_the_page_lists_no_image_of_an_added_class_as_unknown(run, strangers):
    add_class(run, CYAN, strangers[CYAN][:3])
    groups, missing = worst_images(run)
    assert not missing
    assert all(
        (image.truth == CYAN and image.answer != CYAN) or f"/{CYAN}/" not in image.path
        for group in groups
        for image in group.images
    )
    rows, answers = run.manifest.rows("test"), run.decisions.likeliest[: run.decisions.test_images]
    told = run.predict([run.manifest.root / path for path in rows["path"]])["label"]
    assert told.tolist() == [run.class_names[number] for number in answers]  # row by row the same images
    assert rows["label"].tolist() == [run.class_names[k] for k in run.outputs["test"].labels]


def test_test_images_of_a_removed_class_are_open(run, photo_folder, strangers, tmp_path):
    remove_class(run, "green")
    files = [file for each in strangers.values() for file in each]
    files += sorted((photo_folder / "test" / "green").iterdir())
    caught = run.predict(files)["unknown"].mean()
    other = shutil.copytree(photo_folder, tmp_path / "other")
    next((other / "train" / "red").iterdir()).unlink()
    for measured in (run, run.on(photo_folder), run.on(other)):
        report = measured.measure()
        assert report.open.unknown_recall == pytest.approx(caught) and report.note is None
        assert len(measured.outputs["open"]) == len(files)
    shutil.rmtree(other / "open")
    assert run.on(other).measure().open is not None


def test_a_removed_class_that_is_taught_again_has_its_test_images_back(run, photo_folder):
    remove_class(run, "green")
    add_class(run, "green", sorted((photo_folder / "train" / "green").iterdir())[:4])
    tested = (run.outputs["test"].labels == run.class_names.index("green")).sum()
    assert tested == 6 and accuracy(run.measure(), "green") is not None


def test_another_source_may_have_names_of_before(run, photo_folder, tmp_path):
    rename_class(run, "red", "crimson")
    other = shutil.copytree(photo_folder, tmp_path / "other")
    next((other / "train" / "red").iterdir()).unlink()
    assert run.on(other).measure().closed == run.measure().closed


def test_without_the_images_open_ones_stay_unknown_and_that_is_told(
    run, strangers, photo_folder, tmp_path, warnings
):
    add_class(run, CYAN, strangers[CYAN][:3])
    remove_class(run, "green")
    run.folder.write(run.facts | {"source": str(tmp_path / "gone")})
    lost = TrainedRun(run.path)
    report = lost.measure()
    assert CYAN in report.note and accuracy(report, CYAN) is None
    assert len(lost.outputs["open"]) == 20 + 6
    assert sum("count as unknown" in each for each in warnings) == 1


def test_packs_stay_in_step_and_learned_images_are_known_by_their_features(tmp_path):
    path, out = tiny_pack(tmp_path / "data"), tmp_path / "run"
    pack = open_pack(path)
    with console.silent():
        config = tiny_config("plain", epochs=(1,))
        train_run(config, pack.manifest, out, TrainOptions(accelerator="cpu"), str(path))
    run = TrainedRun(out)
    name = pack.manifest.rows("open")["label"].iloc[0]
    places = np.flatnonzero((pack.manifest.table["label"] == name).to_numpy())
    remove_class(run, run.class_names[0])
    add_class(run, name, [Image.fromarray(np.array(pack.images[row])) for row in places[:2]])
    cached, fresh = run.outputs["test"], run.on(path).outputs["test"]
    assert torch.allclose(cached.logits, fresh.logits, atol=1e-4)
    assert torch.equal(cached.labels, fresh.labels)
    assert (cached.labels == run.class_names.index(name)).sum() == len(places) - 2


def test_collected_images_are_among_the_nearest(run, strangers):
    add_class(run, CYAN, strangers[CYAN][:3])
    found = run.predict(strangers[CYAN][:3], nearest=2)["nearest"]
    for file, near in zip(strangers[CYAN], found, strict=False):
        assert Path(near[0]).read_bytes() == file.read_bytes()
    assert NearestImages(run, 10_000).number == 82 + 3


@pytest.mark.parametrize("kind", ["plain_run", "oltr_run"])
def test_explanations_show_added_classes_and_no_removed_ones(kind, request, tmp_path, strangers):
    run = TrainedRun(shutil.copytree(request.getfixturevalue(kind), tmp_path / "run"))
    add_class(run, CYAN, strangers[CYAN][:1])
    remove_class(run, "white")
    nearest = explain(run, strangers[CYAN][0]).nearest
    assert nearest.names[0] == CYAN and "white" not in nearest.names
    assert nearest.found.distances[0] == pytest.approx(0, abs=1e-3)
    picture = np.asarray(Image.open(strangers[CYAN][0])).astype(int)
    assert nearest.examples.shape[0] == len(nearest.names)
    assert abs(nearest.examples[0].astype(int).mean() - picture.mean()) < 10


def test_reachability_counts_the_classes_known_now(oltr_run, tmp_path, strangers, photo_folder):
    run = TrainedRun(shutil.copytree(oltr_run, tmp_path / "run"))
    memory = run.trained_network.head.meta.memory
    old = dict(zip(run.class_names, memory.centroids.detach().cpu().clone(), strict=True))
    more = sorted((photo_folder / "val" / "red").iterdir())[:3]
    add_class(run, CYAN, strangers[CYAN][:4])
    add_class(run, "red", more, more=True)
    remove_class(run, "blue")
    collected = {each.name: torch.from_numpy(each.features) for each in run.changes.added}
    now = old | {
        CYAN: collected[CYAN].mean(dim=0),
        "red": (24 * old["red"] + collected["red"].sum(dim=0)) / 27,
    }
    del now["blue"]
    centroids = torch.stack(list(now.values())).double()
    for split in ("test", "open"):
        outputs = run.outputs[split]
        slow = [float((each.double() - centroids).norm(dim=1).min()) for each in outputs.features]
        assert outputs.reachability.tolist() == pytest.approx(slow, rel=1e-4)
        paths = [run.manifest.root / path for path in run.manifest.rows(split)["path"]]
        assert run.predict(paths)["reachability"].tolist() == pytest.approx(slow, rel=1e-3)


def test_a_gradient_score_follows_the_network_as_it_is_now(run, strangers, photo_folder):
    odin = run.other_rule("odin")
    first = run.under(odin).scored("test").unknown
    add_class(run, CYAN, strangers[CYAN][:3])
    remove_class(run, "green")
    changed = run.under(run.other_rule("odin"))
    for split in ("test", "open"):
        paths = [run.manifest.root / path for path in run.manifest.rows(split)["path"]]
        told = changed.predict(paths)
        assert told["unknown_score"].tolist() == pytest.approx(
            changed.scored(split).unknown.tolist(), abs=1e-6
        )
        assert told["unknown"].tolist() == changed.rule.rejects(changed.scored(split).values).tolist()
    assert torch.equal(run.as_trained.under(odin).scored("test").unknown, first)
    rename_class(run, "red", "crimson")
    _ = run.under(odin).scored("val")
    assert len(list(run.folder.outputs.glob("odin*"))) == 2  # of the trained classes, and of those now


def test_fitting_anew_says_what_is_forgotten(folder, strangers, photo_folder, monkeypatch, warnings):
    recognizer = Recognizer.load(folder, verbose=False)
    recognizer.add_class(CYAN, strangers[CYAN][:3])
    monkeypatch.setattr("oltr.recognizer.train_run", lambda *given: None)
    monkeypatch.setattr("oltr.recognizer.TrainedRun", lambda path: recognizer.run_)
    warnings.clear()
    recognizer.fit(photo_folder)
    assert [CYAN in each and "oltr train --from" in each for each in warnings] == [True]
    recognizer.run_.reread_classes()
    recognizer.undo().fit(photo_folder)
    assert len(warnings) == 1
