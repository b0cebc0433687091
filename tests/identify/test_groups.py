"""Groups of probes: a table by path, number or identity, or a manifest's column."""

import numpy as np
import pandas as pd
import pytest
import torch

from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.identify.groups import groupings
from oltr.identify.images import manifest_samples
from oltr.identify.samples import GIVEN, Samples

PROBES = Samples(
    "probes",
    {GIVEN: torch.ones(4, 2)},
    np.array(["ann", "bob", "ann", "cy"], dtype=object),
    np.array(["ann/1.png", "bob/1.png", "ann/2.png", "cy/1.png"], dtype=object),
)
MEASURED = np.array([True, True, True, False])


def table(tmp_path, text):
    path = tmp_path / "groups.csv"
    path.write_text(text)
    return path


def test_by_identity_path_and_number(tmp_path):
    for text in (
        "label,sex\nann,f\nbob,m\ncy,m\n",
        "path,sex\nann/1.png,f\nann/2.png,f\nbob/1.png,m\ncy/1.png,m\n",
        "index,sex\n0,f\n2,f\n1,m\n3,m\n",
    ):
        (sex,) = groupings(PROBES, table(tmp_path, text))
        assert sex.column == "sex" and sex.of.tolist() == ["f", "m", "f", "m"]
        assert sex.sizes(MEASURED) == {"f": 2, "m": 1}


def test_several_columns_and_some_of_them(tmp_path):
    path = table(tmp_path, "label,sex,age\nann,f,old\nbob,m,\ndan,m,young\n")
    sex, age = groupings(PROBES, path)
    assert sex.of.tolist() == ["f", "m", "f", ""] and age.of.tolist() == ["old", "", "old", ""]
    assert age.sizes(MEASURED) == {"old": 2, "young": 0}  # there is no probe of dan
    assert [each.column for each in groupings(PROBES, path, ["age"])] == ["age"]
    with pytest.raises(UserError, match="did you mean sex"):
        groupings(PROBES, path, ["sexx"])


def test_columns_of_a_manifest():
    """Test and open images in this order, whatever that of the rows is."""
    rows = [
        ("cy/w/1.png", "cy", "open", ""),
        ("ann/e/1.png", "ann", "test", "n"),
        ("ann/w/0.png", "ann", "train", "x"),
        ("bob/e/1.png", "bob", "test", "s"),
        ("bob/e/0.png", "bob", "train", "n"),
        ("ann/w/2.png", "ann", "test", "n"),
    ]
    table = pd.DataFrame(rows, columns=["path", "label", "split", "site"])
    probes = manifest_samples("photos.csv", Manifest.build(table, "/photos"))
    assert probes.labels.tolist() == PROBES.labels.tolist()
    (site,) = groupings(probes, columns=["site", "site"])
    assert site.names == ("n", "s") and site.of.tolist() == ["n", "s", "n", ""]
    assert site.sizes(MEASURED) == {"n": 2, "s": 1}
    (folder,) = groupings(probes, columns=["folder"])
    assert folder.of.tolist() == ["e", "e", "w", "w"]
    with pytest.raises(UserError, match="did you mean 'site'"):
        groupings(probes, columns=["sit"])
    with pytest.raises(UserError, match=r"no column 'site'.*\n.*--groups"):
        groupings(PROBES, columns=["site"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,sex\nann,f\n", "no column of path, index, label"),
        ("path,label,sex\na,ann,f\n", "more than one column"),
        ("label,sex\nann,f\nann,m\n", "1 row for a label that it had before"),
        ("label,sex\neve,f\n", "no row for any probe"),
        ("label\nann\n", "only one column: label"),
        ("label,sex, sex\nann,f,m\n", "two columns of one name"),
        ("", "cannot be read as a table of groups: the file is empty"),
    ],
)
def test_bad_tables(tmp_path, text, words):
    with pytest.raises(UserError, match=words):
        groupings(PROBES, table(tmp_path, text))


def test_a_file_that_is_no_table(tmp_path):
    (tmp_path / "sex.txt").write_text("label,sex\nann,f\n")
    with pytest.raises(UserError, match=r"(?s)sex\.txt is not a table of groups.*\.csv or \.parquet"):
        groupings(PROBES, tmp_path / "sex.txt")
