"""Groups of probes: a table by path, number or identity, or a manifest's column."""

import numpy as np
import pandas as pd
import pytest
import torch

from oltr.errors import UserError
from oltr.identify.groups import groupings
from oltr.identify.samples import GIVEN, Samples

PROBES = Samples(
    "probes",
    {GIVEN: torch.ones(4, 2)},
    np.array(["ann", "bob", "ann", "cy"], dtype=object),
    np.array(["ann/1.png", "bob/1.png", "ann/2.png", "cy/1.png"], dtype=object),
    pd.DataFrame({"site": ["n", "s", "n", ""]}),
)
HITS, TRIALS = np.array([1.0, 0.0, 0.0, np.nan]), np.array([1, 1, 1, 0])


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
        assert sex.rates(HITS, TRIALS) == {"f": 0.5, "m": 0.0} and sex.sizes(TRIALS > 0) == {"f": 2, "m": 1}


def test_several_columns_and_some_of_them(tmp_path):
    path = table(tmp_path, "label,sex,age\nann,f,old\nbob,m,\ndan,m,young\n")
    sex, age = groupings(PROBES, path)
    assert sex.of.tolist() == ["f", "m", "f", ""] and age.of.tolist() == ["old", "", "old", ""]
    assert age.rates(HITS, TRIALS) == {"old": 0.5, "young": None}  # there is no probe of dan
    assert [each.column for each in groupings(PROBES, path, ["age"])] == ["age"]
    with pytest.raises(UserError, match="did you mean sex"):
        groupings(PROBES, path, ["sexx"])


def test_columns_of_a_manifest():
    (site,) = groupings(PROBES, columns=["site"])
    assert site.names == ("n", "s") and site.rates(HITS, TRIALS) == {"n": 0.5, "s": 0.0}
    with pytest.raises(UserError, match="site"):
        groupings(PROBES, columns=["sit"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,sex\nann,f\n", "no column of path, index, label"),
        ("path,label,sex\na,ann,f\n", "more than one column"),
        ("label,sex\nann,f\nann,m\n", "1 row for a label that it had before"),
        ("label,sex\neve,f\n", "no row for any probe"),
    ],
)
def test_bad_tables(tmp_path, text, words):
    with pytest.raises(UserError, match=words):
        groupings(PROBES, table(tmp_path, text))


def test_a_probe_counts_as_often_as_it_has_mates(tmp_path):
    (sex,) = groupings(PROBES, table(tmp_path, "label,sex\nann,f\nbob,m\ncy,x\n"))
    assert sex.rates(HITS, np.array([3, 1, 1, 0])) == {"f": 0.75, "m": 0.0, "x": None}
