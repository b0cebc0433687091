"""`oltr identify`: feature files without a run, images with one, and bad input."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.helpers.pictures import class_folders

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(8, 16))
CENTRES[6:] = CENTRES[:2]  # strangers who look like people of the gallery


def faces(path, people, each, spread=0.9, seed=0):
    """A feature file of so many images of these people."""
    rng, who = np.random.default_rng(seed), np.repeat(people, each)
    features = (CENTRES[who] + spread * rng.normal(size=(len(who), 16))).astype(np.float32)
    np.savez(path, features=features, labels=np.array([f"p{number}" for number in who]))
    return path


@pytest.fixture
def files(tmp_path):
    return {
        "probes": faces(tmp_path / "probes.npz", [0, 1, 2, 3], 10),
        "gallery": faces(tmp_path / "gallery.npz", [0, 1, 2, 3], 2, seed=1),
        "distractors": faces(tmp_path / "far.npz", [4, 5, 6, 7], 50, seed=2),
        "train": faces(tmp_path / "train.npz", [0, 0, 0, 4, 5], 2, spread=0.5, seed=3),
    }


def asked(files, *names):
    return [word for name in names for word in (f"--{name}", files[name])]


def test_feature_files_alone(oltr, files):
    said = oltr("identify", *asked(files, "probes", "gallery", "distractors"), "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert 0 < found["rank1"] < found["rank5"] <= 1 and found["by_shot"] is None
    assert found["counts"] | {"probes": 40, "people_absent": 0, "distractors": 200} == found["counts"]
    assert found["embedding"] == "given" and found["run"] is None
    dirs = found["detection_identification"]
    assert dirs["0.001"] <= dirs["0.01"] <= found["rank1"]
    alone = json.loads(oltr("identify", *asked(files, "probes", "gallery"), "--json").out)
    assert alone["rank1"] > found["rank1"]


def test_the_same_by_faiss(oltr, files):
    pytest.importorskip("faiss")
    command = ["identify", *asked(files, "probes", "gallery", "distractors", "train"), "--json"]
    assert oltr(*command, "--search", "blocks").out == oltr(*command, "--search", "faiss").out


def test_without_faiss(oltr, files, monkeypatch):
    import sys

    command = ["identify", *asked(files, "probes", "gallery"), "--json"]
    expected = oltr(*command, "--search", "blocks").out
    monkeypatch.setattr("oltr.identify.search.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert oltr(*command).out == expected
    oltr(*command, "--search", "faiss").refused("faiss is not installed")


def test_megafaces_protocol_leaves_the_other_probes_out(oltr, files):
    """The probes are each other's mates, one at a time beside distractors; people have unequal numbers."""
    kept = np.r_[0:10, 10:13, 20:26, 30:32]
    all_of = np.load(files["probes"])
    np.savez(files["probes"], features=all_of["features"][kept], labels=all_of["labels"][kept])
    options = ["--probes", files["probes"], "--gallery", files["probes"], *asked(files, "distractors")]
    each = json.loads(oltr("identify", *options, "--mates", "each", "--json").out)
    loaded = {name: np.load(files[name])["features"].astype(float) for name in ("probes", "distractors")}
    units = {k: v / np.linalg.norm(v, axis=1, keepdims=True) for k, v in loaded.items()}
    far = (units["probes"] @ units["distractors"].T).max(axis=1)
    near = units["probes"] @ units["probes"].T
    who = all_of["labels"][kept]
    pairs = [(p, q) for p in range(len(who)) for q in range(len(who)) if p != q and who[p] == who[q]]
    hits = [near[p, q] > far[p] for p, q in pairs]
    assert each["counts"]["trials"] == len(pairs) == 90 + 6 + 30 + 2
    assert each["rank1"] == pytest.approx(np.mean(hits)) and each["mates"] == "each"
    nearest = json.loads(oltr("identify", *options, "--json").out)
    assert nearest["rank1"] > each["rank1"]


