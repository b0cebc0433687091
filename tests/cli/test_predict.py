"""`oltr predict`: tables, options that restrict and sort, and bad input told in a row or refused."""

from __future__ import annotations

import io
import json
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from oltr import Recognizer
from oltr.data.pack import open_pack
from oltr.runs.outputs import Outputs
from oltr.runs.parents import fit_rollup
from oltr.runs.predictions import judge
from tests.helpers.gpu import ACROSS_BATCHES

COLUMNS = [
    "path", "label", "probability", "unknown", "unknown_score", "reachability", "second_label",
    "second_probability", "error", "calibrated_probability", "model", "top5",
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(trained, tmp_path_factory) -> dict[str, Path]:
    """Copies of the shared runs: --nearest and fitted scores keep outputs of the training images in them."""
    folder = tmp_path_factory.mktemp("copies")
    return {name: Path(shutil.copytree(run, folder / name)) for name, run in trained.items()}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def done(said) -> str:
    assert said.code == 0, said.err
    return said.out


def here() -> list[str]:
    return sorted(file.name for file in Path().iterdir())


def read(file) -> pd.DataFrame:
    return pd.read_csv(file, keep_default_na=False, na_values=[""])


def test_the_table_says_what_predict_says(oltr, trained, images):
    said = oltr("predict", trained["oltr"], images)
    table, expected = read("predictions.csv"), Recognizer.load(trained["oltr"], verbose=False).predict(images)
    assert list(table) == COLUMNS and table["path"].tolist() == expected["path"].tolist()
    assert table["label"].tolist() == expected["label"].tolist()
    assert table["unknown"].tolist() == expected["unknown"].tolist()
    for column in ("probability", "unknown_score", "reachability", "second_probability"):
        np.testing.assert_allclose(table[column], expected[column].astype(float), rtol=ACROSS_BATCHES)
    assert table["error"].isna().all()
    unknown = int(expected["unknown"].sum())
    assert done(said) == (
        f"{len(table)} images: {len(table) - unknown} known, {unknown} unknown\npredictions.csv\n"
    )
    assert here() == ["predictions.csv"]


def test_top_five_and_the_model(oltr, trained, images):
    done(oltr("predict", trained["plain"], images))
    table, run = read("predictions.csv"), Recognizer.load(trained["plain"]).run_
    assert set(table["model"]) == {run.model_version}
    assert len(run.model_version.split(".")[0]) == 8 and run.model_version.endswith(".0")
    for row in table.itertuples():
        top = json.loads(row.top5)
        assert list(top)[:2] == [row.label, row.second_label] and len(top) == 5
        assert list(top.values()) == sorted(top.values(), reverse=True)
        assert top[row.label] == pytest.approx(row.probability, abs=1e-6)


@pytest.mark.parametrize("suffix", ["parquet", "json"])
def test_other_tables_hold_the_same(oltr, trained, images, suffix):
    done(oltr("predict", trained["oltr"], images))
    done(oltr("predict", trained["oltr"], images, "--out", f"deep/down.{suffix}", "--nearest", 2))
    table = read("predictions.csv")
    if suffix == "parquet":
        other = pd.read_parquet("deep/down.parquet")
        assert json.loads(other["nearest"][0])[0].startswith("train/")
        assert other["unknown"].dtype == bool
    else:
        other = pd.DataFrame(json.loads(Path("deep/down.json").read_text()))
        assert other["top5"].map(list)[0] == list(json.loads(table["top5"][0]))
        other["top5"] = other["top5"].map(json.dumps)
        assert all(len(near) == 2 for near in other["nearest"])
    assert (other["error"] == "").all()
    same = [column for column in COLUMNS if column != "error"]
    pd.testing.assert_frame_equal(table[same], other[same], check_dtype=False)


def test_a_pack_gives_the_answers_of_its_files(oltr, trained, images, pack):
    done(oltr("predict", trained["oltr"], images, "--out", "files.csv"))
    done(oltr("predict", trained["oltr"], pack, "--out", "pack.csv"))
    whole, files = read("pack.csv").set_index("path"), read("files.csv")
    assert len(whole) == len(open_pack(pack).manifest.table)
    names = [str(Path(path).relative_to(images).with_suffix("")) for path in files["path"]]
    names = [next(path for path in whole.index if path.startswith(f"{name}")) for name in names]
    assert whole.loc[names, "label"].tolist() == files["label"].tolist()
    np.testing.assert_allclose(whole.loc[names, "unknown_score"], files["unknown_score"], rtol=ACROSS_BATCHES)


def test_nearest_training_images_by_a_loop(oltr, trained, images, tmp_path):
    run = shutil.copytree(trained["plain"], tmp_path / "run")
    done(oltr("predict", run, images, "--nearest", 3))
    opened = Recognizer.load(run).run_
    features = opened.own_outputs()["train"].features.double()
    paths = list(opened.manifest.rows("train")["path"])
    table = read("predictions.csv")
    for row in range(0, len(table), 5):
        seen = opened.config.data.frame
        (feature,) = _features(opened, table["path"][row], seen)
        angles = [float(feature @ each / feature.norm() / each.norm()) for each in features]
        best = sorted(angles, reverse=True)[:3]
        found = [angles[paths.index(path)] for path in json.loads(table["nearest"][row])]
        assert found == pytest.approx(best, abs=ACROSS_BATCHES)
    python = Recognizer.load(run, verbose=False).predict(images, nearest=3)
    assert python["nearest"].tolist() == [json.loads(near) for near in table["nearest"]]


def _features(run, path, frame):
    from oltr.data.images import read_image
    from oltr.runs.predict import as_images
    from oltr.runs.split_outputs import compute_outputs

    return compute_outputs(run, as_images(read_image(path, frame)[None])).features.double()


def test_nearest_without_the_training_images(oltr, trained, images, pack, tmp_path):
    run = shutil.copytree(trained["plain"], tmp_path / "run")
    shutil.rmtree(run / "outputs")
    facts = yaml.safe_load((run / "run.yaml").read_text())
    (run / "run.yaml").write_text(yaml.safe_dump(facts | {"source": "gone.pack"}))
    oltr("predict", run, images, "--nearest", 2).refused("was trained on are needed", "--source")
    assert here() == ["run"]
    done(oltr("predict", run, images, "--nearest", 2, "--source", pack))


def test_files_that_fail_are_rows(oltr, trained, images, tmp_path):
    folder = tmp_path / "odd"
    shutil.copytree(images / "test", folder)
    (folder / "empty.jpg").touch()
    (folder / "text.png").write_text("no picture")
    (folder / "huge.png").write_bytes(_huge_png(50_000))
    said = oltr("predict", trained["oltr"], folder, "gone.jpg")
    table = read("predictions.csv")
    errors = {Path(row.path).name: row.error for row in table.itertuples() if isinstance(row.error, str)}
    assert "4 failed" in done(said)
    assert "0 bytes" in errors["empty.jpg"] and "not an image" in errors["text.png"]
    assert "500 megapixels" in errors["huge.png"] and "no such file" in errors["gone.jpg"]
    failed = table[table["error"].notna()].drop(columns=["path", "error", "model"])
    assert failed.isna().all(axis=None) and len(failed) == 4
    summary = json.loads(done(oltr("predict", trained["oltr"], folder, "--json", "--overwrite")))
    assert summary["failed"] == 3 and summary["images"] == summary["known"] + summary["unknown"] + 3
    assert sum(summary["classes"].values()) == summary["known"]


def _huge_png(side: int) -> bytes:
    """A picture of side × side black pixels, one bit each."""
    content = b"\x89PNG\r\n\x1a\n"
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    for kind, part in ((b"IHDR", head), (b"IDAT", zlib.compress(b"\0")), (b"IEND", b"")):
        content += struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part))
    return content


