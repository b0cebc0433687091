"""The nearest of N vectors (centroids or a gallery) for a batch of queries: as in the memory, and by faiss.

    python benchmarks/search.py --out benchmarks/results/search.json         # the GPU if there is one
    python benchmarks/search.py --cpu [--largest 10000000]                   # 20 GB of vectors

Vectors and queries have 512 dimensions and lie around N/100 centres; the classes overlap. Times are medians
of the rounds, of 256 queries at a time. Memory is what the search takes at its peak beside vectors and
queries: on a GPU what torch allocates, on a CPU (Linux) what the process occupies more than before. faiss
runs on the CPU, if it is installed; recall is the share of queries for which it finds the exact nearest.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record import record
from torch import Tensor, nn

from oltr.nn.memory import Memory

try:
    import faiss
except ModuleNotFoundError:
    faiss = None

DIMS, QUERIES, ROUNDS = 512, 256, 3
SMALLEST, LARGEST = 1_000, 1_000_000
APPROXIMATE_TO = 100_000  # vectors: clustering more takes minutes on a few cores
PROBES = (1, 4, 16)  # cells of the index that are looked through


def made_up(number: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Vectors and queries, N×D and Q×D."""
    source = torch.Generator(device).manual_seed(0)
    centres = torch.randn(max(number // 100, 1), DIMS, device=device, generator=source).mul_(0.5)
    vectors = torch.randn(number, DIMS, device=device, generator=source)
    for start in range(0, number, len(centres)):
        vectors[start : start + len(centres)] += centres[: number - start]
    chosen = torch.randint(len(centres), (QUERIES,), device=device, generator=source)
    return vectors, centres[chosen] + torch.randn(QUERIES, DIMS, device=device, generator=source)


def memory_of(vectors: Tensor) -> Memory:
    """A memory whose centroids are the vectors themselves, not a copy."""
    memory = Memory(1, vectors.shape[1])
    memory.centroids = nn.Parameter(vectors, requires_grad=False)
    memory.known = torch.ones(len(vectors), dtype=torch.bool, device=vectors.device)
    return memory


class Peak:
    """How much memory a piece of work takes at its peak, in MiB; None where that cannot be known."""

    def __init__(self, device: torch.device):
        self.device = device
        self.mebibytes: float | None = None

    def __enter__(self) -> Peak:
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            self.before = torch.cuda.memory_allocated() / 2**20
        elif _RESET.exists():
            _RESET.write_text("5")  # the peak is now what is occupied
            self.before = _occupied("VmRSS")
        return self

    def __exit__(self, *problem: object) -> None:
        if self.device.type == "cuda":
            self.mebibytes = torch.cuda.max_memory_allocated() / 2**20 - self.before
        elif _RESET.exists():
            self.mebibytes = max(_occupied("VmHWM") - self.before, 0.0)


_RESET = Path("/proc/self/clear_refs")


def _occupied(name: str) -> float:
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[name].split()[0]) / 1024


def timed(search: Callable[[], Any], device: torch.device) -> tuple[dict[str, Any], Any]:
    """Microseconds a query and the peak of the first call; and what was found."""
    with Peak(device) as peak:
        found = search()
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        search()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    figures = {
        "microseconds": round(statistics.median(times) * 1e6 / QUERIES, 2),
        "peak_mebibytes": None if peak.mebibytes is None else round(peak.mebibytes, 1),
        "rounds": [round(seconds * 1e6 / QUERIES, 2) for seconds in times],
    }
    return figures, found


def measure(number: int, device: torch.device) -> list[dict[str, Any]]:
    """Each kind of search among so many vectors."""
    vectors, queries = made_up(number, device)
    memory = memory_of(vectors)
    figures, nearest = timed(lambda: memory.nearest(queries), device)
    rows = [{"search": f"Memory.nearest, {device.type}", **figures}]
    if faiss is not None and device.type == "cpu":
        rows += with_faiss(vectors.numpy(), queries.numpy(), nearest.numpy())
    return [{"vectors": number, **row} for row in rows]


def with_faiss(vectors: np.ndarray, queries: np.ndarray, nearest: np.ndarray) -> list[dict[str, Any]]:
    """The same by faiss: everything compared, and then only a few cells of a clustering."""

    def row(name: str, index: Any, building: float | None) -> dict[str, Any]:
        figures, (_, found) = timed(lambda: index.search(queries, 1), torch.device("cpu"))
        recall = float((found[:, 0] == nearest).mean())
        return {"search": name, **figures, "recall": round(recall, 4), "build_seconds": building}

    flat = faiss.IndexFlatL2(DIMS)
    flat.add(vectors)
    rows = [row("faiss flat", flat, None)]
    if len(vectors) > APPROXIMATE_TO:
        return rows
    cells = round(math.sqrt(len(vectors)))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(DIMS), DIMS, cells)
    index.cp.niter, index.cp.max_points_per_centroid, index.cp.min_points_per_centroid = 10, 64, 1
    began = time.perf_counter()
    index.train(vectors)
    index.add(vectors)
    building = round(time.perf_counter() - began, 2)
    for probes in (p for p in PROBES if p < cells):
        index.nprobe = probes
        rows.append(row(f"faiss IVF, {probes} of {cells} cells", index, building))
    return rows


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description="The nearest of many vectors, exact and approximate.")
    parser.add_argument("--cpu", action="store_true", help="even where there is a GPU")
    parser.add_argument("--largest", type=int, default=LARGEST, help="10000000 takes 20 GB")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = torch.device("cpu" if arguments.cpu or not torch.cuda.is_available() else "cuda:0")
    if device.type == "cpu" and faiss is None:
        print("faiss is not installed (pip install faiss-cpu): only the library's own search is measured")
    print(
        f"{'vectors':>10}  {'search':<32}{'µs a query':>12}{'peak MiB':>12}{'recall':>10}{'built in s':>12}"
    )
    rows, number = [], SMALLEST
    while number <= arguments.largest:
        for row in measure(number, device):
            rows.append(row)
            cells = [row.get(key) for key in ("microseconds", "peak_mebibytes", "recall", "build_seconds")]
            shown = "".join(
                f"{'–' if c is None else c:>{width}}"
                for c, width in zip(cells, (12, 12, 10, 12), strict=True)
            )
            print(f"{number:>10,}  {row['search']:<32}{shown}", flush=True)
        packages = {} if faiss is None else {"faiss-cpu": metadata.version("faiss-cpu")}
        record(arguments.out, rows, device, packages=packages, dimensions=DIMS, queries=QUERIES)
        number *= 10


if __name__ == "__main__":
    main()
