"""`oltr serve` as a command: what it refuses, and how it begins and ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from oltr.cli.main import _guarded
from tests.helpers.serving import png, upload

TOKEN = "a-long-enough-token"


@pytest.fixture
def refused(capsys, monkeypatch):
    """`oltr serve WORDS` ends with 2 and one message; what it says."""
    monkeypatch.delenv("OLTR_TOKEN", raising=False)

    def run(*words: object) -> str:
        assert _guarded(["serve", *map(str, words)]) == 2
        told = capsys.readouterr()
        assert not told.out and "Traceback" not in told.err
        return told.err

    return run


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.20", "photos.example.org"])
def test_others_are_let_in_with_a_token_alone(refused, folder, host):
    told = refused(folder, "--host", host)
    assert f"--host {host} lets other machines in, and there is no token." in told
    assert "--token TOKEN" in told and "see, name and delete images" in told


@pytest.mark.parametrize("token", ["short", "x" * 15, "ä" * 20, "a token\nwith lines in it"])
def test_a_token_is_long_and_plain(refused, folder, token, monkeypatch):
    assert "at least 16 plain characters" in refused(folder, "--token", token)
    monkeypatch.setenv("OLTR_TOKEN", token)
    assert "at least 16 plain characters" in refused(folder)


def test_a_port_in_use(refused, folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = refused(folder, "--port", port)
    assert f"Cannot listen on 127.0.0.1, port {port}" in told and "in use" in told and "--port 0" in told


def test_what_is_no_port_size_or_run(refused, folder, tmp_path):
    assert "--port 70000 is no port." in refused(folder, "--port", 70_000)
    assert "must be above 0" in refused(folder, "--keep", 0)
    assert "must be above 0" in refused(folder, "--image", "nan")
    assert "without a --source" in refused(folder, "--root", tmp_path)
    assert str(tmp_path / "none") in refused(tmp_path / "none")
    assert "Cannot listen" in refused(folder, "--host", "192.0.2.1", "--token", TOKEN)


@pytest.mark.parametrize("package", ["fastapi", "uvicorn", "prometheus_client"])
def test_without_its_packages_it_says_how_to_get_them(refused, folder, monkeypatch, package):
    for name in [name for name in sys.modules if name.startswith("oltr.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    told = refused(folder)
    assert f"another package: {package}" in told and "pip install 'oltr[serve]'" in told


def test_a_run_folder_that_cannot_be_written_is_refused(refused, folder, monkeypatch):
    from oltr.errors import UserError
    from oltr.serve import state

    def forbidden(path: object) -> None:
        raise UserError(f"{path} cannot be written: Permission denied.")

    monkeypatch.setattr(state, "check_writable", forbidden)
    assert "history.sqlite cannot be written" in refused(folder, "--port", 0)


def test_it_tells_its_address_and_ends_with_ctrl_c(folder):
    """As it is started in a shell."""
    words = [sys.executable, "-m", "oltr.cli.main", "serve", str(folder), "--port", "0", "--token", TOKEN]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:") and address.endswith("/")
        headers = {"authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=address, headers=headers, timeout=30) as client:
            upload(client, [png((128, 128, 128), 1)])
            assert "server" not in client.get("/health").headers
        assert httpx.get(f"{address}state").status_code == 401
        process.send_signal(signal.SIGINT)
        rest, told = process.communicate(timeout=60)
    assert process.returncode in (0, 130) and not rest
    assert "6 classes, 0 images kept" in told and "Traceback" not in told
