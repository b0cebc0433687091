"""The recipes: published rows in the report's own shape, and equal budgets for every method."""

import numbers

import pytest
import torch

from oltr.methods import METHODS
from oltr.metrics.shots import GROUPS, SHOT_RULES
from oltr.recipes import load_recipe, recipe_names, resolve
from oltr.runs.evaluate import evaluate
from oltr.runs.outputs import Outputs
from oltr.suites.suite_file import IdentifySettings

NOT_MEASURED = {"score", "threshold", "unknown_rate"}  # they say how the open numbers were made
ROWS = [(recipe, row) for recipe in recipe_names() for row in load_recipe(recipe).expect]
FACE_ROWS = [each for each in ROWS if each[0].startswith("ms1m")]
FACES = {*IdentifySettings().columns, "identify.sex.male", "identify.sex.female"}
# The published rows of MS1M-LT are identification rates, which no report has.
# A modern recipe has rows of methods under recipes alike; nobody published the plain model there.
BENCHMARKS = [
    name
    for name in recipe_names()
    if not name.startswith(("photos", "glyphs", "ms1m")) and not name.endswith("-modern")
]


@pytest.fixture(scope="module")
def report_keys():
    """The keys of a report that has an open part."""
    test = Outputs(torch.eye(3), torch.arange(3), torch.eye(3))
    unseen = Outputs(torch.eye(3), torch.full((3,), -1), torch.eye(3))
    report = evaluate(
        {"test": test, "open": unseen}, ["a", "b", "c"], [200, 50, 5], method="plain", backbone="none"
    )
    return {part: set(report[part]) - NOT_MEASURED for part in ("closed", "open")}


@pytest.mark.parametrize(("recipe", "row"), FACE_ROWS)
def test_a_row_of_identification_rates(recipe, row):
    expected = load_recipe(recipe).expect[row]
    assert set(expected) == {"identify", "source"}
    assert {f"identify.{key}" for key in expected["identify"]} <= FACES
    assert all(0.7 < value < 0.9 for value in expected["identify"].values())


def test_the_papers_face_table_as_printed():
    printed = {
        "plain": [80.64, 71.98, 84.60, 77.72, 73.88, 78.30, 78.70],
        "range": [78.60, 71.36, 83.14, 77.40, 72.17],
        "oltr": [80.82, 72.44, 87.60, 79.50, 74.51, 79.04, 79.08],
    }
    keys = ("many", "few", "one", "zero", "rank1", "sex.male", "sex.female")
    found = load_recipe("ms1m-lt").expect
    assert load_recipe("ms1m-lt-printed").expect == found
    assert set(found) == set(printed)
    for method, percent in printed.items():
        row = found[method]["identify"]
        assert [100 * row[key] for key in keys if key in row] == pytest.approx(percent)


@pytest.mark.parametrize(("recipe", "row"), [each for each in ROWS if each not in FACE_ROWS])
def test_a_row_is_in_the_reports_shape(recipe, row, report_keys):
    expected = load_recipe(recipe).expect[row]
    assert isinstance(expected["source"], str) and not expected["source"].endswith(".")
    parts = {name: values for name, values in expected.items() if name not in ("source", "shots")}
    grouped = any(group in values for values in parts.values() for group in GROUPS)
    assert expected.get("shots") in (SHOT_RULES if grouped else (None,))  # a row of groups says how it counts
    assert parts and set(parts) <= set(report_keys)
    for part, values in parts.items():
        assert values and set(values) <= report_keys[part]
        for value in values.values():
            assert isinstance(value, numbers.Real) and not isinstance(value, bool)
            assert 0 <= value <= 1


def test_every_benchmark_has_rows_for_the_plain_model():
    for recipe in BENCHMARKS:
        assert "plain" in load_recipe(recipe).expect, recipe


