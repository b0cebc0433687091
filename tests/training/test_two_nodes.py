"""Two machines, here two separate starts on one, learn what one process learns, whoever starts them."""

from __future__ import annotations

import signal
import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor
from subprocess import CompletedProcess

import pytest

from oltr.training.run_folder import RunFolder
from tests.helpers.processes import run_python
from tests.helpers.training import STRUCK, assert_learned_the_same, shared_words

# Trains through the command line and must neither write to nor delete anything in the folder named first.
READER = """
import os, sys
folder = os.path.abspath(sys.argv.pop(1))
changes = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate")
def watch(event, arguments):
    writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if (writes or event in changes) and os.path.abspath(os.fsdecode(arguments[0])).startswith(folder):
        raise PermissionError(f"{event} {arguments[0]}")
sys.addaudithook(watch)
from oltr.cli.main import main
main()
"""

# Trains through the command line, and waits three seconds for other machines.
IMPATIENT = """
import datetime
from oltr.training import fabric
fabric.PATIENCE = datetime.timedelta(seconds=3)
from oltr.cli.main import main
main()
"""


@pytest.fixture
def port() -> str:
    """A port on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.fixture(scope="module")
def one(pack, tmp_path_factory):
    """The run of a single process."""
    out = tmp_path_factory.mktemp("one") / "run"
    done = run_python(["-m", "oltr.cli.main", *shared_words(pack, out)])
    assert done.returncode == 0, done.stderr
    return out


def by_lightning(node: int, port: str, words: list[str]) -> Future[CompletedProcess[str]]:
    """As started by hand, machine by machine."""
    environment = {"NODE_RANK": str(node), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return started(words, environment)


def by_torchrun(node: int, port: str, words: list[str]) -> Future[CompletedProcess[str]]:
    """By torchrun itself, which calls the script once per process."""
    where = ["--node-rank", str(node), "--master-addr", "127.0.0.1", "--master-port", port]
    return started(["-m", "torch.distributed.run", "--nnodes", "2", *where, *words], {})


def by_slurm(node: int, port: str, words: list[str]) -> Future[CompletedProcess[str]]:
    """With the variables that srun sets."""
    environment = {
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NAME": "oltr",
        "SLURM_NNODES": "2",
        "SLURM_NTASKS": "2",
        "SLURM_NTASKS_PER_NODE": "1",
        "SLURM_NODELIST": "127.0.0.1",
        "SLURM_NODEID": str(node),
        "SLURM_PROCID": str(node),
        "SLURM_LOCALID": "0",
        "MASTER_PORT": port,
    }
    return started(words, environment)


def started(words: list[str], environment: dict[str, str]) -> Future[CompletedProcess[str]]:
    """Python in the background."""
    thread = ThreadPoolExecutor(1)
    job = thread.submit(run_python, words, environment)
    thread.shutdown(wait=False)
    return job


@pytest.mark.parametrize("start", [by_lightning, by_torchrun, by_slurm])
def test_two_nodes_learn_what_one_process_learns(pack, one, tmp_path, port, start):
    out, script = tmp_path / "run", tmp_path / "reader.py"
    script.write_text(READER)
    words = shared_words(pack, out, "--nodes", "2")
    speaker = tmp_path / "speaker.py"
    speaker.write_text("from oltr.cli.main import main\nmain()\n")
    jobs = [start(0, port, [str(speaker), *words]), start(1, port, [str(script), str(out), *words])]
    first, second = (job.result() for job in jobs)
    assert first.returncode == 0, first.stderr
    assert second.returncode == 0, second.stderr
    assert_learned_the_same(one, out)
    assert RunFolder(out).report.is_file()
    assert first.stderr.count("stage 2:") == 1 and "overall" in first.stdout
    assert second.stdout == second.stderr == ""


@pytest.mark.soak
def test_when_one_dies_the_other_ends_and_both_resume_though_one_alone_has_the_run_folder(
    pack, one, tmp_path, port
):
    words = [shared_words(pack, tmp_path / name / "run", "--nodes", "2", "--resume") for name in "ab"]
    plain = [["-m", "oltr.cli.main", *each] for each in words]
    began = time.monotonic()
    struck = ["-c", STRUCK, str(int(signal.SIGKILL)), "15", *words[1]]  # in the first epoch of stage 2
    jobs = [by_lightning(0, port, plain[0]), by_lightning(1, port, struck)]
    first, second = (job.result() for job in jobs)
    assert second.returncode == -signal.SIGKILL and first.returncode not in (0, None)
    assert time.monotonic() - began < 120
    jobs = [by_lightning(node, port, plain[node]) for node in (0, 1)]
    for job in jobs:
        assert job.result().returncode == 0, job.result().stderr
    assert_learned_the_same(one, tmp_path / "a" / "run")
    assert not (tmp_path / "b").exists()


def test_a_machine_that_never_comes(pack, tmp_path, port):
    script = tmp_path / "impatient.py"
    script.write_text(IMPATIENT)
    done = by_lightning(
        0, port, [str(script), *shared_words(pack, tmp_path / "run", "--nodes", "2")]
    ).result()
    assert done.returncode == 2 and "The 2 processes of this run did not find each other" in done.stderr
    assert not (tmp_path / "run").exists()


def test_processes_in_another_number_than_said_are_refused(pack, tmp_path):
    words = ["-m", "oltr.cli.main", *shared_words(pack, tmp_path / "run")]
    done = run_python(words, {"NODE_RANK": "1"})
    assert done.returncode == 2 and "--nodes 1 does not fit" in done.stderr
    assert not (tmp_path / "run").exists()