def test_pseudo_shots_and_groups(oltr, files, tmp_path):
    groups = tmp_path / "groups.csv"
    groups.write_text("label,sex\np0,f\np1,f\np2,m\np3,m\np9,x\n")
    options = [*asked(files, "probes", "gallery", "train"), "--groups", groups]
    said = oltr("identify", *options, "--json")
    found = json.loads(said.out)
    sizes = found["counts"]["by_shot"]
    assert set(sizes) == {"many", "few", "one", "zero"} and sum(sizes.values()) == 40
    assert sizes["zero"] > 20 and sizes["many"] + sizes["few"] > 0
    weighted = [found["by_shot"][n] * size for n, size in sizes.items() if size]
    assert sum(weighted) / 40 == pytest.approx(found["rank1"])
    assert list(found["by_group"]["sex"]) == ["f", "m", "x"] and found["by_group"]["sex"]["x"] is None
    rates = found["by_group"]["sex"]
    assert found["gaps"]["sex"]["gap"] == pytest.approx(abs(rates["f"] - rates["m"]))
    assert "sex: no probe with a mate is in x" in said.err
    assert "1 person of the probes in the training images too: p0" in said.err
    table = oltr("identify", *options).out
    assert all(word in table for word in ("zero", "full test", "sex", "gap", "open set"))
    assert "| --:" in oltr("identify", *options, "--markdown").out.replace("|--:", "| --:")


def test_many_groups_are_told_by_gap_and_worst(oltr, files, tmp_path):
    groups = tmp_path / "groups.csv"
    groups.write_text("index,site\n" + "".join(f"{row},s{row % 9}\n" for row in range(40)))
    command = ["identify", *asked(files, "probes", "gallery", "distractors"), "--groups", groups]
    said, found = oltr(*command).out, json.loads(oltr(*command, "--json").out)
    assert len(found["by_group"]["site"]) == 9 and found["gaps"]["site"]["worst"] in said
    assert "site: gap" in said and "s8" not in said.splitlines()[3]


def test_shots_from_another_network(oltr, files, tmp_path):
    rows = np.zeros((40, 2), np.float32)
    rows[:, 0], rows[30:, 1] = 1, 9
    np.savez(tmp_path / "p.npz", features=rows, labels=np.arange(40))
    np.savez(tmp_path / "t.npz", features=np.eye(2, dtype=np.float32)[[0, 0, 1]], labels=np.arange(3))
    options = [*asked(files, "probes", "gallery"), "--shots-from", tmp_path / "p.npz", tmp_path / "t.npz"]
    found = json.loads(oltr("identify", *options, "--json").out)
    assert found["counts"]["by_shot"] == {"many": 0, "few": 30, "one": 10, "zero": 0}
    assert found["by_shot"]["many"] is None
    oltr("identify", *options, "--train", files["train"]).refused("do not go together")
    swapped = [*options[:-2], tmp_path / "t.npz", tmp_path / "p.npz"]
    oltr("identify", *swapped).refused("3 features for 40 probes")
    np.savez(tmp_path / "none.npz", features=np.ones((0, 2), np.float32), labels=np.array([], int))
    oltr("identify", *options[:-1], tmp_path / "none.npz").refused("none.npz is empty")


def test_people_absent_from_the_gallery(oltr, files, tmp_path):
    few = faces(tmp_path / "few.npz", [0, 1], 2, seed=1)
    said = oltr("identify", "--probes", files["probes"], "--gallery", few, "--json")
    found = json.loads(said.out)
    assert (
        "20 probes of 40 have no mate" in said.err and "2 people absent from the gallery: p2, p3" in said.err
    )
    expected = {"probes": 20, "probes_without_mate": 20, "people": 4, "people_absent": 2, "strangers": 20}
    assert found["counts"] | expected == found["counts"]
    alone = faces(tmp_path / "alone.npz", [0], 2, seed=1)
    oltr("identify", "--probes", files["probes"], "--gallery", alone).refused("nobody is in the gallery")
    oltr("identify", *asked(files, "probes", "gallery"), "--mates", "each").refused("--distractors")
    nobody = faces(tmp_path / "nobody.npz", [4, 5], 2)
    command = ["identify", "--gallery", nobody, "--probes"]
    oltr(*command, files["probes"]).refused(
        "No probe has a mate", "probes are p0,", "in the gallery are p4, p5"
    )
    np.save(tmp_path / "nameless.npy", np.ones((3, 16), np.float32))
    oltr(*command, tmp_path / "nameless.npy").refused("the probes are without names")
    two = faces(tmp_path / "two.npz", [0, 1, 2], [1, 5, 5])
    said = oltr("identify", "--probes", two, "--gallery", two)
    assert "1 probe of 11 has no mate" in said.err


def test_zeros(oltr, files):
    """As some tools write for an image in which they found no face."""
    all_of = dict(np.load(files["gallery"]))
    all_of["features"][[2, 5]] = 0
    all_of["features"][3] *= 1e-30  # is no zero, although its square is
    np.savez(files["gallery"], **all_of)
    said = oltr("identify", *asked(files, "probes", "gallery"))
    assert said.code == 0 and "2 features of" in said.err and "gallery.npz are all zeros" in said.err


