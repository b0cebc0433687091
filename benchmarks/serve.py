"""What `oltr serve` answers beside what the network alone could: images a second over loopback.

    python benchmarks/serve.py RUN IMAGES --out benchmarks/results/serve.json

Forward: the network on one batch that lies ready on the device, of as many images as the service puts into
one, as often as the images fill it. Decoder: the same bytes decoded by as many threads as the service has.
Served: the same images to `POST /predict` of a server in a process of its own, by clients that each wait for
their answers; what they send was made before. Rates are medians of the rounds, the three in turn, and the
server idles while the others are measured. `ratio` is the served rate over the forward's; on a CPU the
decoder and the network share the cores, and `shared_ratio` is over the rate at which the two could do their
work one after the other. The run is copied first; images are taken in random order of a fixed seed.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import torch
from record import record

from oltr.data.augment import Augment
from oltr.data.images import decode_image
from oltr.runs.named_images import named_images
from oltr.runs.predictions.judge import images_at_a_time
from oltr.runs.read_ahead import CORES
from oltr.runs.trained_run import TrainedRun
from oltr.training.precision import autocast

SEED, ROUNDS = 0, 3
BOUNDARY = "a-boundary-of-parts"


@contextlib.contextmanager
def server(run: Path) -> Iterator[str]:
    """The address of `oltr serve` in a process of its own."""
    words = [sys.executable, "-m", "oltr.cli.main", "serve", str(run), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield urlsplit(process.stdout.readline().strip()).netloc
        finally:
            process.send_signal(signal.SIGINT)


def body_of(contents: list[bytes]) -> bytes:
    """A request's body with these files."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="files"; filename="%d.jpg"\r\n\r\n'
    parts = [(head % i).encode() + content + b"\r\n" for i, content in enumerate(contents)]
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


class Measured:
    """Three ways through the same images."""

    def __init__(self, run: TrainedRun, contents: list[bytes], address: str, clients: int, together: int):
        self.run, self.contents, self.address, self.clients = run, contents, address, clients
        self.bodies = [
            body_of(contents[i : i + together]) for i in range(0, len(contents) - together + 1, together)
        ]
        self.together, self.batch = together, images_at_a_time(run)
        pixels = np.stack([self._decoded(each) for each in contents[: self.batch]])
        images = torch.from_numpy(pixels).to(run.device).permute(0, 3, 1, 2)
        self.views = Augment(run.config.data, run.device).evaluate(images)
        run.network.eval()

    def _decoded(self, content: bytes) -> np.ndarray:
        return decode_image(content, self.run.config.data.frame, "")[0]

    @torch.inference_mode()
    def forward(self) -> int:
        done = 0
        for _ in range(0, len(self.contents), len(self.views)):
            with autocast(self.run.device, self.run.config.precision):
                self.run.network(self.views).logits.cpu()
            done += len(self.views)
        return done

    def decoder(self) -> int:
        with ThreadPoolExecutor(CORES) as threads:
            return sum(1 for _ in threads.map(self._decoded, self.contents))

    def served(self) -> tuple[int, list[float]]:
        """Images answered, and the seconds of each request."""
        shares = [self.bodies[client :: self.clients] for client in range(self.clients)]
        with ThreadPoolExecutor(self.clients) as threads:
            found = [each for share in threads.map(self._asked, shares) for each in share]
        return len(found) * self.together, found

    def _asked(self, bodies: list[bytes]) -> list[float]:
        connection, seconds = http.client.HTTPConnection(self.address, timeout=600), []
        headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
        for body in bodies:
            began = time.perf_counter()
            connection.request("POST", "/predict", body, headers)
            answer = connection.getresponse()
            found = json.loads(answer.read())
            seconds.append(time.perf_counter() - began)
            assert answer.status == 200, found
            assert not any(row["error"] for row in found["predictions"]), found
        connection.close()
        return seconds


def rate(work: Callable[[], int]) -> float:
    """Images a second."""
    began = time.perf_counter()
    return work() / (time.perf_counter() - began)


def measure(measured: Measured) -> dict[str, Any]:
    """The three in turn."""
    waits: list[float] = []

    def served() -> int:
        images, seconds = measured.served()
        waits.extend(seconds)
        return images

    works = {"forward": measured.forward, "decoder": measured.decoder, "served": served}
    for work in works.values():
        work()  # warms up
    waits.clear()
    rounds = [{name: rate(work) for name, work in works.items()} for _ in range(ROUNDS)]
    middle = {name: statistics.median(turn[name] for turn in rounds) for name in works}
    shared = 1 / (1 / middle["forward"] + 1 / middle["decoder"])
    cuts = statistics.quantiles(waits, n=100)
    return {
        "clients": measured.clients,
        "images_a_request": measured.together,
        "images": len(measured.contents),
        "batch": measured.batch,
        **{f"{name}_per_second": round(value, 1) for name, value in middle.items()},
        "ratio": round(middle["served"] / middle["forward"], 3),
        "shared_ratio": round(middle["served"] / shared, 3),
        "p50_ms": round(1000 * cuts[49], 1),
        "p99_ms": round(1000 * cuts[98], 1),
        "rounds": [{name: round(value, 1) for name, value in turn.items()} for turn in rounds],
    }


def main() -> None:
    """Measure, print a line for each way to ask, write JSON."""
    parser = argparse.ArgumentParser(description="A service's answers beside the network alone.")
    parser.add_argument("run", type=Path)
    parser.add_argument("images", type=Path)
    parser.add_argument("--number", type=int, default=512, help="images of a round")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--together", type=int, nargs="+", default=[1, 8], help="images of a request")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    files = named_images([arguments.images]).paths
    random.Random(SEED).shuffle(files)
    contents = [Path(files[i % len(files)]).read_bytes() for i in range(arguments.number)]
    with tempfile.TemporaryDirectory() as folder:
        unneeded = shutil.ignore_patterns("checkpoints", "uploads", "history.sqlite")
        copy = shutil.copytree(arguments.run, Path(folder) / "run", ignore=unneeded)
        run, rows = TrainedRun(copy), []
        with server(copy) as address:
            for together in arguments.together:
                measured = Measured(run, contents, address, arguments.clients, together)
                rows.append(measure(measured))
                print(
                    json.dumps({key: value for key, value in rows[-1].items() if key != "rounds"}), flush=True
                )
                config = run.config
                record(
                    arguments.out,
                    rows,
                    run.device,
                    seed=SEED,
                    threads=torch.get_num_threads(),
                    what=f"{config.backbone} at {config.data.image_size} px, {len(run.class_names)} classes",
                    image_bytes=round(statistics.mean(map(len, contents))),
                    packages={name: version(name) for name in ("fastapi", "uvicorn", "starlette")},
                )


if __name__ == "__main__":
    main()
