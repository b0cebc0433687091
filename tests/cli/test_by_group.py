"""`oltr evaluate --by` and `oltr report --by`: accuracy by a column of the data."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.figures import by_group
from oltr.recognizer import Recognizer
from oltr.runs.report import Report
from oltr.runs.trained_run import TrainedRun
from tests.cli.conftest import QUICK


@pytest.fixture(scope="module")
def sited(pack, tmp_path_factory):
    """A run on image files whose manifest has a site (some are empty) and a camera's number; read-only."""
    from PIL import Image

    from oltr.cli.main import _guarded

    folder, opened = tmp_path_factory.mktemp("sited"), open_pack(pack)
    for path, pixels in zip(opened.manifest.table["path"], opened.images, strict=True):
        file = (folder / path).with_suffix(".png")
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(pixels)).save(file)
    table = opened.manifest.table[["path", "label", "split"]].copy()
    table["path"] = [str((folder / path).with_suffix(".png").relative_to(folder)) for path in table["path"]]
    table["site"] = np.resize(["north", "south", "", "<i>east|2"], len(table))
    table["camera"] = np.resize(["1", "2", "10"], len(table))
    table.to_csv(folder / "photos.csv", index=False)
    words = ["train", str(folder / "photos.csv"), *QUICK, "--method", "plain", "--out", str(folder / "run")]
    assert _guarded(words) == 0
    return folder


@pytest.fixture(autouse=True)
def this_figure_alone(monkeypatch):
    """Pages are drawn quickly."""
    monkeypatch.setattr("oltr.report.page.pictures.all_figures", lambda: [by_group.FIGURE])


@pytest.fixture
def copied(sited, tmp_path):
    return shutil.copytree(sited / "run", tmp_path / "run")


def by_hand(run, column):
    """Accuracy, rejected and found unknown of each group from the outputs and the table."""
    opened = TrainedRun(run)
    found = {}
    for split in ("test", "open"):
        rows, outputs = opened.manifest.rows(split), opened.outputs[split]
        rejected = opened.rule.rejects(opened.scored(split).values)
        for row, name in enumerate(rows[column]):
            right = int(outputs.logits[row].argmax()) == int(outputs.labels[row])
            key = "(none)" if pd.isna(name) or name == "" else name
            found.setdefault(key, {}).setdefault(split, []).append((right, bool(rejected[row])))
    return found


@pytest.mark.parametrize("column", ["site", "camera"])
def test_numbers_of_each_group(oltr, copied, column):
    said = oltr("evaluate", copied, "--by", column, "--json")
    found = json.loads(said.out)["by_group"][column]
    expected = by_hand(copied, column)
    assert {group["name"] for group in found["groups"]} == set(expected)
    for group in found["groups"]:
        test, unseen = (np.array(expected[group["name"]][split]) for split in ("test", "open"))
        assert group["accuracy"] == pytest.approx(test[:, 0].mean())
        assert group["rejected"] == pytest.approx(test[:, 1].mean())
        assert group["unknown_recall"] == pytest.approx(unseen[:, 1].mean())
        assert (group["images"], group["open_images"]) == (len(test), len(unseen))
    shares = {group["name"]: group["accuracy"] for group in found["groups"]}
    assert found["gap"] == pytest.approx(max(shares.values()) - min(shares.values()))  # all have few images
    assert shares[found["worst"]] == min(shares.values())
    assert found["overall"]["accuracy"] == pytest.approx(json.loads(said.out)["closed"]["micro"])


def test_the_table_and_the_report_that_is_kept(oltr, copied):
    before = Report.load(copied / "report.json").data
    said = oltr("evaluate", "--by", "site", "--by", "camera", copied)
    assert said.code == 0, said.err
    assert "By site: 4 groups" in said.out and "By camera: 3 groups" in said.out
    assert "(none)" in said.out and "4 groups have fewer than 10 known images: mostly chance" in said.out
    assert "east\\|2" in oltr("evaluate", copied, "--by", "site", "--markdown").out
    kept = Report.load(copied / "report.json")
    assert list(kept.by_group) == ["site"] and {**kept.data, "by_group": 0} == {**before, "by_group": 0}
    page = oltr("report", copied, "--json")  # by what its report tells of
    assert "by-group" in json.loads(page.out)["figures"]
    oltr("evaluate", copied)
    assert Report.load(copied / "report.json").data == before