def test_only_some_classes_by_a_loop(oltr, trained, images, tmp_path):
    run = Recognizer.load(trained["plain"]).run_
    names = run.class_names
    allowed = [names[4], names[1]]
    done(oltr("predict", trained["plain"], images, "--only", ", ".join(allowed)))
    (tmp_path / "here.txt").write_text("\n".join(allowed) + "\n")
    done(oltr("predict", trained["plain"], images, "--only", "here.txt", "--out", "file.csv"))
    assert Path("file.csv").read_text() == Path("predictions.csv").read_text()
    whole = Recognizer.load(trained["plain"]).predict_proba(images)
    logits = np.log(whole) * (run.temperature or 1)
    table = read("predictions.csv")
    for row, z in zip(table.itertuples(), logits, strict=True):
        some = np.exp([z[1], z[4]]) / np.exp([z[1], z[4]]).sum()
        assert row.label == [names[1], names[4]][int(some.argmax())]
        assert row.probability == pytest.approx(some.max(), rel=1e-3)
        assert row.unknown_score == pytest.approx(1 - some.max(), rel=1e-2, abs=1e-3)
        assert row.unknown == (row.probability < run.rule.threshold)
    python = Recognizer.load(trained["plain"]).predict(images, only=allowed)
    assert python["label"].tolist() == table["label"].tolist()


