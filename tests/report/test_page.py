"""The report page: one whole file that escapes what came from outside and says what it lacks."""

from __future__ import annotations

import base64
import json
import re
import warnings
from collections import Counter
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import torch

from oltr.errors import UserError
from oltr.openset import RejectionRule
from oltr.report.page.runs import measured_runs
from oltr.report.page.write import write_page
from oltr.runs.outputs import Outputs
from oltr.runs.rule import as_values
from oltr.runs.trained_run import TrainedRun
from oltr.training.build import build_method, build_network
from oltr.training.run_folder import RunFolder
from tests.report.made_run import COUNTS, made_pack, made_run

WILD = ("<script>alert(1)</script>", "a & \"b\" 'c'", "</script><img src=x onerror=alert(2)>", "{{ 7 * 7 }}")


class Seen(HTMLParser):
    """The elements of a page, the addresses in it, and its text."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "srcset", "action")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data):
        self.text += data


def make(tmp_path, *runs, **more):
    out = tmp_path / "page" / "report.html"
    pictures = write_page(list(runs), out, **more)
    assert not list(tmp_path.rglob("*.part"))
    return out.read_text(encoding="utf-8"), pictures


def missing(pictures):
    return {picture.figure.name: picture.missing.what for picture in pictures if picture.missing}


@pytest.fixture
def no_figures(monkeypatch):
    """Drawing takes most of the time, and not every test looks at figures."""
    monkeypatch.setattr("oltr.report.page.write.draw_pictures", lambda runs, folder: [])


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return made_pack(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def two(pack, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [made_run(folder / "first", pack), made_run(folder / "second", pack, "oltr", seed=1, sure=4.0)]


def test_two_runs_side_by_side(tmp_path, two):
    text, pictures = make(tmp_path, *two)
    seen = Seen(text)
    assert all(address.startswith(("data:image/", "#")) for address in seen.addresses)
    assert "http-equiv" in text and "default-src 'none'" in text
    assert seen.tags.count("script") == seen.tags.count("style") == 1 and not seen.handlers
    assert "over first" in seen.text and "second, the best of 2 runs: classifies" in seen.text
    absent = missing(pictures)
    # Nobody trained a network here or named a column; all that outputs are enough for is there.
    assert set(absent) <= {"method", "centroids", "attention", "infused", "activation", "by-group"}
    for picture in pictures:
        assert f'id="figure-{picture.figure.name}"' in text
        assert picture.missing is not None or picture.source in text
    for what in absent.values():
        assert what in seen.text
    assert "oltr suite ablation" in seen.text
    assert text.count('data-group="') == 4 and "thumbnails" not in seen.text.lower()
    assert text.count("data:image/webp") > 0


def test_markup_in_names_stays_text(tmp_path):
    name = "<b onclick=x>& $\\frac{$ 'one' -- \"two\" 雪"
    run = made_run(tmp_path / name, made_pack(tmp_path / "data", WILD))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text, pictures = make(tmp_path, run)
    seen = Seen(text)
    assert seen.tags.count("script") == 1 and not seen.handlers and "b" not in seen.tags
    for part in (*WILD, name):
        assert part in seen.text
    assert {"threshold", "confusion", "oscr"}.isdisjoint(missing(pictures))
    # The only raw closing tag of a script is the page's own.
    assert text.count("</script>") == 1
    for picture in pictures:
        if picture.kind == "svg":
            svg = base64.b64decode(picture.source.partition(",")[2])
            tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
            assert "script" not in tags and "svg" in tags


@pytest.mark.parametrize(
    ("sizes", "absent", "words"),
    [
        ({"unseen": 0}, {"threshold", "open-classes", "oscr"}, "not tested on unknown ones"),
        ({"unseen": 1}, {"open-classes"}, "The open images have 1 class name"),
        ({"val": 0}, set(), "No validation images: the softmax threshold is its default, 0.1."),
        ({"val": 0, "unseen": 0}, {"threshold", "open-classes", "oscr"}, "There were no open images"),
    ],
)
def test_splits_that_are_not_there(tmp_path, sizes, absent, words):
    run = made_run(tmp_path / "run", made_pack(tmp_path / "data", **sizes))
    text, pictures = make(tmp_path, run)
    assert {"class-gain", "reachability"} | absent <= set(missing(pictures))
    assert {"confusion", "calibration", "scores", "distribution"}.isdisjoint(missing(pictures))
    assert words in Seen(text).text


@pytest.mark.usefixtures("no_figures")
def test_a_single_class(tmp_path):
    run = made_run(tmp_path / "run", made_pack(tmp_path / "data", ["only"], [7]))
    text, _ = make(tmp_path, run)
    assert "knows a single class" in text and text.count('data-group="few"') == 1


def test_images_that_are_gone(tmp_path):
    pack = made_pack(tmp_path / "data")
    run = made_run(tmp_path / "run", pack, sure=1.0)
    there, _ = make(tmp_path, run)
    assert "data:image/webp" in there
    pack.unlink()
    text, pictures = make(tmp_path, run)
    assert "data:image/webp" not in text and "No thumbnails." in text
    for name in ("open-classes", "attention", "infused", "activation"):
        assert "not there any more" in missing(pictures)[name]
    assert re.search(r"test row \d+", text)  # still says which images


def test_what_all_networks_warn_of_is_said_once(tmp_path):
    pack = made_pack(tmp_path / "data")
    runs = [RunFolder(made_run(tmp_path / name, pack, "oltr")) for name in "ab"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run in runs:  # untrained, and so few pixels that there is no map to attend to
            method = build_method(run.config(), torch.tensor(COUNTS))
            run.save_weights(run.model, build_network(run.config(), method, 2).state_dict())
    with pytest.warns(UserWarning) as said:
        _, pictures = make(tmp_path, *(run.path for run in runs), figures=tmp_path / "figures")
    assert [str(warning.message) for warning in said] == [
        "The backbone gives no feature map (frozen features, or a small image): attention is off."
    ]
    absent = missing(pictures)
    assert "method" not in absent and "infused" not in absent and "no attention" in absent["attention"]
    assert (
        "of two runs" in Seen((tmp_path / "page" / "report.html").read_text()).text
    )  # the outputs are made up


def write_decision(run, rule):
    """Put a rule into run.yaml as a hand would, with report.json left under the old one."""
    folder = RunFolder(run)
    folder.write(folder.run() | {"decision": as_values(rule)})


def test_a_score_that_cannot_be_computed_any_more(tmp_path):
    pack = made_pack(tmp_path / "data")
    run = made_run(tmp_path / "run", pack)
    write_decision(run, RejectionRule("knn", 1.5, 0.05))
    pack.unlink()
    text, pictures = make(tmp_path, run)
    assert "the score of its rejection rule cannot be computed now" in text and text.count("Caution.") == 1
    assert "An image is unknown when its softmax score is below" in text
    assert "which rejects at most 5\u00a0% of known validation images" in text
    (measured,) = measured_runs([run])
    assert (measured.report.open.score, measured.report.open.unknown_rate) == ("softmax", 0.05)
    assert "oscr" not in missing(pictures)
    assert TrainedRun(run).rule == RejectionRule("knn", 1.5, 0.05)  # the run stays as it is


@pytest.mark.usefixtures("no_figures")
def test_one_rule_for_verdict_table_and_commands(tmp_path, pack):
    run = made_run(tmp_path / "run", pack, rule=RejectionRule("max-logit", 2.5))
    text = Seen(make(tmp_path, run)[0]).text
    assert "An image is unknown when its max-logit score is below 2.5." in text
    assert "Open: score max-logit, threshold 2.5." in text and "Caution" not in text
    assert "--score max-logit --threshold 2.5" in text.replace("\\\n", "").replace("    ", "")
    (measured,) = measured_runs([run])
    rejected = (measured.run.decisions.predictions == -1)[measured.run.decisions.test_images :]
    assert f"detects {100 * rejected.double().mean():.0f} of 100 unknown ones" in text


@pytest.mark.usefixtures("no_figures")
def test_a_report_under_another_rule(tmp_path, pack):
    run = made_run(tmp_path / "run", pack, rule=RejectionRule("softmax", 0.1))
    write_decision(run, RejectionRule("softmax", 0.7))
    text = Seen(make(tmp_path, run)[0]).text
    assert text.count("Caution.") == 1
    assert "(the rejection rule is softmax at threshold 0.7, not softmax at threshold 0.1)" in text
    assert "score is below 0.7" in text and f"oltr evaluate {run} updates the report" in text


@pytest.mark.usefixtures("no_figures")
def test_a_run_folder_of_before_there_was_a_rule(tmp_path, pack):
    run = made_run(tmp_path / "run", pack)
    folder = RunFolder(run)
    facts = folder.run()
    facts["config"].pop("decision")
    folder.write({key: value for key, value in facts.items() if key != "decision"})
    text = Seen(make(tmp_path, run)[0]).text
    assert "which rejects at most 5\u00a0% of known validation images" in text and "Caution" not in text


def edit(run, change):
    """What a hand, or another version, made of a report.json."""
    data = json.loads((run / "report.json").read_text())
    change(data)
    (run / "report.json").write_text(json.dumps(data))


@pytest.mark.usefixtures("no_figures")
def test_numbers_come_from_the_outputs(tmp_path, pack):
    run = made_run(tmp_path / "run", pack)
    right = Seen(make(tmp_path, run)[0]).text
    assert "Caution" not in right

    def improve(data):
        data["closed"].update(overall=0.999, few=0.998)
        data["method"] = "magic"
        data["per_class"][0].update(name="mammoth", accuracy=0.123)
        data["open"]["auroc"] += 1e-6  # no difference that anybody sees

    edit(run, improve)
    text = Seen(make(tmp_path, run)[0]).text
    caution = re.search("Caution. run: its report.json does not match the run .*", text)[0]
    for words in (
        "method is 'plain', not 'magic'",
        "names or training images",
        "closed.few, closed.overall",
    ):
        assert words in caution
    assert "other values for 1 class)" in caution and "auroc" not in caution and "mammoth" not in text
    assert "99.9" not in text and text.replace(caution, "").split() == right.split()


@pytest.mark.usefixtures("no_figures")
def test_a_report_of_other_splits(tmp_path, pack):
    run = made_run(tmp_path / "run", pack)
    edit(run, lambda data: data.pop("open"))
    text = Seen(make(tmp_path, run)[0]).text
    assert "other values of open." in text and "score is below" in text
    edit(run, lambda data: data["closed"].pop("few"))
    with pytest.raises(UserError, match="not a complete report"):
        make(tmp_path, run)


@pytest.mark.usefixtures("no_figures")
def test_a_run_gone_astray_is_named(tmp_path, pack, two):
    run = made_run(tmp_path / "astray", pack)
    file = run / "outputs" / "test.safetensors"
    outputs = Outputs.load(file)
    outputs.logits[3] = torch.nan
    outputs.save(file)
    with pytest.raises(UserError, match=r"^astray: .* NaN"):
        make(tmp_path, *two, run)


@pytest.mark.parametrize("place", ["out", "figures"])
def test_what_cannot_be_written_is_found_before_any_work(tmp_path, monkeypatch, place):
    (tmp_path / "file").touch()
    monkeypatch.setattr("oltr.report.page.write.measured_runs", lambda *_: pytest.fail("too late"))
    places = {"out": tmp_path / "new" / "report.html", "figures": tmp_path / "pictures"}
    places[place] = tmp_path / "file" / "sub" / "report.html"
    with pytest.raises(UserError, match="cannot be written: Not a directory"):
        write_page([tmp_path / "run"], places["out"], places["figures"])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_runs_with_and_without_open_images(tmp_path, two):
    other = made_run(tmp_path / "other", made_pack(tmp_path / "data", unseen=0))
    text, pictures = make(tmp_path, two[0], other, two[1])
    notes = {picture.figure.name: picture.note for picture in pictures if picture.missing is None}
    for name in ("threshold", "oscr", "open-classes", "class-gain"):
        assert notes[name] == "Not shown: other."
    assert notes["calibration"] == notes["spectrum"] == ""
    seen = Seen(text).text
    assert "24 test images, 8 open images (first, second); 24 test images (other)" in seen
    assert "second, the best of 2 runs on the same data: classifies" in seen


def test_runs_whose_open_images_have_no_names(tmp_path, two):
    other = made_run(tmp_path / "other", made_pack(tmp_path / "data", unseen=1))
    pictures = {picture.figure.name: picture for picture in make(tmp_path, *two, other)[1]}
    assert pictures["open-classes"].note == "Not shown: other." and pictures["oscr"].note == ""


@pytest.mark.usefixtures("no_figures")
def test_one_baseline_for_the_table_and_the_gains(tmp_path, pack):
    methods = {"zero": ("oltr", 5.0), "base": ("plain", 1.0), "last": ("focal", 0.5)}
    runs = [
        made_run(tmp_path / name, pack, method, sure=sure, seed=9) for name, (method, sure) in methods.items()
    ]
    text = make(tmp_path, *runs)[0]
    seen = Seen(text).text
    assert seen.count("over base") == 2 and "over zero" not in seen
    # What is folded is open for the best run.
    assert re.findall(r"<details open>\s*<summary>([^<]*)", text) == ["zero", "zero"]


@pytest.mark.usefixtures("no_figures")
def test_classes_taken_for_each_other(tmp_path, pack):
    run = made_run(tmp_path / "run", pack, sure=0.5)
    outputs = Outputs.load(run / "outputs" / "test.safetensors")
    pairs = Counter(zip(outputs.labels.tolist(), outputs.logits.argmax(1).tolist(), strict=True))
    wrong = sorted((-images, pair) for pair, images in pairs.items() if pair[0] != pair[1])
    images, (true, taken) = -wrong[0][0], wrong[0][1]
    text = make(tmp_path, run)[0]
    first = re.search(r'class="paper pairs">.*?<tbody>\s*<tr>(.*?)</tr>', text, re.DOTALL)[1]
    names = [entry["name"] for entry in RunFolder(run).classes()]
    share = f"{100 * images / 6:.1f} %"
    assert re.findall(r"<t[hd][^>]*>([^<]*)", first) == [names[true], names[taken], f"{images} of 6", share]
    sure = made_run(tmp_path / "sure", pack, sure=99.0)
    assert "No test image was assigned to another known class." in make(tmp_path, sure)[0]


@pytest.mark.usefixtures("no_figures")
def test_runs_that_know_other_classes_are_refused(tmp_path, two):
    other = made_run(tmp_path / "other", made_pack(tmp_path / "data", ["ant", "bee", "cat", "eel"]))
    with pytest.raises(UserError, match="do not know the same classes") as problem:
        make(tmp_path, two[0], other)
    assert "dog, eel" in problem.value.why
    assert not (tmp_path / "page").exists()


def test_runs_on_other_images_are_compared_as_far_as_they_can_be(tmp_path, two):
    other = made_run(tmp_path / "other", made_pack(tmp_path / "data", counts=COUNTS[::-1], test=5))
    text, pictures = make(tmp_path, two[0], other)
    assert "Not the same data as first: other." in text
    absent = missing(pictures)
    assert (
        "not tested on the same images" in absent["class-gain"]
        and "different numbers" in absent["distribution"]
    )
    assert "calibration" not in absent


@pytest.mark.usefixtures("no_figures")
def test_a_run_given_twice_counts_once(tmp_path, two):
    text, _ = make(tmp_path, two[0], two[0])
    assert "best of" not in text and "over first" not in text


@pytest.mark.usefixtures("no_figures")
def test_outputs_of_another_run_are_refused(tmp_path, two):
    pack = made_pack(tmp_path / "data", ["a", "b"], [9, 3])
    run = made_run(tmp_path / "run", pack)
    (run / "outputs" / "val.safetensors").write_bytes((two[0] / "outputs" / "val.safetensors").read_bytes())
    with pytest.raises(UserError, match="run: The outputs of val have 4 classes, the run 2"):
        make(tmp_path, run)


def test_the_same_runs_give_the_same_page(tmp_path, two):
    assert make(tmp_path / "a", two[0])[0].replace("/a/", "/") == make(tmp_path / "b", two[0])[0].replace(
        "/b/", "/"
    )


def test_a_thousand_classes_stay_small(tmp_path):
    names = [f"a rather long name of class {number}" for number in range(1000)]
    pack = made_pack(tmp_path / "data", names, [2] * 1000, test=1, val=0, unseen=50)
    runs = [made_run(tmp_path / f"run{seed}", pack, seed=seed) for seed in range(3)]
    text, _ = make(tmp_path, *runs)
    assert text.count('data-group="few"') == 1000 and len(text.encode()) < 15e6
