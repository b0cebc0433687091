import pytest
import torch
from sklearn.metrics import roc_auc_score

from oltr.errors import UserError
from oltr.openset import RejectionRule
from oltr.runs.evaluate import evaluate
from oltr.runs.outputs import Outputs
from oltr.runs.report import Report

NAMES, COUNTS = ["a", "b", "c", "d"], [200, 50, 50, 3]
TOP = [
    "schema",
    "method",
    "backbone",
    "num_classes",
    "shots",
    "closed",
    "open",
    "per_class",
    "calibration",
    "train_seconds",
    "expect",
]
OPEN = {
    "score", "threshold", "unknown_rate", "many", "medium", "few", "overall", "unknown_recall", "f_measure",
    "f_measure_2019", "auroc", "aupr_known", "aupr_unknown", "fpr95_known", "fpr95_unknown",
    "detection_error", "detection_error_min", "oscr", "interval",
}  # fmt: skip


def split(n, seed, unseen=False, memory=True) -> Outputs:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.full((n,), -1) if unseen else torch.arange(n) % 4
    logits = torch.randn(n, 4, generator=generator)
    if not unseen:
        logits[torch.arange(n), labels] += 1
    reachability = torch.rand(n, generator=generator) + unseen if memory else None
    return Outputs(logits, labels, torch.zeros(n, 2), reachability=reachability)


def splits(**more):
    return {
        "val": split(40, 0, **more),
        "test": split(80, 1, **more),
        "open": split(30, 2, unseen=True, **more),
    }


def run(outputs=None, **more):
    return evaluate(outputs or splits(), NAMES, COUNTS, method="oltr", backbone="resnet10", **more)


def test_the_keys_are_those_of_the_contract():
    report = run(train_seconds=1.5, expect={"closed": {"overall": 0.5}, "source": "somewhere"})
    assert list(report.data) == TOP
    assert list(report["shots"].items()) == [("many", 1), ("medium", 2), ("few", 1)]
    assert list(report["closed"]) == ["many", "medium", "few", "overall", "macro_f1", "micro", "interval"]
    assert set(report["open"]) == OPEN
    entry = ["name", "train_count", "accuracy", "f1", "interval"]
    assert [list(each) for each in report["per_class"]] == [entry] * 4
    assert report["expect"]["closed"] == {"overall": 0.5} and report["train_seconds"] == 1.5


@pytest.mark.parametrize("own", ["standard", "released"])
def test_groups_are_also_counted_as_the_published_row_counts_them(own):
    outputs, counts = splits(), [150, 100, 20, 3]
    rows = {"closed": {"many": 0.5}, "shots": "released", "source": "somewhere"}
    more = {"method": "oltr", "backbone": "resnet10", "rule": RejectionRule("softmax", 0.5)}
    report = evaluate(outputs, NAMES, counts, shots=own, expect=rows, **more)
    if own == "released":
        assert "regrouped" not in report
        return
    test, found = outputs["test"], report["regrouped"]
    assert found["rule"] == "released" and found["shots"] == {"many": 2, "medium": 0, "few": 2}
    sure, named = test.probabilities().max(1)
    for part, right in (("closed", named == test.labels), ("open", (named == test.labels) & (sure >= 0.5))):
        accuracy = [right[test.labels == c].double().mean().item() for c in range(4)]
        assert found[part] == {
            "many": pytest.approx((accuracy[0] + accuracy[1]) / 2),
            "medium": None,
            "few": pytest.approx((accuracy[2] + accuracy[3]) / 2),
        }
        assert report[part]["many"] == pytest.approx(accuracy[0])  # the report's own groups stay
    assert Report.from_dict(report.data) == report
    without = evaluate(outputs, NAMES, counts, shots=own, expect={"closed": {"many": 0.5}}, **more)
    assert "regrouped" not in without


def test_the_numbers_equal_a_plain_count():
    outputs = splits()
    report = run(outputs, rule=RejectionRule("softmax", 0.5))
    test, unseen = outputs["test"], outputs["open"]
    sure, named = test.probabilities().max(1)
    closed = [(named[test.labels == c] == c).float().mean().item() for c in range(4)]
    accepted = [((named == c) & (sure >= 0.5))[test.labels == c].float().mean().item() for c in range(4)]
    for part, values in (("closed", closed), ("open", accepted)):
        assert report[part]["many"] == pytest.approx(values[0])
        assert report[part]["medium"] == pytest.approx((values[1] + values[2]) / 2)
        assert report[part]["few"] == pytest.approx(values[3])
        assert report[part]["overall"] == pytest.approx(sum(values) / 4)
    open_sure = unseen.probabilities().amax(1)
    assert report["open"]["unknown_recall"] == pytest.approx((open_sure < 0.5).float().mean().item())
    right = int(((named == test.labels) & (sure >= 0.5)).sum())
    missed = int((open_sure >= 0.5).sum())
    assert report["open"]["f_measure"] == pytest.approx(2 * right / (2 * right + (80 - right) + missed))
    called_wrong = int(((named != test.labels) & (sure >= 0.5)).sum())
    assert report["open"]["f_measure_2019"] == pytest.approx(2 * right / (2 * right + called_wrong + missed))
    oracle = roc_auc_score([0] * 80 + [1] * 30, torch.cat([-sure, -open_sure]))
    assert report["open"]["auroc"] == pytest.approx(oracle, abs=1e-5)