@pytest.mark.parametrize(
    ("recipe", "method", "closed", "opened"),
    [
        ("imagenet-lt", "plain", (40.9, 10.7, 0.4, 20.9), (40.1, 10.4, 0.4, 0.295)),
        ("imagenet-lt", "lifted", (35.8, 30.4, 17.9, 30.8), (34.8, 29.3, 17.4, 0.374)),
        ("imagenet-lt", "fslwf", (40.9, 22.1, 15, 28.4), (40.8, 21.7, 14.5, 0.347)),
        ("imagenet-lt", "oltr", (43.2, 35.1, 18.5, 35.6), (41.9, 33.9, 17.4, 0.474)),
        ("places-lt", "plain", (45.9, 22.4, 0.36, 27.2), (45.9, 22.4, 0.36, 0.366)),
        ("places-lt", "focal", (41.1, 34.8, 22.4, 34.6), (41, 34.8, 22.3, 0.453)),
        ("places-lt", "range", (41.1, 35.4, 23.2, 35.1), (41, 35.3, 23.1, 0.457)),
        ("places-lt", "oltr", (44.7, 37, 25.3, 35.9), (44.6, 36.8, 25.2, 0.464)),
    ],
)
def test_rows_of_the_papers_main_table(recipe, method, closed, opened):
    """As printed: percent, and F as a fraction."""
    row = load_recipe(recipe).expect[method]
    assert [100 * row["closed"][key] for key in ("many", "medium", "few", "overall")] == pytest.approx(closed)
    assert [100 * row["open"][key] for key in ("many", "medium", "few")] == pytest.approx(opened[:3])
    assert row["open"]["f_measure_2019"] == opened[3]
    assert "f_measure" not in row["open"]  # the paper's F is the old form
    assert row["shots"] == "released"  # the released code counted


def test_other_published_rows():
    def overall(recipe, method):
        return load_recipe(recipe).expect[method]["closed"]["overall"]

    assert "closed" not in load_recipe("imagenet-lt").expect["range+openmax"]
    assert load_recipe("places-lt").expect["range+openmax"]["open"]["f_measure_2019"] == 0.458
    assert load_recipe("imagenet-lt").expect["oltr-released-fixed"]["open"]["f_measure"] == 0.446
    sun = ("plain", "cost-sensitive", "model-regression", "metamodelnet", "oltr")
    assert [overall("sun-lt", method) for method in sun] == [0.48, 0.524, 0.547, 0.573, 0.587]
    assert set(load_recipe("sun-lt").expect) == set(sun)  # none inherited from its base
    assert overall("cifar100-lt-100", "plain") == 0.383
    assert overall("cifar100-lt-50", "plain") == 0.439


@pytest.mark.parametrize("recipe", recipe_names())
def test_every_method_has_the_same_number_of_epochs(recipe):
    runs = [resolve(recipe, method) for method in METHODS]
    assert len({sum(run.stage(n + 1).epochs for n in range(run.num_stages)) for run in runs}) == 1
    for run in runs:
        for number in range(1, run.num_stages + 1):
            stage = run.stage(number)
            if not stage.epochs or (run.method, number) == ("logit-adjusted", 2):
                continue  # the run has the other stage alone, or fits its head without steps
            assert all(0 <= at < stage.epochs for at in stage.lr_milestones)
            # The rate comes down before the stage ends, or where the next one begins.
            below = run.stage(number + 1).lr if number < run.num_stages else stage.lr
            assert min(stage.lr * stage.lr_factor(stage.epochs - 1), below) < run.stage1.lr / 3
            assert stage.images_per_class <= stage.batch_size
        assert run.data.image_size <= run.data.stored_size


def test_the_usual_cifar_recipe():
    stage = resolve("cifar100-lt-100", "plain").stage1
    rates = [stage.lr * stage.lr_factor(epoch) for epoch in (0, 4, 5, 159, 160, 179, 180, 199)]
    assert rates == pytest.approx([0.02, 0.1, 0.1, 0.1, 0.001, 0.001, 0.00001, 0.00001])
    assert (stage.epochs, stage.batch_size, stage.momentum, stage.weight_decay) == (200, 128, 0.9, 0.0002)


def test_nothing_is_downloaded_unasked():
    asked = {None, "efficientnet-lite0"}  # nothing, or what an installed package carries
    assert {resolve(recipe, "oltr").weights for recipe in recipe_names()} == asked
