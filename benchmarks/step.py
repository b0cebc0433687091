"""What a stage-2 step of OLTR costs beside a step of the bare backbone with a linear classifier.

    python benchmarks/step.py --out benchmarks/results/step.json          # one GPU: the sizes of ImageNet-LT
    python benchmarks/step.py --small                                     # any CPU
    python benchmarks/step.py --small --recipe glyphs --sizes 32x100 --image-size 32 --parts    # the demo's
    python benchmarks/step.py --sizes 128x1000 --schedule                 # a rate for each step
    python benchmarks/step.py --recipe ms1m-lt --sizes 128x74500 --image-size 112 --memory      # faces
    python benchmarks/step.py --recipe ms1m-lt ... --memory --rounds 4 --steps 2   # the same on a CPU

Both steps go through the library's own machinery (on a GPU: bfloat16, channels-last, compiled, a CUDA graph,
fused SGD), on the same made-up images, which are on the device and need no augmentation. Times are medians of
the rounds, bare and OLTR in turn; memory is the peak of allocated device memory from building the step on.
With --parts OLTR is timed without its attention too: what it has more than the bare step is the head's cost.
With --memory also without its memory, concept selector and reachability: the same attention, direct feature
and cosine classifier, which the bare step has not (its classifier is as wide as the backbone).
With --schedule OLTR is also timed under a cosine schedule that sets the rates before every step; the turns
alternate with those of one rate and, on a GPU, replay the same recorded graph.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from record import record
from torch import Tensor

from oltr.data.batches import TrainBatch
from oltr.nn.backbone import Backbone
from oltr.training.build import build_method
from oltr.training.configure import configure
from oltr.training.optimizer import make_optimizer
from oltr.training.schedule import LearningRates
from oltr.training.step import BatchLoss, Step

ROUNDS, STEPS = 5, 20
SHORT_ROUNDS, SHORT_STEPS = 40, 8  # on a CPU, whose speed changes from second to second
NO_ATTENTION, NO_MEMORY, SCHEDULED = "oltr without attention", "oltr without memory", "oltr_scheduled"
CHANGES = {
    NO_ATTENTION: ["settings.attention=none"],
    NO_MEMORY: [f"settings.{part}=false" for part in ("memory", "selector", "reachability")],
}
FULL = [(128, 1_000), (512, 1_000), (128, 10_000), (128, 74_500), (128, 1_000_000)]  # batch, classes
SMALL = [(32, 100), (32, 1_000)]
ALONE_FROM = 100_000  # classes: two such networks would not fit beside each other
COLUMNS = {
    "batch": "batch",
    "classes": "classes",
    "bare ms": "plain_ms",
    "OLTR ms": "oltr_ms",
    "ratio": "ratio",
    "bare GiB": "plain_peak_gib",
    "OLTR GiB": "oltr_peak_gib",
}


class AsTheyAre:
    """In the place of augmentation: the images are views already."""

    def train(self, pixels: Tensor, draws: Tensor) -> Tensor:
        return pixels


class Measured:
    """A step of one method's last stage on made-up images, ready to be timed."""

    def __init__(
        self,
        name: str,
        batch: int,
        classes: int,
        size: int,
        device: torch.device,
        recipe: str = "imagenet-lt",
    ):
        self.gpu = device.type == "cuda"
        torch.manual_seed(0)
        changes = CHANGES.get(name, [])
        name = "oltr" if changes else name
        config = configure(recipe, name, image_size=size, changes=changes)
        method = build_method(config, torch.full((classes,), 100))
        network, stage = method.build_stage1(Backbone(config.backbone, size)), 1
        if name == "oltr":
            network, stage = method.build_stage2(network), 2
            centroids = torch.randn(classes, network.direct_feature.dims)
            method.on_stage_start(2, network, lambda: centroids)
        self.free()
        network.to(device, memory_format=torch.channels_last).train()
        self.fixed = config.stage(stage)
        self.moving = dataclasses.replace(self.fixed, schedule="cosine", lr_every="step")
        optimizer = make_optimizer(network, self.fixed, fused=self.gpu)
        self.rates = LearningRates(optimizer, self.fixed, device)
        augment: Any = AsTheyAre()
        loss = BatchLoss(method.to(device), stage, network, augment, precision="auto", compiled=self.gpu)
        self.step = Step(loss, optimizer, graph=self.gpu)
        images = torch.randn(batch, 3, size, size, device=device)
        self.data = TrainBatch(
            images.contiguous(memory_format=torch.channels_last),
            torch.zeros(batch, 16, device=device),
            torch.randint(0, classes, (batch,), device=device),
        )
        self.first_seconds = self.run(5) * 5 / 1000

    def free(self) -> None:
        """Measure the peak memory from here on."""
        gc.collect()
        if self.gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def run(self, steps: int, schedule: bool = False) -> float:
        """Milliseconds a step, at one rate or with a rate for each step."""
        self.rates.stage = self.moving if schedule else self.fixed
        self.rates.start_epoch(0, steps)
        began = time.perf_counter()
        for number in range(steps):
            self.rates.set(number)
            self.step(self.data)
        if self.gpu:
            torch.cuda.synchronize()
        return (time.perf_counter() - began) * 1000 / steps

    def peak(self, before: int) -> float | None:
        """GiB above what was in use before."""
        return (torch.cuda.max_memory_allocated() - before) / 2**30 if self.gpu else None


