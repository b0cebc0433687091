import json
import statistics

import pytest

from oltr.data.folds import make_folds
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.runs import folds as folds_module
from oltr.runs.folds import FoldReports, train_folds
from oltr.runs.report import Report
from oltr.runs.trained_run import TrainedRun
from oltr.training.options import TrainOptions
from tests.helpers.tiny import tiny_config

CPU = TrainOptions(accelerator="cpu", workers=0)


@pytest.fixture(scope="module")
def trained(pack, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "folds"
    made = make_folds(read_source(pack), 3)
    return out, made, train_folds(tiny_config("plain", epochs=(1,)), made, out, CPU, str(pack))


def test_mean_and_spread_of_every_number(trained):
    out, _, result = trained
    saved = json.loads((out / "folds.json").read_text())
    assert saved == json.loads(json.dumps(result.to_json()))
    reports = [Report.load(out / f"fold-{number}" / "report.json") for number in (1, 2, 3)]
    for part, key in (("closed", "overall"), ("open", "auroc"), ("open", "f_measure")):
        values = [report[part][key] for report in reports]
        entry = saved[part][key]
        assert entry["mean"] == pytest.approx(sum(values) / 3) and entry["n"] == 3
        assert entry["spread"] == pytest.approx(statistics.stdev(values))
        assert [fold[part][key] for fold in saved["folds"]] == values
    assert "score" not in saved["open"]
    text = result.table().text()
    assert "fold-3" in text and "spread" in text and "no confidence interval" in " ".join(text.split())


def test_numbers_that_some_folds_do_not_have():
    def report(few):
        return Report.from_dict(
            {
                "method": "plain",
                "backbone": "resnet10",
                "num_classes": 0,
                "shots": {"many": 0, "medium": 0, "few": 0},
                "closed": {"many": None, "medium": None, "few": few, "overall": 0.5},
                "per_class": [],
            }
        )

    result = FoldReports({"fold-1": report(0.25), "fold-2": report(None)})
    closed = result.summary()["closed"]
    assert closed["few"] == {"mean": 0.25, "spread": None, "n": 1}
    assert closed["many"] == {"mean": None, "spread": None, "n": 0}
    assert "open" not in result.summary() and "25.0" in result.table().text()


def test_a_fold_is_a_run_that_finds_its_own_images(trained, pack):
    out, made, _ = trained
    for number, manifest in enumerate(made.manifests, start=1):
        run = TrainedRun(out / f"fold-{number}")
        assert run.manifest.fingerprint() == manifest.fingerprint()
        assert TrainedRun(out / f"fold-{number}", pack).manifest.table.equals(manifest.table)
        again = run.on(pack)
        assert again.other_is_own and again.measure()["closed"] == run.report["closed"]


def test_resumed_folds_keep_what_is_finished(pack, tmp_path, monkeypatch):
    config, made = tiny_config("plain", epochs=(1,)), make_folds(read_source(pack), 2)
    real, calls = folds_module.train_run, []

    def stopped(config, manifest, out, options, source):
        calls.append(out.name)
        if out.name == "fold-2":
            raise KeyboardInterrupt
        return real(config, manifest, out, options, source)

    monkeypatch.setattr(folds_module, "train_run", stopped)
    with pytest.raises(KeyboardInterrupt):
        train_folds(config, made, tmp_path / "out", CPU, str(pack))
    monkeypatch.undo()
    written = (tmp_path / "out" / "fold-1" / "model.safetensors").stat().st_mtime_ns
    with pytest.raises(UserError, match=r"(?s)holds folds already.*--resume"):
        train_folds(config, made, tmp_path / "out", CPU, str(pack))
    resumed = TrainOptions(accelerator="cpu", workers=0, resume=True)
    assert len(train_folds(config, made, tmp_path / "out", resumed, str(pack)).reports) == 2
    assert (tmp_path / "out" / "fold-1" / "model.safetensors").stat().st_mtime_ns == written
    with pytest.raises(UserError, match="other data"):
        train_folds(config, make_folds(read_source(pack), 3), tmp_path / "out", resumed, str(pack))


@pytest.mark.parametrize("options", [TrainOptions(devices=2), TrainOptions(stage1_from="runs/x")])
def test_options_that_do_not_go_with_folds(pack, tmp_path, options):
    made = make_folds(read_source(pack), 2)
    with pytest.raises(UserError, match="--folds"):
        train_folds(tiny_config("plain", epochs=(1,)), made, tmp_path / "out", options)
    assert not (tmp_path / "out").exists()
