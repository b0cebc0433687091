"""When the device has come to a point of its work, noted without waiting for it."""

from __future__ import annotations

import time

import torch


class Moment:
    """A GPU works behind the host: its moments are events among its work; a CPU's are times."""

    def __init__(self, device: torch.device):
        self.event = torch.cuda.Event(enable_timing=True) if device.type == "cuda" else None
        self.time = time.perf_counter()
        if self.event is not None:
            self.event.record(torch.cuda.current_stream(device))

    def seconds_since(self, earlier: Moment) -> float:
        """How long the device took from the earlier moment to this; waits until it has come so far."""
        if self.event is None or earlier.event is None:
            return self.time - earlier.time
        self.event.synchronize()
        return earlier.event.elapsed_time(self.event) / 1000
