"""Tables of labels and parents, good and bad."""

import pytest

from oltr.data.parent_table import ancestors, heights, read_parent_table
from oltr.errors import UserError


def written(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "parents.csv"
    path.write_bytes(text.encode(encoding))
    return path


def refused(tmp_path, text, *words, encoding="utf-8"):
    with pytest.raises(UserError) as problem:
        read_parent_table(written(tmp_path, text, encoding))
    for word in words:
        assert word in str(problem.value)


def test_labels_parents_and_theirs(tmp_path):
    lines = (
        "parent,note,label",
        "cat,small, lynx ",
        'cat,,"puma, grey"',
        "",
        "carnivore,,cat",
        ",,carnivore",
        "",
    )
    parents = read_parent_table(written(tmp_path, "\ufeff" + "\r\n".join(lines)))
    assert parents == {"lynx": "cat", "puma, grey": "cat", "cat": "carnivore"}
    assert ancestors("lynx", parents) == ["cat", "carnivore"]
    assert ancestors("carnivore", parents) == []


def test_heights_follow_the_longest_way_down(tmp_path):
    rows = "lynx,cat\ncat,feline\nfeline,carnivore\nbear,carnivore\nlynx,cat\n"
    found = heights(read_parent_table(written(tmp_path, "label,parent\n" + rows)))
    assert found == {"lynx": 0, "bear": 0, "cat": 1, "feline": 2, "carnivore": 3}


def test_names_that_look_like_numbers_or_nothing_stay_as_they_are(tmp_path):
    assert read_parent_table(written(tmp_path, "label,parent\n007,NA\n7,null")) == {"007": "NA", "7": "null"}


def test_a_cycle_is_named(tmp_path):
    refused(tmp_path, "label,parent\na,b\nb,c\nc,d\nd,b\n", "b → c → d → b")
    refused(tmp_path, "label,parent\nbird,bird\n", "bird → bird", "empty")


def test_two_parents(tmp_path):
    refused(tmp_path, "label,parent\nlynx,cat\nlynx,dog\n", "line 3", "'lynx'", "'cat' and 'dog'")


def test_columns_that_are_missing(tmp_path):
    refused(tmp_path, "label,parents\nlynx,cat\n", "lacks the column parent", "'parents' → 'parent'?")
    refused(tmp_path, "label;parent\nlynx;cat\n", "columns label, parent", "commas")
    refused(tmp_path, "lynx,cat\n", "`label,parent`")


def test_nothing_in_it(tmp_path):
    refused(tmp_path, "", "is empty")
    refused(tmp_path, "\n\n", "is empty")
    refused(tmp_path, "label,parent\n", "names no parent")
    refused(tmp_path, "label,parent\nlynx,\n", "names no parent")
    refused(tmp_path, "label,parent\nlynx,cat\n\n,cat\n", "line 4: the label is empty")


def test_files_that_cannot_be_read(tmp_path):
    refused(tmp_path, "label,parent\nlöwe,katze\n", "not UTF-8", encoding="latin-1")
    for path in (tmp_path / "nowhere.csv", tmp_path):
        with pytest.raises(UserError, match=str(path)):
            read_parent_table(path)


def test_a_long_chain_is_no_cycle(tmp_path):
    rows = "".join(f"{number},{number + 1}\n" for number in range(2000))
    found = heights(read_parent_table(written(tmp_path, "label,parent\n" + rows)))
    assert found["2000"] == 2000