def test_another_rule_changes_what_is_rejected_and_not_the_run(oltr, copied):
    before = (copied / "report.json").read_bytes()
    said = oltr("evaluate", copied, "--by", "site", "--score", "softmax", "--threshold", 1, "--json")
    groups = json.loads(said.out)["by_group"]["site"]["groups"]
    assert {group["rejected"] for group in groups} == {group["unknown_recall"] for group in groups} == {1.0}
    assert (copied / "report.json").read_bytes() == before


def test_another_source_has_its_own_columns(oltr, sited, copied, tmp_path):
    table = pd.read_csv(sited / "photos.csv")
    table = table[table["split"] == "test"].assign(root=str(sited), sex=np.resize(["f", "m"], 24))
    table.to_csv(tmp_path / "other.csv", index=False)
    said = oltr("evaluate", copied, "--source", tmp_path / "other.csv", "--by", "sex", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)["by_group"]["sex"]
    assert sorted((group["name"], group["images"]) for group in found["groups"]) == [("f", 12), ("m", 12)]
    assert all(group["unknown_recall"] is None for group in found["groups"])


def test_a_section_and_a_figure_of_the_page(oltr, copied, tmp_path):
    said = oltr("report", copied, "--by", "site", "--out", tmp_path / "p.html", "--figures", tmp_path / "f")
    assert said.code == 0, said.err
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert 'id="groups"' in text and "By site: 4 groups" in text and "--by site" in text
    assert "&lt;i&gt;east|2" in text and "<i>east" not in text
    assert (tmp_path / "f" / "by-group.png").is_file()
    oltr("report", copied, "--out", tmp_path / "plain.html")
    plain = (tmp_path / "plain.html").read_text(encoding="utf-8")
    assert 'id="groups"' not in plain and "oltr report RUN --by COLUMN" in plain


def test_columns_that_are_not_there(oltr, copied, trained):
    oltr("evaluate", copied, "--by", "sight").refused(
        "no column 'sight'", "site, camera", "did you mean 'site'"
    )
    oltr("evaluate", copied, "--by", "label").refused("no column 'label'", "site, camera")
    oltr("evaluate", copied, "--by", "folder").refused("hold no folders to group by")
    oltr("report", copied, "--by", "sex").refused("no column 'sex'")
    oltr("evaluate", trained["plain"], "--by", "site").refused("no further columns")


def test_data_that_are_gone(oltr, copied):
    oltr("evaluate", copied, "--by", "site")
    file = copied / "run.yaml"
    file.write_text(file.read_text().replace("photos.csv", "gone.csv"))
    oltr("evaluate", copied, "--by", "site").refused("are not at hand", "--source")
    assert oltr("report", copied).code == 0
    page = (copied / "report.html").read_text(encoding="utf-8")
    assert "groups that cannot be computed now" in page and 'id="groups"' not in page


def test_a_column_added_since_training_and_classes_changed_since(oltr, sited, copied, tmp_path):
    folder = shutil.copytree(sited, tmp_path / "moved")
    table = pd.read_csv(folder / "photos.csv").assign(season="wet")
    table.to_csv(folder / "photos.csv", index=False)
    run = TrainedRun(folder / "run", source=folder / "photos.csv")
    run.grouped_by = ("season",)
    assert [group.name for group in run.by_group["season"].groups] == ["wet"]
    name = run.class_names[0]
    assert oltr("remove-class", copied, name).code == 0
    changed = TrainedRun(copied)
    changed.grouped_by = ("site",)
    rows = changed.manifest.rows("open")
    groups = {group.name: group.open_images for group in changed.by_group["site"].groups}
    assert name in set(rows["label"]) and groups["north"] == int((rows["site"] == "north").sum())


def test_from_python(sited):
    report = Recognizer.load(sited / "run").evaluate(by="site")
    assert report.by_group["site"].worst in {"north", "south", "(none)", "<i>east|2"}
    with pytest.raises(UserError, match="no column"):
        Recognizer.load(sited / "run").evaluate(by=["site", "sex"])