def test_a_restricted_score_on_features_stays(oltr, trained, images):
    run = Recognizer.load(trained["oltr"], score="reachability", threshold=5.0)
    knn = Recognizer.load(trained["oltr"], score="openmax", threshold=0.5)
    for each in (run, knn):
        plain, some = each.predict(images), each.predict(images, only=run.classes_[:3])
        np.testing.assert_allclose(plain["unknown_score"], some["unknown_score"], rtol=1e-5)
        assert set(some["label"]) <= set(run.classes_[:3])


def test_one_allowed_class_is_certain(oltr, trained, images):
    name = Recognizer.load(trained["plain"]).classes_[2]
    done(oltr("predict", trained["plain"], images, "--only", name))
    table = read("predictions.csv")
    assert set(table["label"]) == {name} and (table["probability"] == 1).all()
    assert table["second_label"].isna().all()


def test_outputs_of_some_classes():
    outputs = Outputs(torch.randn(4, 3), torch.tensor([0, 2, -1, 1]), torch.randn(4, 2))
    some = outputs.only([2, 0])
    assert torch.equal(some.logits, outputs.logits[:, [2, 0]]) and some.labels.tolist() == [1, 0, -1, -1]


def test_every_form_of_images(oltr, trained, images, monkeypatch):
    some = sorted(map(str, (images / "test").rglob("*.png")))[:3]
    pd.DataFrame({"path": some}).to_parquet("table.parquet")
    Path("list.txt").write_text("\n".join(some))
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(some)))
    results = []
    for number, given in enumerate((some, ["table.parquet"], ["list.txt"], ["-"], ["0.csv"])):
        done(oltr("predict", trained["plain"], *given, "--out", f"{number}.csv"))
        results.append(Path(f"{number}.csv").read_text())
    assert len(set(results)) == 1


