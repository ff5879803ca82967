"""The command line: parse, call the command, and put in one line what goes wrong.

Tables and JSON go to standard output, progress and warnings to standard error. Exit status 0: done;
1: what was found is bad (a fit that has not converged or is not to be trusted, a study with broken
rules, classifiers or images left out), or the machine failed, as a full disk does; 2: a mistake in
the usage, an option, the data or a file, and one line says which; 130 or 143: interrupted by SIGINT
(Ctrl-C) or SIGTERM.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from keyword import iskeyword
from typing import Any, NoReturn

from bayesrep import process
from bayesrep.commands.output import DONE, FINDING, MISTAKE, say, show_warning
from bayesrep.errors import BayesrepError, ConvergenceError, reason
from bayesrep.version import __version__

COMMANDS: Mapping[str, str] = {
    "run": "from your tables to the report, in one go",
    "demo": "simulate a study, fit it, compare with the truth",
    "simulate": "write a simulated study of known truth",
    "import": "turn published data or tables into a study",
    "predict": "run timm classifiers over a folder of images (extra [timm])",
    "check": "list everything that is wrong with tables or a study",
    "estimate": "point estimates of adjusted accuracy",
    "fit": "sample the joint posterior with NUTS",
    "mixtures": "compare mixtures of the selection frequency by size",
    "annotators": "naive and jackknife estimates for every number of annotators, and whether they "
    "are a line",
    "collect": "ask people what images show: tasks, their forms, and the answers back",
    "match-images": "choose a replication's images from a pool, and the bias that each way leaves",
    "plan": "how many images, answers and workers a replication takes, and what they cost",
    "lab": "what matching on noisy answers leaves of two populations; a page with sliders",
    "rematch": "whether the bias of matching shows in the answers at hand",
    "answers": "what annotators answered, as their tools export it, as one table",
    "clean": "leave out answers by published rules of quality control, and say which",
    "count": "counts, and the error over workers, of more answers than fit into memory",
    "crowd": "who answered, how workers differ, and what that adds to errors",
    "dependence": "how much annotators' answers about an image depend on each other",
    "summarize": "adjusted accuracies with credible intervals",
    "ranks": "rank classifiers by adjusted accuracy",
    "pairs": "which of two classifiers is better once selection is removed",
    "images": "how hard every image is, for people and for classifiers",
    "diagnose": "say whether to trust a fit, and what to change",
    "loo": "compare fits of one study by how well they predict what is left out",
    "match": "accuracy on images about which a classifier says alike",
    "multilabel": "accuracy by all labels that are right on an image",
    "compare": "classifiers beside people and each other on both data sets",
    "figure": "draw one of the paper's figures of a study",
    "report": "write a page of all results that needs no network",
}
"""What each does, in the order of the help; its module is the one of its name in `commands`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv
        Arguments without the program's name; default: those of the process.

    Returns
    -------
    int
        Exit status.
    """
    words = sys.argv[1:] if argv is None else argv
    try:
        arguments = _parser(words).parse_args(words)
    except SystemExit as stop:
        return int(stop.code or 0)
    with warnings.catch_warnings():
        warnings.showwarning = show_warning
        return _run(arguments)


def run_process() -> NoReturn:
    """Run the process's own command and end it: the script `bayesrep`."""
    process.run(main)


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of all commands, of which only the one that is asked for is imported."""
    parser = argparse.ArgumentParser(
        prog="bayesrep", description="How much of a benchmark's accuracy drop is real?"
    )
    parser.add_argument("--version", action="version", version=f"bayesrep {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    asked = next((word for word in words if word in COMMANDS), None)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name == asked:
            module = _module(name)
            command.add_argument(
                "--json", action="store_true", help="print one JSON object, nothing else"
            )
            module.add(command)
            command.set_defaults(module=module)
    return parser


def _module(name: str) -> Any:
    file = name.replace("-", "_") + "_" * iskeyword(name)
    return import_module(f"bayesrep.commands.{file}")


def _run(arguments: argparse.Namespace) -> int:
    """Run a parsed command; what is wrong with its data, options or files becomes one line."""
    try:
        status = arguments.module.run(arguments)
        sys.stdout.flush()
        return status
    except (Exception, KeyboardInterrupt) as error:
        if not isinstance(error, KeyboardInterrupt) and not process.stopped():
            return _refused(error)
        kept = getattr(arguments.module, "kept", None)
        say(f"interrupted; {kept(arguments) if kept else 'nothing was written'}")
        return process.INTERRUPTED


def _refused(error: Exception) -> int:
    """Say what is wrong with the data, the options or a file; what else went wrong is ours."""
    match error:
        case BayesrepError():
            say(reason(error))
            return FINDING if isinstance(error, ConvergenceError) else MISTAKE
        case BrokenPipeError():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return DONE
        case OSError():
            say(f"{getattr(error, 'filename', None) or 'a file'}: {reason(error)}")
            return FINDING
        case MemoryError():
            say(f"not enough memory for this: {reason(error)}")
            return FINDING
        case _:
            raise error