def measure(
    batch: int,
    classes: int,
    size: int,
    device: torch.device,
    recipe: str,
    parts: bool,
    memory: bool,
    schedule: bool,
    rounds: int | None = None,
    length: int | None = None,
) -> dict[str, Any]:
    """Both steps at one size, timed in turn unless they are too large to be there together."""
    torch.compiler.reset()  # no code of another size is used, nor one made to fit both
    row: dict[str, Any] = {"recipe": recipe, "batch": batch, "classes": classes, "image_size": size}
    steps: dict[str, Measured] = {}
    usual = (ROUNDS, STEPS) if device.type == "cuda" else (SHORT_ROUNDS, SHORT_STEPS)
    turns, length = rounds or usual[0], length or usual[1]
    for name in ("plain", "oltr", *([NO_ATTENTION] if parts else []), *([NO_MEMORY] if memory else [])):
        gc.collect()
        before = torch.cuda.memory_allocated() if device.type == "cuda" else 0
        steps[name] = Measured(name, batch, classes, size, device, recipe)
        row[f"{name}_peak_gib"] = steps[name].peak(before)
        row[f"{name}_first_seconds"] = steps[name].first_seconds
        if classes >= ALONE_FROM:
            alone = steps.pop(name)
            row[f"{name}_ms"] = statistics.median(alone.run(length) for _ in range(turns))
            del alone
    timed = []
    for _ in range(turns):
        timed.append({name: step.run(length) for name, step in steps.items()})
        if schedule:
            timed[-1][SCHEDULED] = steps["oltr"].run(length, schedule=True)
    for name in timed[0]:
        row[f"{name}_ms"] = statistics.median(turn[name] for turn in timed)
    if schedule:
        row["schedule_ratio"] = statistics.median(turn[SCHEDULED] / turn["oltr"] for turn in timed)
    row["ratio"] = row["oltr_ms"] / row["plain_ms"]
    if memory:
        row["memory_ratio"] = row["oltr_ms"] / row[f"{NO_MEMORY}_ms"]
    if parts:
        # Of turns next to each other: a machine's speed drifts.
        head = statistics.median((turn[NO_ATTENTION] - turn["plain"]) / turn["oltr"] for turn in timed)
        every = statistics.median(1 - turn["plain"] / turn["oltr"] for turn in timed)
        row |= {"head_share_of_step": head, "head_and_attention_share_of_step": every}
    return {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description="A stage-2 step beside a step of the bare backbone.")
    parser.add_argument("--small", action="store_true", help="sizes for a CPU")
    parser.add_argument("--sizes", nargs="*", default=[], help="BATCHxCLASSES instead, such as 128x1000")
    parser.add_argument(
        "--recipe", default="imagenet-lt", help="whose backbone and settings (glyphs: the demo)"
    )
    parser.add_argument("--image-size", type=int)
    parser.add_argument("--parts", action="store_true", help="also without attention")
    parser.add_argument("--memory", action="store_true", help="also without the memory")
    parser.add_argument("--schedule", action="store_true", help="also with a rate for each step")
    parser.add_argument("--rounds", type=int, help="instead of 5 on a GPU, 40 on a CPU")
    parser.add_argument("--steps", type=int, help="of a round, instead of 20 on a GPU, 8 on a CPU")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = torch.device("cpu" if arguments.small or not torch.cuda.is_available() else "cuda")
    given = [(int(batch), int(classes)) for batch, classes in (size.split("x") for size in arguments.sizes)]
    sizes = given or (SMALL if device.type == "cpu" else FULL)
    image_size = arguments.image_size or (64 if device.type == "cpu" else 224)
    print(("{:>10}" * len(COLUMNS)).format(*COLUMNS))
    rows = []
    for batch, classes in sizes:
        schedule = arguments.schedule and classes < ALONE_FROM
        recipe, parts, memory = arguments.recipe, arguments.parts, arguments.memory
        how = schedule, arguments.rounds, arguments.steps
        rows.append(measure(batch, classes, image_size, device, recipe, parts, memory, *how))
        cells = [rows[-1][key] for key in COLUMNS.values()]
        print(
            "".join(f"{'–' if c is None else f'{c:.2f}' if isinstance(c, float) else c:>10}" for c in cells),
            flush=True,
        )
        if arguments.parts:
            head, every = rows[-1]["head_share_of_step"], rows[-1]["head_and_attention_share_of_step"]
            print(f"  of OLTR's step: head {head:.1%}, head and attention {every:.1%}")
        if memory:
            peak, ratio = rows[-1][f"{NO_MEMORY}_peak_gib"], rows[-1]["memory_ratio"]
            beside = f"{rows[-1][f'{NO_MEMORY}_ms']:.2f} ms" + ("" if peak is None else f", {peak:.2f} GiB")
            print(f"  without the memory: {beside}; OLTR's step is {ratio:.3f} of it")
        if schedule:
            print(f"  a rate for each step: {rows[-1]['schedule_ratio']:.3f} of OLTR's step at one rate")
        record(arguments.out, rows, device)


if __name__ == "__main__":
    main()