def test_bad_input_is_refused_and_nothing_written(oltr, trained, images, pack, tmp_path):
    run = trained["plain"]
    (tmp_path / "empty").mkdir()
    oltr("predict", run, "nowhere").refused("no file or folder nowhere")
    oltr("predict", run, "empty").refused("no images in empty")
    oltr("predict", tmp_path, images).refused("is not a run folder")
    oltr("predict", run).refused("No images were named")
    name = Recognizer.load(run).classes_[0]
    oltr("predict", run, images, "--only", f"{name},{name}x").refused(f"'{name}x'", "did you mean")
    oltr("predict", run, images, "--only", "gone.txt").refused("no file gone.txt")
    oltr("predict", run, images, "--only", ",").refused("names none")
    oltr("predict", run, images, "--out", "p.xlsx").refused("does not fit", ".csv or .parquet or .json")
    oltr("predict", run, images, "--out", "p.csv", "--format", "coco").refused("does not fit --format coco")
    oltr("predict", run, images, "--out", "empty", "--format", "csv").refused("does not fit")
    oltr("predict", run, images, "--link").refused("without --sort")
    oltr("predict", run, images, "--nearest", "-1").refused("negative")
    oltr("predict", run, images, "--sequence", "site").refused("no such column")
    oltr("predict", run, images, "--burst", "-2").refused("negative")
    oltr("predict", run, images, "--burst", "1", "--sequence", "x").refused("both given")
    oltr("predict", run, pack, "--burst", "1").refused("a pack has none")
    oltr("predict", run, pack, "--sort", "there").refused("images of a pack")
    assert here() == ["empty"]


def test_a_result_is_not_overwritten_unasked(oltr, trained, images):
    done(oltr("predict", trained["plain"], images))
    before = Path("predictions.csv").read_text()
    oltr("predict", trained["oltr"], images).refused("is there already", "--overwrite")
    assert Path("predictions.csv").read_text() == before and here() == ["predictions.csv"]
    done(oltr("predict", trained["oltr"], images, "--overwrite"))
    assert Path("predictions.csv").read_text() != before


def test_images_at_a_time_follow_their_size(trained):
    run = Recognizer.load(trained["plain"]).run_
    run.device = torch.device("cpu")
    assert judge.images_at_a_time(run) == 32
    data = run.config.data
    object.__setattr__(data, "stored_size", 2048)
    assert judge.images_at_a_time(run) == 2


def test_a_parent_answers_where_the_class_is_unsure(oltr, trained, images, tmp_path):
    names = Recognizer.load(trained["plain"], verbose=False).classes_
    rows = "".join(f"{name},{'first' if place < 3 else 'second'}\n" for place, name in enumerate(names))
    (tmp_path / "parents.csv").write_text(f"label,parent\n{rows}", encoding="utf-8")
    asked = ["--parents", tmp_path / "parents.csv", "--precision", 0.3]
    done(oltr("predict", trained["plain"], images, *asked, "--only", ",".join(names[:4])))
    table = read("predictions.csv")
    run = Recognizer.load(trained["plain"], verbose=False).run_
    rollup = fit_rollup(run, tmp_path / "parents.csv", 0.3)
    whole = run.predict(images, only=names[:4], parents=tmp_path / "parents.csv", precision=0.3)
    assert table["answer"].tolist() == whole["answer"].tolist()
    for row in table.to_dict("records"):
        sure = float(row["calibrated_probability"]) >= rollup.thresholds[0] and row["unknown"] == "False"
        assert (row["answer_level"] == "class") == sure
        assert row["answer"] == (row["label"] if sure else row["answer"])
        assert row["answer"] in {*names[:4], "first", "second", "unknown"}
    oltr("predict", trained["plain"], images, "--precision", 0.9).refused("without --parents")


def test_answers_are_not_sorted_into_the_training_images(oltr, tmp_path, trained, images):
    photos, run = Path(shutil.copytree(images / "test", tmp_path / "photos")), tmp_path / "own"
    shutil.copytree(trained["plain"], run)
    facts = yaml.safe_load((run / "run.yaml").read_text())
    (run / "run.yaml").write_text(yaml.safe_dump(facts | {"source": str(photos)}))
    for folder in (photos, photos / "new"):
        oltr("predict", run, images / "open", "--sort", folder).refused(
            "was trained on", "a folder of its own"
        )
    assert not (photos / "new").exists() and here() == ["own", "photos"]
    done(oltr("predict", run, images / "open", "--sort", "photos_sorted"))