@pytest.mark.parametrize("mates", ["nearest", "each"])
def test_an_image_without_a_name_is_no_false_alarm_to_itself(oltr, files, tmp_path, mates):
    """Twenty probes without a name, in one source with the gallery: their nearest are others."""
    named, far = np.load(files["probes"]), np.load(files["distractors"])["features"][:20]
    features = np.concatenate([named["features"], far])
    labels = np.array([*named["labels"], *[""] * 20])
    np.savez(tmp_path / "all.npz", features=features, labels=labels)
    command = ["identify", "--probes", tmp_path / "all.npz", "--gallery", tmp_path / "all.npz"]
    found = json.loads(oltr(*command, "--mates", mates, "--json").out)
    units = features.astype(float) / np.linalg.norm(features.astype(float), axis=1, keepdims=True)
    similar = units[40:] @ (units if mates == "nearest" else units[40:]).T
    similar[np.isclose(similar, 1)] = -1
    assert found["thresholds"]["0.01"] == pytest.approx(similar.max())
    assert found["counts"] | {"strangers": 20, "distractors": 20, "people": 4} == found["counts"]
    alone = {"features": features[:41], "labels": labels[:41]}
    np.savez(tmp_path / "all.npz", **alone)  # the only one of no name: with --mates each beside nobody
    limit = json.loads(oltr(*command, "--mates", mates, "--json").out)["thresholds"]["0.01"]
    assert (limit is None) == (mates == "each")


def test_the_same_images_under_other_names(oltr, files, tmp_path):
    command = ["identify", *asked(files, "probes", "gallery")]
    assert "very same feature" not in oltr(*command).err
    there, more = np.load(files["gallery"]), np.load(files["probes"])
    for rows, words in (([3], "1 probe has"), ([3, 17, 3], "2 probes have")):
        both = {key: np.concatenate([there[key], more[key][rows]]) for key in ("features", "labels")}
        np.savez(tmp_path / "both.npz", **both)
        said = oltr("identify", *asked(files, "probes"), "--gallery", tmp_path / "both.npz")
        assert said.code == 0 and f"{words} a mate with the very same feature" in said.err


def test_people_of_the_probes_among_the_distractors(oltr, files):
    said = oltr("identify", *asked(files, "probes", "gallery"), "--distractors", files["train"])
    assert said.code == 0 and "1 person of the probes among the distractors too: p0" in said.err


def test_bad_input(oltr, files, tmp_path):
    features = np.ones((3, 9), np.float32)
    np.savez(tmp_path / "wide.npz", features=features, labels=["p0"] * 3)
    oltr("identify", "--probes", files["probes"], "--gallery", tmp_path / "wide.npz").refused(
        "unequal width", "16", "9"
    )
    features[1, 2] = np.nan
    np.savez(tmp_path / "nan.npz", features=features, labels=["p0"] * 3)
    oltr("identify", "--probes", tmp_path / "nan.npz", "--gallery", files["gallery"]).refused("NaN", "row 1")
    good = asked(files, "probes", "gallery")
    np.savez(tmp_path / "none.npz", features=np.ones((0, 16), np.float32), labels=np.array([], str))
    for name in ("probes", "gallery", "distractors", "train"):
        oltr("identify", *good, f"--{name}", tmp_path / "none.npz").refused("none.npz is empty")
    oltr("identify", *good, "--ranks", 0).refused("--ranks")
    oltr("identify", *good, "--shot-similarity", 7).refused("--shot-similarity")
    oltr("identify", *good, "--embedding", "meta").refused("come from files")
    oltr("identify", *good, "--groups", tmp_path / "none.csv").refused("none.csv")
    oltr("identify", *good, "--by", "sex").refused("sex")
    oltr("identify", "--probes", tmp_path, "--gallery", files["gallery"]).refused("no run was named")
    oltr("identify", "--probes", tmp_path / "typo", "--gallery", files["gallery"]).refused(
        "no file or folder"
    )


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    return class_folders(folder / "p", {"ann": 3, "bob": 2, "cy": 1}, size=32), class_folders(
        folder / "g", {"ann": 1, "bob": 2, "dan": 2}, size=32
    )


