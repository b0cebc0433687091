"""Options with values that make no sense are refused before any work, and nothing is written."""

from __future__ import annotations

import pytest

from tests.cli.conftest import QUICK


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ("--seed -1", "seed is -1"),
        ("--devices 0", "--devices 1 or more"),
        ("--nodes 0", "--nodes 1 or more"),
        ("--workers -2", "--workers 0 or more"),
        ("--image-size 7", "from 8 to 2048"),
        ("--image-size 9999", "from 8 to 2048"),
        ("--image-size 40", "--size 40, or --image-size 32"),  # the pack has 32 px
        ("--epochs", "--epochs has no value"),
        ("--epochs 0 0", "trains nothing"),
        ("--epochs -1", "trains nothing"),
        ("--epochs 1 2 3", "oltr under recipe glyphs has 2 stages"),
        ("--weights nowhere.pth", "no weight file nowhere.pth"),
        ("--recipe nowhere.yaml", "There is no file nowhere.yaml"),
        ("--stage1-from nowhere", "nowhere is not a run folder"),
        ("--set stage1", "--set stage1 has no value"),
        ("--set stage1.lr=[", "not valid YAML"),
        ("--set stage1.lr=fast", "stage1.lr is 'fast'"),
        ("--set stage1.lr=-1", "stage1.lr is -1"),
        ("--set stage1.lr=nan", "stage1.lr is nan"),
        ("--set stage2.batch_size=0", "stage2.batch_size is 0"),
        ("--set stge1.lr=1", "did you mean stage1"),
        ("--set batch_size=16", "stage1.batch_size or stage2.batch_size"),
        ("--set memory=false", "did you mean settings.memory?"),
        ("--set stage1.sampler=random", "one of: shuffle, class-aware, balanced"),
        ("--set stage2.frozen=[backbne]", "did you mean backbone?"),
        ("--set settings.memry=1", "did you mean memory?"),
        ("--set data.std=[0,1,1]", "data.std is 0"),
        ("--set data.stored_size=10", "data.stored_size is 10"),
        ("--set method=plain", "Try: --method plain"),
    ],
)
def test_train(oltr, pack, tmp_path, options, answer):
    oltr("train", pack, *QUICK, "--out", tmp_path / "run", *options.split()).refused(answer)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ("--weights nowhere.pth", "no weight file nowhere.pth"),
        ("--backbone resnet10 --weights pretrained", "--backbone resnet50 --weights pretrained"),
        ("--backbone resnet18.a1_in2k", "did you mean resnet18.a1_in1k"),
    ],
)
def test_a_dry_run_refuses_weights_that_are_not_there(oltr, pack, options, answer):
    oltr("train", pack, *QUICK, "--dry-run", *options.split()).refused(answer)


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ("--seed -1", "seed -1 is negative"),
        ("--alpha 0", "alpha of 0"),
        ("--alpha nan", "alpha of nan"),
        ("--imbalance 0.5", "imbalance of 0.5"),
        ("--imbalance nan", "imbalance of nan"),
        ("--alpha 6 --imbalance 10", "one profile"),
        ("--min 0", "1 ≤ min ≤ max"),
        ("--max 3 --min 4", "1 ≤ min ≤ max"),
        ("--max 900 --min 1", "Too few images"),
        ("--open nan", "a share below 1 or a whole number"),
        ("--open -1", "a share below 1 or a whole number"),
        ("--open 99", "a smaller --open"),
    ],
)
def test_longtail(oltr, photos, tmp_path, options, answer):
    oltr("data", "longtail", photos, "--out", tmp_path / "lt", *options.split()).refused(answer)
    assert not (tmp_path / "lt").exists()


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("pack PHOTOS --out OUT/x --size 32", "OUT/x.pack"),
        ("pack PHOTOS --out OUT/x.pack --size 0", "1 to 4096 pixels"),
        ("pack PACK --out OUT/x.pack", "is a pack"),
        ("longtail PACK --out OUT/x", "is a pack"),
        ("stats", "a source or --counts FILE"),
        ("stats PHOTOS --counts x.json", "a source or --counts FILE"),
        ("stats --counts x.json", "x.json cannot be read"),
        ("stats PHOTOS --figure OUT/x.jpg", ".png, .svg, .pdf"),
        ("stats PHOTOS --root OUT", "leave --root out"),
        ("check PHOTOS --root nowhere", "nowhere is not a folder"),
        ("curate glyphs --out OUT/x --size 8", "a size of 16 or more"),
        ("curate glyphs --out OUT/x --imbalance 8", "takes no --imbalance"),
        ("curate glyphs --out OUT/x --seed -1", "seed -1 is negative"),
        ("curate cifar100-lt --out OUT/x", "--root with the archive"),
    ],
)
def test_data(oltr, photos, pack, tmp_path, words, answer):
    places = {"PHOTOS": str(photos), "PACK": str(pack), "OUT": str(tmp_path)}

    def placed(text: str) -> str:
        for name, place in places.items():
            text = text.replace(name, place)
        return text

    said = oltr("data", *(placed(word) for word in words.split()))
    said.refused(placed(answer))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ("--score softmx", "did you mean softmax?"),
        ("--threshold nan", "finite"),
        ("--unknown-rate 5", "between 0 and 1"),
        ("--threshold 0.5 --unknown-rate 0.1", "not both"),
        ("--per-class -2", "--per-class -2 is negative"),
        ("--root .", "without a --source"),
        ("--source nowhere", "no file or folder nowhere"),
    ],
)
def test_evaluate(oltr, trained, options, answer):
    before = (trained["oltr"] / "report.json").read_bytes()
    oltr("evaluate", trained["oltr"], *options.split()).refused(answer)
    assert (trained["oltr"] / "report.json").read_bytes() == before


def test_a_score_that_a_method_does_not_have(oltr, trained):
    oltr("evaluate", trained["plain"], "--score", "reachability", "--unknown-rate", "0.1").refused("memory")
