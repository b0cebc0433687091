"""Which files and functions a command walks through, in the order in which they are first called.

    python benchmarks/walk.py evaluate runs/photos                  # files, each with its functions
    python benchmarks/walk.py --count evaluate runs/photos          # how many files and functions

docs/architecture.md lists the walks of `train`, `evaluate`, `predict` and `report`.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import oltr
from oltr.cli.main import main as oltr_main

ROOT = Path(oltr.__file__).parent


def imported(frame: FrameType | None) -> bool:
    """Whether a frame runs because a module is being imported: class bodies, decorators, tables."""
    while frame is not None and frame.f_code.co_name != "walk":
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def walk(words: list[str]) -> dict[str, list[str]]:
    """File → functions of the command `oltr WORDS`, or of `Recognizer.load(RUN).predict(IMAGES)`."""
    found: dict[str, list[str]] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(ROOT)) or "<" in code.co_name:
            return
        if code.co_qualname not in found.get(str(Path(code.co_filename).relative_to(ROOT)), ()):
            if imported(frame):
                return
            functions = found.setdefault(str(Path(code.co_filename).relative_to(ROOT)), [])
            functions.append(code.co_qualname)

    sys.setprofile(note)
    threading.setprofile(note)
    try:
        if words[0] == "predict":
            from oltr import Recognizer

            print(Recognizer.load(words[1]).predict(words[2]).to_string())
        else:
            oltr_main(words)
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


if __name__ == "__main__":
    only_count = sys.argv[1] == "--count"
    walked = walk(sys.argv[2 if only_count else 1 :])
    print(f"\n{len(walked)} files, {sum(map(len, walked.values()))} functions")
    if not only_count:
        for file, functions in walked.items():
            print(f"{file}: {', '.join(functions)}")
