"""Identification in a large gallery: time, memory, the ratio to faiss, and equality with float64 brute force.

    python benchmarks/identify.py --out benchmarks/results/identify.json          # the GPU if there is one
    python benchmarks/identify.py --cpu --probes 300 --gallery 200000             # a few minutes on two cores

Made-up features of length one: each probe has one mate in the gallery, whose noise is such that some are
found and some are not; the others are distractors. The time is that of the whole of `identify` from features
in memory: checks, identities, search, rates; on a GPU once from its own memory and once from the host's, into
which a feature file is read. faiss's flat index runs on the CPU if it is installed, its building is not
counted, rounds alternate. Memory is the peak beside the features.
Equality is with every similarity in float64, for a part of the gallery that has exact and near ties added.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # as the command line does, before torch is loaded

import numpy as np
import torch
from record import record
from search import Peak, faiss

from oltr.console import console
from oltr.identify.identify import identify
from oltr.identify.rates import TIE, identified
from oltr.identify.samples import GIVEN, Samples

DIMS, RANKS = 512, (1, 5)
SAMPLE = 20_000


def made_up(probes: int, gallery: int, device: torch.device) -> tuple[Samples, Samples]:
    """Probes, and a gallery whose rows at regular distances are their mates."""
    source = torch.Generator(device).manual_seed(0)
    asked = torch.nn.functional.normalize(torch.randn(probes, DIMS, device=device, generator=source))
    there = torch.empty(gallery, DIMS, device=device)
    for start in range(0, gallery, 65536):  # in parts: the memory of the whole is not to be taken twice
        part = there[start : start + 65536].normal_(generator=source)
        part /= part.norm(dim=1, keepdim=True)
    rows = torch.arange(probes, device=device) * (gallery // probes)
    noise = torch.linspace(1, 6, probes, device=device)[:, None]
    mates = asked + noise * torch.nn.functional.normalize(
        torch.randn(probes, DIMS, device=device, generator=source)
    )
    there[rows] = mates / mates.norm(dim=1, keepdim=True)
    labels = np.full(gallery, -1)
    labels[rows.cpu().numpy()] = np.arange(probes)
    return Samples("probes", {GIVEN: asked}, np.arange(probes)), Samples("gallery", {GIVEN: there}, labels)


def with_ties(probes: Samples, gallery: Samples) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Part of the gallery: all mates, as many distractors as there is room for, and for 100 mates eight rows
    each that are equal to them or differ by less than float32 can tell."""
    mates = np.flatnonzero(gallery.labels >= 0)
    others = np.flatnonzero(gallery.labels < 0)[: SAMPLE - len(mates) - 800]
    rows = np.concatenate([mates, others])
    features = gallery.of(GIVEN)[torch.from_numpy(rows).to(gallery.of(GIVEN).device)].cpu()
    near = features[:100].repeat_interleave(8, dim=0)
    near[1::2] *= 1 + 1e-7 * torch.randn(400, DIMS, generator=torch.Generator().manual_seed(0))
    labels = np.concatenate([gallery.labels[rows], np.full(800, -1)])
    return probes.of(GIVEN).cpu(), torch.cat([features, near]), labels


def differences(probes: Samples, gallery: Samples, device: torch.device) -> dict[str, Any]:
    """In how many probes rank 1 or 5 differ from brute force."""
    asked, there, labels = with_ties(probes, gallery)
    found = identified(
        asked.to(device), [there.to(device)], [probes.labels, labels], ranks=RANKS, search="blocks"
    )
    units = [
        (x := part.double().numpy()) / np.linalg.norm(x, axis=1, keepdims=True) for part in (asked, there)
    ]
    values = units[0] @ units[1].T
    own = probes.labels[:, None] == labels
    mate = np.where(own, values, -np.inf).max(axis=1)
    place = 1 + ((values > mate[:, None] - TIE) & ~own).sum(axis=1)
    wrong = {f"rank{k}": int((found.hits[k] != (place <= k)).sum()) for k in RANKS}
    return {"rows": len(there), "differing_probes": wrong, "rank1": round(float((place == 1).mean()), 4)}


def timed(work: Callable[[], Any], device: torch.device) -> float:
    began = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def moved(samples: Samples, place: str) -> Samples:
    return Samples(samples.name, {GIVEN: samples.of(GIVEN).to(place)}, samples.labels)


def measure(asked: Samples, there: Samples, device: torch.device, rounds: int) -> dict[str, Any]:
    """Everything about features in one place."""

    def ours() -> dict[str, Any]:
        given = [Samples(each.name, each.features, each.labels) for each in (asked, there)]  # checks them
        return identify(*given, ranks=RANKS, search="blocks", device=device).to_dict()

    small = Samples("gallery", {GIVEN: there.of(GIVEN)[:8192]}, there.labels[:8192])
    identify(asked, small, ranks=RANKS, search="blocks", device=device)  # what happens once in a process
    with Peak(device) as peak:
        found = ours()
    index = None
    if faiss is not None and device.type == "cpu":
        index = faiss.IndexFlatIP(DIMS)
        index.add(there.of(GIVEN).numpy())
    seconds, theirs = [], []
    for _ in range(rounds):
        seconds.append(timed(ours, device))
        if index is not None:
            theirs.append(timed(lambda: index.search(asked.of(GIVEN).numpy(), max(RANKS)), device))
    row = {
        "probes": len(asked),
        "gallery": len(there),
        "device": device.type,
        "features_in": there.of(GIVEN).device.type,
        "seconds": round(statistics.median(seconds), 3),
        "rounds": [round(each, 3) for each in seconds],
        "peak_mebibytes": None if peak.mebibytes is None else round(peak.mebibytes, 1),
        "rank1": found["rank1"],
        "rank5": found["rank5"],
        "brute_force": differences(asked, there, device),
    }
    if theirs:
        ratio = statistics.median(a / b for a, b in zip(seconds, theirs, strict=True))
        row |= {"faiss_seconds": round(statistics.median(theirs), 3), "ratio_to_faiss": round(ratio, 3)}
    return row


def main() -> None:
    """Measure, print, write JSON."""
    parser = argparse.ArgumentParser(description="Probes in a large gallery.")
    parser.add_argument("--probes", type=int, default=3_530)
    parser.add_argument("--gallery", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="even where there is a GPU")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    device = torch.device("cpu" if asked.cpu or not torch.cuda.is_available() else "cuda:0")
    packages = {} if faiss is None else {"faiss-cpu": metadata.version("faiss-cpu")}
    rows, parts = [], list(made_up(asked.probes, asked.gallery, device))
    for place in dict.fromkeys((device.type, "cpu")):
        parts = [moved(each, place) for each in parts]
        with console.silent():
            rows.append(measure(*parts, device, asked.rounds))
        for name, value in rows[-1].items():
            print(f"{name:>16}  {value}", flush=True)
        record(asked.out, rows, device, packages=packages, dimensions=DIMS)


if __name__ == "__main__":
    main()