def test_the_rule_decides_and_stands_in_the_report():
    assert (run().open.score, run().open.threshold) == ("softmax", 0.1)
    chosen = run(rule=RejectionRule("reachability", 1.0, unknown_rate=0.05)).open
    assert (chosen.score, chosen.threshold, chosen.unknown_rate) == ("reachability", 1.0, 0.05)
    assert chosen.unknown_recall == 1.0


def test_without_open_images_there_is_no_open_part():
    outputs = splits()
    for less in ({"test": outputs["test"]}, {**outputs, "open": split(0, 0, unseen=True)}):
        report = run(less, rule=RejectionRule("reachability", 1.0))
        assert "open" not in report and [key for key in TOP if key != "open"] == list(report.data)


def test_classes_without_test_images_are_null():
    test = split(80, 1)
    kept = test.labels != 3
    report = run({"test": Outputs(test.logits[kept], test.labels[kept], test.features[kept])})
    assert report["closed"]["few"] is None
    assert report["per_class"][3] == {"name": "d", "train_count": 3, "accuracy": None, "f1": None}
    assert "NaN" not in report.to_json()


def test_top_five_and_the_share_of_images_equal_a_plain_count():
    generator = torch.Generator().manual_seed(0)
    labels = torch.tensor([0] * 30 + [1] * 5 + [2, 3, 4, 5, 6])
    test = Outputs(torch.randn(40, 7, generator=generator), labels, torch.zeros(40, 1))
    report = evaluate({"test": test}, list("abcdefg"), [5] * 7, method="m", backbone="b")
    among = [label in row.topk(5).indices.tolist() for row, label in zip(test.logits, labels, strict=True)]
    per_class = [
        sum(hit for hit, label in zip(among, labels, strict=True) if label == c) / (labels == c).sum()
        for c in range(7)
    ]
    assert report.closed.top5 == pytest.approx(float(sum(per_class)) / 7)
    assert report.closed.micro == pytest.approx((test.logits.argmax(1) == labels).float().mean().item())
    assert run().closed.top5 is None and "top5" not in run()["closed"]  # four classes


def test_every_interval_holds_its_number():
    report = run()
    for part in ("closed", "open"):
        for name, (low, high) in report[part]["interval"].items():
            assert 0 <= low <= report[part][name] <= high <= 1 and low < high
    assert set(report["open"]["interval"]) >= {"overall", "few", "f_measure", "auroc", "unknown_recall"}
    assert all(low <= c["accuracy"] <= high for c in report["per_class"] for low, high in [c["interval"]])
    assert report.data == run().data  # drawn anew, and the same


def test_calibration_before_and_after():
    plain, hot = run().calibration, run(temperature=0.7).calibration
    assert (plain.temperature, plain.calibrated_ece, plain.calibrated_nll) == (None, None, None)
    assert (hot.ece, hot.nll) == (plain.ece, plain.nll) and hot.temperature == 0.7
    test = splits()["test"]
    chosen = (test.logits / 0.7).log_softmax(dim=1)[torch.arange(80), test.labels]
    assert hot.calibrated_nll == pytest.approx(-chosen.mean().item(), rel=1e-5)
    assert hot.calibrated_nll != hot.nll and hot.calibrated_ece != hot.ece


def test_released_shots():
    report = evaluate(splits(), NAMES, [100, 21, 20, 5], method="m", backbone="b", shots="released")
    assert report["shots"] == {"many": 1, "medium": 1, "few": 2}


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({}, "no test images"),
        ({"test": split(0, 0)}, "no test images"),
        ({"test": split(8, 0, unseen=True)}, "no known class"),
        ({"test": split(8, 0), "open": split(8, 0)}, "open split carry a known class"),
        (
            {"test": Outputs(torch.full((1, 4), torch.nan), torch.zeros(1), torch.zeros(1, 1))},
            "NaN or infinite",
        ),
        (
            {"test": Outputs(torch.zeros(1, 3), torch.zeros(1), torch.zeros(1, 1))},
            "have 3 classes, the run 4",
        ),
    ],
)
def test_outputs_that_cannot_be_evaluated(outputs, message):
    with pytest.raises(UserError, match=message):
        evaluate(outputs, NAMES, COUNTS, method="oltr", backbone="resnet10")


def test_memoryless_outputs_and_misspelt_scores():
    with pytest.raises(UserError, match="memory"):
        run(splits(memory=False), rule=RejectionRule("reachability", 1.0))
    with pytest.raises(UserError, match="did you mean softmax"):
        run(rule=RejectionRule("softmaks", 0.1))
    with pytest.raises(UserError, match="4 class names but 3"):
        evaluate(splits(), NAMES, COUNTS[:3], method="oltr", backbone="resnet10")
