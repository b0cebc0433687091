"""One run of a suite, in this process or in one of its own."""

from __future__ import annotations

import os
import traceback

import torch

from oltr.console import Console
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.runs.train_run import train_run
from oltr.suites.job import Job
from oltr.suites.rows import in_a_line
from oltr.training.options import TrainOptions


def train_one(job: Job) -> str | None:
    """Train and evaluate, going on where an earlier call stopped; returns why it failed, if it did."""
    console, options = Console(quiet=job.at_once > 1), TrainOptions(resume=True, stage1_from=job.stage1_from)
    if job.cpu:
        options.accelerator = "cpu"
    if job.at_once > 1:
        torch.set_num_threads(max((os.cpu_count() or 1) // job.at_once, 1))
        options.workers = max(options.workers // job.at_once, 1)
    try:
        train_run(job.config, read_source(job.source, job.root), job.out, console, options, job.source)
    except UserError as problem:
        return in_a_line(problem)
    except Exception as problem:
        Console().say(traceback.format_exc())  # a fault of ours: the row says what, this says where
        return in_a_line(problem)
    return None
