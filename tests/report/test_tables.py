import pytest
from rich.cells import cell_len

from oltr.runs.tables import Table, comparison, per_class
from tests.report.sample import sample_report

PUBLISHED = {
    "closed": {"many": 0.7, "few": 0.3001},
    "open": {"f_measure_2019": 0.6},
    "source": "Someone 2019, table 1",
}


def lines(text: str) -> str:
    return text.strip("\n")


def test_two_runs():
    text = comparison({"plain": sample_report("plain"), "oltr": sample_report()}).text()
    assert text == lines("""
resnet10, 2 classes: 1 many-, 0 medium-, 1 few-shot

       │           closed            │                   open
method │ many  medium   few  overall │ many  medium   few      F  unknown  AUROC
───────┼─────────────────────────────┼──────────────────────────────────────────
plain  │ 75.0       –  30.0     52.5 │ 70.0       –  25.0  0.500     50.0   80.0
oltr   │ 75.0       –  30.0     52.5 │ 70.0       –  25.0  0.500     50.0   80.0
Percent, mean over classes; unknown: open images called so.
Open: score softmax, threshold 0.1.
""")


def test_intervals_stand_under_their_numbers_and_keep_the_width():
    closed = {"many": 0.75, "medium": None, "few": 0.3, "overall": 0.525, "top5": 0.9, "micro": 0.61}
    closed["interval"] = {"many": [0.7, 0.79], "medium": None, "few": [0.1, 0.52], "overall": [0.5, 0.56]}
    numbers = {"temperature": 1.374, "ece": 0.081, "nll": 1.0, "calibrated_ece": 0.023, "calibrated_nll": 0.9}
    within = {"interval": {"f_measure": [0.48, 0.52], "auroc": [0.75, 0.84]}}
    text = sample_report(closed=closed, calibration=numbers, open=within).table().text()
    assert text == lines("""
resnet10, 2 classes: 1 many-, 0 medium-, 1 few-shot

       │           closed            │                   open
method │ many  medium   few  overall │ many  medium   few      F  unknown  AUROC
───────┼─────────────────────────────┼──────────────────────────────────────────
oltr   │ 75.0       –  30.0     52.5 │ 70.0       –  25.0  0.500     50.0   80.0
  ±    │  4.5       –  21.0      3.0 │    –       –     –  0.020        –    4.5
Percent, mean over classes; unknown: open images called so.
±: half of the 95 % interval over test images.
Open: score softmax, threshold 0.1.
Top-5: 90.0. Of all test images 61.0 % are right. Calibration error 8.1 % (2.3 %
after temperature 1.37).
""")


def test_several_runs_tell_their_widest_intervals_in_a_note():
    def report(half):
        closed = {"many": 0.75, "medium": None, "few": 0.3, "overall": 0.525}
        closed["interval"] = {"few": [0.3 - half, 0.3 + half], "overall": [0.5, 0.56]}
        return sample_report(closed=closed, open={"interval": {"auroc": [0.8 - half, 0.8 + half]}})

    table = comparison({"a": report(0.04), "b": report(0.05)})
    assert [row[0] for row in table.rows] == ["a (oltr)", "b (oltr)"]
    note = "± at most, half of the 95 % interval over test images: few 5.0, overall 3.0, AUROC 5.0."
    assert table.notes[1] == note
    assert note not in comparison({"a": report(0.04), "old": sample_report()}).notes


def test_no_validation_images_no_temperature():
    closed = {"many": 0.75, "medium": None, "few": 0.3, "overall": 0.525, "micro": 0.61}
    numbers = {"temperature": None, "ece": 0.081, "nll": 1.0}
    table = sample_report(closed=closed, calibration=numbers).table()
    assert "Calibration error 8.1 % (not calibrated: no validation images)." in table.notes[-1]
    assert "Top-5" not in table.notes[-1]


def test_published_row_and_difference():
    text = comparison({"class-aware": sample_report("class-aware", expect=PUBLISHED)}).text()
    assert text == lines("""
resnet10, 2 classes: 1 many-, 0 medium-, 1 few-shot

             │           closed            │                       open
method       │ many  medium   few  overall │ many  medium   few      F  F 2019  unknown  AUROC
─────────────┼─────────────────────────────┼──────────────────────────────────────────────────
class-aware  │ 75.0       –  30.0     52.5 │ 70.0       –  25.0  0.500   0.550     50.0   80.0
  published  │ 70.0       –  30.0        – │    –       –     –      –   0.600        –      –
  difference │ +5.0       –  +0.0        – │    –       –     –      –  -0.050        –      –
Percent, mean over classes; unknown: open images called so; F 2019: as printed in the paper.
Open: score softmax, threshold 0.1.
Published: Someone 2019, table 1.
""")


def test_a_published_row_of_other_numbers_is_not_shown():
    """That of MS1M-LT is of identification."""
    faces = sample_report("oltr", expect={"identify": {"rank1": 0.7451}, "source": "Someone 2019, table 4"})
    alone = sample_report("oltr")
    assert comparison({"oltr": faces}).text() == comparison({"oltr": alone}).text()


