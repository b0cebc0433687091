"""The command line: finds the verb, imports its file alone, and turns errors into one clear message."""

from __future__ import annotations

import errno
import importlib
import os
import shlex
import sys
import warnings

from oltr.errors import UserError
from oltr.registry import unknown_name

# verb → (module, function, what it does); nothing heavy is imported before a verb is known.
VERBS = {
    "demo": ("demo", "demo", "the whole story on embedded data, in a few minutes on two CPU cores"),
    "data check": ("data", "check", "open every image and say what would stop or spoil training"),
    "data stats": ("data", "stats", "images, classes and shot groups, with a picture of the distribution"),
    "data pack": ("data", "pack", "decode all images once into one memory-mapped file"),
    "data longtail": ("curate", "longtail", "make any labelled set long-tailed and open"),
    "data curate": ("curate", "curate", "make a benchmark: imagenet-lt, places-lt, cifar100-lt ..."),
    "train": ("train", "train", "train a recogniser and evaluate it"),
    "import": ("import_run", "import_run", "a checkpoint of the paper's released code as a run folder"),
    "evaluate": ("evaluate", "evaluate", "measure a run, again or with another threshold or source"),
    "compare": ("evaluate", "compare", "several runs in one table, beside the published numbers"),
    "report": ("report", "report", "one page to look at: verdict, table, figures, classes, worst images"),
    "explain": ("explain", "explain", "why an image is named as it is: scores, nearest classes, attention"),
    "predict": ("predict", "predict", "name images, or call them unknown; sort them into folders"),
    "rescore": ("predict", "rescore", "which earlier answers the run as it is now would give otherwise"),
    "discover": ("discover", "discover", "unknown images in clusters, and which to label first"),
    "add-class": ("classes", "add_class", "let a run know a new class from a few images, without training"),
    "remove-class": ("classes", "remove_class", "let a run forget a class"),
    "rename-class": ("classes", "rename_class", "give a class of a run another name"),
    "history": ("classes", "history", "what was done to a run's classes since training"),
    "undo": ("classes", "undo", "take back the last change of a run's classes"),
    "identify": ("identify", "identify", "probes against a gallery: rank-k, open-set, by shot and by group"),
    "loop": ("loop", "loop", "weeks of images with new classes: accuracy against labels spent"),
    "serve": ("serve", "serve", "a page to name unknown images, and an API, on a port of this machine"),
    "export": ("export", "export", "one ONNX file: pixels in, answers out, equal to the run's; a model card"),
    "suite": ("suite", "suite", "a table or a sweep of the paper, end to end, beside the published numbers"),
    "methods": ("listings", "methods", "the methods and open-set scores there are"),
    "recipes": ("listings", "recipes", "the recipes there are, or one of them in full"),
    "weights": ("weights", "weights", "the pretrained weights at hand, and how to get others"),
    "doctor": ("doctor", "doctor", "what this machine has and whether oltr can work on it"),
}

# Faults of disks and permissions, as against ours.
_OF_THE_MACHINE = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EIO,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EMFILE,
)
_AFTER_STOP = {
    "train": "Stopped. Finished epochs and features are kept; the same command with --resume goes on.",
    "demo": "Stopped. What was finished is kept; `oltr demo` goes on from there.",
    "predict": "Stopped. What was judged is kept; the same command goes on from there.",
    "suite": "Stopped. What was finished is kept; the same command goes on from there.",
}


def usage() -> str:
    """The text of `oltr --help`."""
    about = "Open long-tailed recognition: common, rare and unknown classes."
    lines = ["usage: oltr VERB [OPTIONS]", "", about, ""]
    lines += [f"  {verb:<14} {about}" for verb, (_, _, about) in VERBS.items()]
    return "\n".join([*lines, "", "oltr VERB --help tells a verb's options; start with `oltr demo`."])


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit: 0 done, 1 a fault of ours, 2 bad input, 130 stopped by the user."""
    # Threads that wait for each other by spinning starve when other programs use the cores: a training that
    # shares two of them becomes ten times slower. With less spinning, two or three times. (GNU OpenMP's.)
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    # A warning of ours or of a library is one line for the user, without its place in the code.
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    sys.exit(_guarded(sys.argv[1:] if arguments is None else arguments))


def _guarded(arguments: list[str]) -> int:
    try:
        return _run(arguments)
    except UserError as problem:
        _complain(str(problem))
        return 2
    except KeyboardInterrupt:
        print(_AFTER_STOP.get(" ".join(arguments[:1]), "Stopped."), file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has enough, as `head` does; Python would complain once more on leaving.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as problem:
        if problem.errno not in _OF_THE_MACHINE:
            raise
        _complain(f"{problem.filename or 'A file'} could not be read or written: {problem.strerror}.")
        return 2


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if arguments[0] in ("-V", "--version"):
        from oltr import __version__

        print(f"oltr {__version__}")
        return 0
    if arguments[0] == "data" and (len(arguments) == 1 or arguments[1] in ("-h", "--help")):
        print("usage: oltr data VERB [OPTIONS]\n")
        for verb, (_, _, about) in VERBS.items():
            if verb.startswith("data "):
                print(f"  {verb:<14} {about}")
        return 0
    words = 2 if arguments[0] == "data" else 1
    verb = " ".join(arguments[:words])
    if verb not in VERBS:
        raise _unknown_verb(arguments)
    module, name, _ = VERBS[verb]

    import tyro

    from oltr.cli.command import check_options, dressed

    function = getattr(importlib.import_module(f"oltr.cli.{module}"), name)
    check_options(verb, function, arguments[words:])
    flags = (tyro.conf.FlagCreatePairsOff,)
    try:
        return tyro.cli(dressed(function), prog=f"oltr {verb}", args=arguments[words:], config=flags) or 0
    except SystemExit as stop:  # tyro's own: 0 after --help, 2 after a wrong option
        return stop.code if isinstance(stop.code, int) else 2


def _unknown_verb(arguments: list[str]) -> UserError:
    """A misspelt verb, compared with those that stand in its place."""
    inner = [name.removeprefix("data ") for name in VERBS if name.startswith("data ")]
    if arguments[0] == "data":
        return unknown_name("`oltr data` command", arguments[1], inner)
    if arguments[0] in inner:
        whole = shlex.join(["oltr", "data", *arguments])
        return UserError(f"There is no command called {arguments[0]!r}.", try_this=whole)
    return unknown_name("command", arguments[0], dict.fromkeys(name.split()[0] for name in VERBS))


def _complain(text: str) -> None:
    print(f"error: {text}", file=sys.stderr)


if __name__ == "__main__":
    main()
