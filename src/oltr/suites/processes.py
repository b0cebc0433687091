"""Several jobs side by side, each in a process of its own that ends with ours."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

T = TypeVar("T")
AGAIN = 0.5  # seconds until it is looked again who may start


def side_by_side(
    runs: Iterable[T],
    at_once: int,
    job_of: Callable[[T, list[T]], Any],
    work: Callable[[Any], str | None],
) -> Iterator[tuple[T, str | None]]:
    """Each run as it ends, with why it failed.

    `job_of(run, going)` is what its process is to do, or None while it has to wait for one that is going;
    `work(job)` does it there and returns why it failed.
    """
    waiting = list(runs)
    going: dict[Any, tuple[T, Connection]] = {}  # process → its run, and where its answer comes
    try:
        while waiting or going:
            for run in list(waiting):
                under_way = [other for other, _ in going.values()]
                if len(going) < at_once and (job := job_of(run, under_way)) is not None:
                    waiting.remove(run)
                    process, answer = _start(work, job)
                    going[process] = run, answer
            # By its answer, not by its end: with a long one it is stuck until somebody reads.
            wait([answer for _, answer in going.values()], AGAIN)
            over = [each for each, (_, answer) in going.items() if answer.poll() or not each.is_alive()]
            for process in over:
                run, answer = going.pop(process)
                yield run, _answer(answer, process)
    finally:
        for process in going:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGINT)  # as Ctrl-C, so that nothing half-written is left
        for process in going:
            process.join()


def _start(work: Callable[[Any], str | None], job: Any) -> tuple[Any, Connection]:
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=_alone, args=(work, job, theirs))
    resource_tracker.ensure_running()  # started with the first process it would undo the next line
    # Held back until the process is ready for it: a Ctrl-C during its imports would print a traceback.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    process.start()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    theirs.close()
    return process, ours


def _alone(work: Callable[[Any], str | None], job: Any, answer: Connection) -> None:
    """In the new process."""
    os.setpgrp()  # Ctrl-C in a terminal goes to the starter alone, which passes it on once
    threading.Thread(target=_end_with_starter, daemon=True).start()
    # One line for the user, without its place in the code.
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        answer.send(work(job))
    except KeyboardInterrupt:
        os._exit(130)


def _end_with_starter() -> None:
    starter = multiprocessing.parent_process()
    if starter is not None:
        wait([starter.sentinel])
        os.kill(os.getpid(), signal.SIGINT)


def _answer(answer: Connection, process: Any) -> str | None:
    """What a process sent, or how it ended if it sent nothing; either way it has ended then."""
    try:
        if answer.poll():
            return answer.recv()
    except (EOFError, OSError):  # it ended before, or amid, its answer
        pass
    finally:
        process.join()
    code = process.exitcode
    if code is not None and code < 0:
        return f"its process was ended by {signal.Signals(-code).name}; was there enough memory?"
    return f"its process ended with exit code {code}"