def test_images_by_a_run_with_both_embeddings(oltr, trained, people, pack):
    command = ["identify", trained["oltr"], "--probes", people[0], "--gallery", people[1]]
    said = oltr(*command, "--train", pack, "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert list(found["embeddings"]) == ["meta", "direct"] and found["embedding"] == "meta"
    assert found["counts"] | {"probes": 5, "people_absent": 1, "strangers": 1} == found["counts"]
    assert sum(found["counts"]["by_shot"].values()) == 5
    direct = json.loads(oltr(*command, "--embedding", "direct", "--json").out)
    assert list(direct["embeddings"]) == ["direct"]
    assert direct["rank1"] == found["embeddings"]["direct"]["rank1"]
    assert "images, those for training" in said.err and "test and open" not in said.err
    assert "meta" in oltr(*command).out
    plain = ["identify", trained["plain"], *command[2:]]
    assert list(json.loads(oltr(*plain, "--json").out)["embeddings"]) == ["direct"]
    oltr(*plain, "--embedding", "meta").refused("no meta-embedding")


def test_features_are_those_of_the_runs_outputs(trained, pack):
    """Test and open images, as the run itself computed them when it was trained."""
    import torch

    from oltr.identify.images import embedded, list_samples
    from oltr.runs.trained_run import TrainedRun

    run = TrainedRun(trained["oltr"])
    read = embedded(list_samples(str(pack), by_run=True), run)
    kept = [run.outputs[split] for split in ("test", "open")]
    torch.testing.assert_close(read.of("direct"), torch.cat([each.features for each in kept]))
    torch.testing.assert_close(read.of("meta"), torch.cat([each.embeddings for each in kept]))
    assert len(read) == len(read.paths) and read.named.all()
    assert read.root is None  # another pack beside it may have paths that are the same, and other images


def test_groups_from_a_manifest_and_no_image_is_its_own_mate(oltr, trained, people, tmp_path):
    """One manifest for both: the image itself does not count, so ann and bob have mates and cy has none."""
    rows = [
        [f"{n}/{i}.png", n, "n" if i else "s"]
        for n, k in (("ann", 3), ("bob", 2), ("cy", 1))
        for i in range(k)
    ]
    manifest = tmp_path / "faces.csv"
    pd.DataFrame(rows, columns=["path", "label", "site"]).assign(root=str(people[0])).to_csv(
        manifest, index=False
    )
    probes = tmp_path / "first.csv"
    first = pd.read_csv(manifest)
    first[first["path"].str.endswith("0.png")].to_csv(probes, index=False)
    command = ["identify", trained["plain"], "--gallery", manifest, "--by", "site", "--json"]
    found = json.loads(oltr(*command, "--probes", manifest).out)
    assert found["counts"]["probes"] == 5 and found["counts"]["people_absent"] == 1
    assert found["counts"]["by_group"] == {"site": {"n": 3, "s": 2}}
    some = json.loads(oltr(*command, "--probes", probes).out)
    assert some["counts"]["probes"] == 2 and some["counts"]["people_absent"] == 1
    moved = first.assign(path=people[0].name + "/" + first["path"], root=str(people[0].parent))
    moved.to_csv(probes, index=False)  # the same files, said from another folder
    assert json.loads(oltr(*command, "--probes", probes).out)["counts"] == found["counts"]


def test_a_person_trained_on(oltr, trained, tmp_path):
    names = [entry["name"] for entry in json.loads((trained["plain"] / "classes.json").read_text())]
    folder = class_folders(tmp_path / "p", {names[0]: 2, "eve": 2}, size=32)
    said = oltr("identify", trained["plain"], "--probes", folder, "--gallery", folder)
    assert said.code == 0, said.err
    assert f"1 person of the probes in the training images too: {names[0]}" in said.err


def test_what_is_left_behind(oltr, files, tmp_path):
    groups, out = tmp_path / "groups.csv", tmp_path / "found"
    groups.write_text("label,sex\np0,f\np1,f\np2,m\np3,m\n")
    command = ["identify", *asked(files, "probes", "gallery", "distractors"), "--json", "--out", out]
    said = oltr(*command, "--groups", groups)
    assert said.code == 0 and json.loads((out / "identify.json").read_text()) == json.loads(said.out)
    written = ["by-group.png", "by-group.svg", "identify.json", "table.md"]
    assert sorted(path.name for path in out.iterdir()) == written
    found = json.loads(said.out)["gaps"]["sex"]
    words = f"worst {found['worst']}; by chance up to {100 * found['by_chance']:.2f}"
    assert words in (out / "table.md").read_text()
    assert "written: " in said.err
    assert oltr(*command).code == 0
    assert sorted(path.name for path in out.iterdir()) == written[2:]  # without groups no figure
    oltr(*command[:-1], groups).refused("cannot be written")