def test_the_difference_is_to_groups_as_the_published_row_counts_them():
    regrouped = {
        "rule": "released",
        "shots": {"many": 1, "medium": 0, "few": 1},
        "closed": {"many": 0.72, "medium": None, "few": 0.31},
        "open": {"many": 0.66, "medium": None, "few": 0.2},
    }
    published = {**PUBLISHED, "shots": "released", "open": {"many": 0.6, "f_measure_2019": 0.6}}
    report = sample_report("class-aware", expect=published, regrouped=regrouped)
    table = comparison({"class-aware": report})
    assert [row[:4] + row[5:6] for row in table.rows] == [
        ["class-aware", "75.0", "–", "30.0", "70.0"],
        ["  groups ≥ 100 / ≤ 20", "72.0", "–", "31.0", "66.0"],
        ["  published", "70.0", "–", "30.0", "60.0"],
        ["  difference", "+2.0", "–", "+1.0", "+6.0"],
    ]
    assert table.rows[1][4] == "52.5" == table.rows[0][4]  # the mean over all classes has no groups
    said = "Published: Someone 2019, table 1; its shot groups ≥ 100 / ≤ 20, in the difference ours, too."
    assert said in table.notes


def test_a_group_that_is_empty_so_counted_has_no_difference():
    regrouped = {"rule": "released", "shots": {"many": 2, "medium": 0, "few": 0}}
    regrouped["closed"] = {"many": 0.5, "medium": None, "few": None}
    report = sample_report(expect={**PUBLISHED, "shots": "released"}, regrouped=regrouped)
    assert comparison({"oltr": report}).rows[-1][1:4] == ["-20.0", "–", "–"]


def test_without_open_images_the_open_columns_go():
    text = sample_report(with_open=False).table().text()
    assert text == lines("""
resnet10, 2 classes: 1 many-, 0 medium-, 1 few-shot

       │           closed
method │ many  medium   few  overall
───────┼────────────────────────────
oltr   │ 75.0       –  30.0     52.5
Percent, mean over classes.
Open: not tested, there were no open images.
""")


def test_mixed_runs_say_which_score_and_threshold_each_used():
    by_rate = {"score": "reachability", "threshold": 3.14159, "unknown_rate": 0.05}
    table = comparison(
        {
            "a": sample_report("plain"),
            "b": sample_report("plain", with_open=False),
            "oltr, by rate": sample_report(open=by_rate),
        }
    )
    assert table.notes[1:] == [
        "Open (a): score softmax, threshold 0.1.",
        "Open (b): not tested, there were no open images.",
        "Open (oltr, by rate): score reachability, threshold 3.142 "
        "(rejects at most 5.0 % of known validation images).",
    ]
    assert [row[0] for row in table.rows] == ["a (plain)", "b (plain)", "oltr, by rate"]
    assert table.rows[1][5:] == ["–"] * 6


def untested(number: int):
    """A report in which so many of the classes have no test image."""
    report = sample_report()
    for entry in report["per_class"][:number]:
        entry["accuracy"] = entry["f1"] = None
    return report


@pytest.mark.parametrize(
    ("missing", "notes"),
    [
        ((0, 0), []),
        ((1, 1), ["1 class has no test image and is in no mean."]),
        ((2, 2), ["2 classes have no test image and are in no mean."]),
        ((0, 1), ["run 1: 1 class has no test image and is in no mean."]),
    ],
)
def test_classes_that_are_in_no_mean(missing, notes):
    table = comparison({f"run {number}": untested(many) for number, many in enumerate(missing)})
    assert [note for note in table.notes if "test image" in note] == notes


@pytest.mark.parametrize(
    ("other", "caution"),
    [
        ({}, False),
        ({"names": ("cat", "fox")}, "do not have the same classes"),
        ({"counts": (200, 6)}, "different numbers of images"),
    ],
)
def test_runs_that_do_not_compare(other, caution):
    text = comparison({"plain": sample_report("plain"), "oltr": sample_report(**other)}).text()
    assert ("Caution" in text) == bool(caution)
    assert not caution or caution in text


def test_titles_tell_only_what_the_runs_share():
    other = sample_report(backbone="vit", shots={"many": 2, "medium": 0, "few": 0})
    assert comparison({"plain": sample_report("plain"), "oltr": other}).title == ""


def test_wide_and_long_names_line_up():
    name = "a run with a very long name, which is not cut, 山猫 (oltr)"
    text = comparison({name: sample_report(), "oltr": sample_report()}).text()
    rows = [row for row in text.splitlines() if "│" in row]
    assert name in text
    assert len({cell_len(row.split("│")[0]) for row in rows}) == 1


def test_markdown():
    assert comparison({"a|b": sample_report("plain", with_open=False)}).markdown() == lines("""
**resnet10, 2 classes: 1 many-, 0 medium-, 1 few-shot**

| method | closed many | closed medium | closed few | closed overall |
|:--|--:|--:|--:|--:|
| a\\|b (plain) | 75.0 | – | 30.0 | 52.5 |

Percent, mean over classes.

Open: not tested, there were no open images.
""")


def test_worst_classes():
    report = sample_report(names=("cat", "山猫"))
    assert per_class(report).text() == lines("""
oltr: the 2 of 2 classes with the lowest accuracy

class  training images  accuracy    F1
──────────────────────────────────────
山猫                 5      30.0  50.0
cat                200      75.0  50.0
""")
    assert [row[0] for row in per_class(report, worst=1).rows] == ["山猫"]


def test_classes_without_test_images_are_not_the_worst():
    report = sample_report()
    report["per_class"][0]["accuracy"] = None
    assert [row[0] for row in per_class(report).rows] == ["dog"]


def test_a_group_title_wider_than_its_columns():
    table = Table("", [("", ["name"]), ("long title", ["x"])], [["a", "1"]])
    assert table.text() == lines("""
     │ long title
name │          x
─────┼───────────
a    │          1
""")
    assert repr(table) == table.text() and table._repr_markdown_() == table.markdown()


def test_a_single_class_is_one_class():
    one = sample_report(names=("cat",), counts=(200,), shots={"many": 1, "medium": 0, "few": 0})
    assert comparison({"oltr": one}).title == "resnet10, 1 class: 1 many-, 0 medium-, 0 few-shot"
