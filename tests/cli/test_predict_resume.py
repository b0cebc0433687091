"""`oltr predict`, stopped anywhere, goes on to the very result of an undisturbed run."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from oltr.errors import UserError
from oltr.runs.predictions.journal import Journal
from tests.helpers.struck import NEVER, striking

ALREADY = 2  # done, and killed before it could say so: the result is there already


@pytest.fixture(scope="module")
def struck(trained, images):
    """`struck(folder, at)`: a command that is killed at that call; its exit code and the calls it made."""
    with striking(["runs/predictions", "oltr/files.py"]) as strike:

        def struck(folder: Path, at: int = NEVER) -> tuple[int, int]:
            to = ["--out", folder / "p.csv", "--sort", folder / "sorted"]
            return strike([str(word) for word in ("predict", trained["plain"], images, *to)], at)

        yield struck


def everything(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture(scope="module")
def whole(struck, tmp_path_factory) -> tuple[dict[str, bytes], int]:
    """What an undisturbed command leaves, and how many calls it makes."""
    folder = tmp_path_factory.mktemp("whole")
    code, calls = struck(folder)
    assert code == 0 and calls > 100
    return everything(folder), calls


def strike(struck, folder: Path, moments: list[int], whole: dict[str, bytes]) -> None:
    for at in moments:
        code, _ = struck(folder, at)
        if code != -signal.SIGKILL:  # less was left to do
            break
        left = everything(folder)
        assert left.get("p.csv", whole["p.csv"]) == whole["p.csv"], at
        copies = {name for name in left if name.startswith("sorted") and not name.endswith(".part")}
        assert all(left[name] == whole[name] for name in copies), at
    assert struck(folder)[0] in (0, ALREADY)
    assert everything(folder) == whole, moments


def test_killed_three_times(struck, whole, tmp_path):
    content, calls = whole
    strike(struck, tmp_path, [calls // 4, calls // 3, calls // 2], content)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(20))
def test_killed_at_a_random_moment(struck, whole, tmp_path, number):
    content, calls = whole
    strike(struck, tmp_path, [random.randint(1, calls)], content)


def test_ctrl_c_says_that_it_goes_on(oltr, trained, images, tmp_path, monkeypatch):
    from oltr.runs.predictions import judge, predict_to

    monkeypatch.setattr(judge, "MOST", {"cpu": 4, "cuda": 4})
    add, added = Journal.add, []

    def stop_at_the_third(journal, rows):
        if len(added) == 3:
            raise KeyboardInterrupt
        added.append(rows)
        add(journal, rows)

    monkeypatch.setattr(predict_to.Journal, "add", stop_at_the_third)
    said = oltr("predict", trained["plain"], images, "--out", tmp_path / "p.csv")
    assert said.code == 130 and "the same command goes on" in said.err
    monkeypatch.setattr(predict_to.Journal, "add", add)
    said = oltr("predict", trained["plain"], images, "--out", tmp_path / "p.csv")
    assert said.code == 0 and "12 images judged before" in said.err
    done = oltr("predict", trained["plain"], images, "--out", tmp_path / "q.csv")
    assert done.code == 0 and (tmp_path / "p.csv").read_text() == (tmp_path / "q.csv").read_text()


def test_a_journal_of_other_work_is_left_alone(oltr, trained, images, tmp_path):
    out = tmp_path / "p.csv"
    journal = Journal(
        tmp_path / "p.csv.part", {"model": "other.0", "begun": "then", "columns": ["path", "error"]}
    )
    journal.add([{"path": "a", "error": ""}])
    oltr("predict", trained["plain"], images, "--out", out).refused("Another command is writing")
    journal.close()
    oltr("predict", trained["plain"], images, "--out", out).refused(
        "begun by another command", "model", "images"
    )
    assert not out.exists() and b"other.0" in (tmp_path / "p.csv.part").read_bytes()
    assert oltr("predict", trained["plain"], images, "--out", out, "--overwrite").code == 0
    assert list(everything(tmp_path)) == ["p.csv"]


def test_a_journal_cut_off_at_any_byte(tmp_path):
    header = {"model": "m", "begun": "1", "columns": ["path", "error", "top5"]}
    batches = [
        [{"path": "é", "error": "", "top5": {"x": 0.5}}],
        [{"path": "b", "error": "x\n", "top5": None}, {"path": "c", "error": "", "top5": {}}],
    ]
    file = tmp_path / "j.part"
    journal = Journal(file, header)
    for rows in batches:
        journal.add(rows)
    journal.close()
    content = file.read_bytes()
    ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    for cut in range(len(content) + 1):
        file.write_bytes(content[:cut])
        journal = Journal(file, header | {"begun": "2"})
        kept = max(sum(end <= cut for end in ends) - 1, 0)
        assert list(journal.rows()) == [row for rows in batches[:kept] for row in rows]
        assert journal.done == sum(map(len, batches[:kept])) and journal.resumed == (kept > 0)
        assert journal.header["begun"] == ("1" if cut >= ends[0] else "2")
        for rows in batches[kept:]:
            journal.add(rows)
        assert list(journal.rows()) == [row for rows in batches for row in rows]
        assert len(file.read_bytes().splitlines()) == 3
        journal.close()
    with pytest.raises(UserError, match="begun by another command"):
        Journal(file, header | {"model": "n"})
