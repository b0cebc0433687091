"""`oltr doctor`: what this machine has."""

from __future__ import annotations

from oltr.cli.options import Json, print_json

NEEDED = (
    "torch",
    "torchvision",
    "timm",
    "lightning",
    "torchmetrics",
    "PIL",
    "pandas",
    "pyarrow",
    "sklearn",
    "matplotlib",
    "safetensors",
    "yaml",
    "rich",
)


def doctor(as_json: Json = False) -> int:
    """Versions, devices, memory and disk; exit code 2 if something that oltr needs is missing."""
    import os
    import shutil
    from importlib import import_module

    found: dict[str, object] = {}
    problems = []
    for module in NEEDED:
        try:
            import_module(module)
        except Exception as problem:  # a broken install fails in its own ways
            problems.append(f"{module} cannot be imported: {problem}")
    if not problems:
        from oltr.training.run_folder import hardware, versions

        found |= versions() | {"device": hardware()}
    found |= {
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "free_disk_gib": round(shutil.disk_usage(".").free / 2**30, 1),
        "problems": problems,
    }
    if as_json:
        print_json(found)
    else:
        for name, value in found.items():
            if name != "problems":
                print(f"{name:<14} {value}")
        print("\n".join(f"problem: {problem}" for problem in problems) or "all is there")
    return 2 if problems else 0
