"""The command line: parse, call the command, and put in one line what goes wrong.

Tables and JSON go to standard output, progress and warnings to standard error. Exit status 0: done;
1: what was found is bad (a fit that has not converged or is not to be trusted, a study with broken
rules, classifiers or images left out), or the machine failed, as a full disk does; 2: a mistake in
the usage, an option, the data or a file, and one line says which; 130 or 143: interrupted by SIGINT
(Ctrl-C) or SIGTERM.
"""

import argparse
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from importlib import import_module
from itertools import takewhile
from keyword import iskeyword
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from bayesrep import process
from bayesrep.atomic import PLACED_FILES
from bayesrep.commands.examples import epilog
from bayesrep.commands.output import (
    DONE_STATUS,
    FINDING,
    MISTAKE,
    STANDARD_OUTPUT,
    open_streams,
    say,
    show_each_once,
    write_tables_as,
)
from bayesrep.errors import BayesrepError, ConvergenceError, did_you_mean, plain_text, reason
from bayesrep.version import __version__

COMMANDS: Mapping[str, str] = {
    "run": "from your tables to the report, in one go",
    "demo": "simulate a study, fit it, compare with the truth",
    "simulate": "write a simulated study of known truth",
    "import": "turn published data or tables into a study",
    "predict": "run timm classifiers over a folder of images (extra [timm])",
    "check": "list everything that is wrong with tables or a study",
    "doctor": "what data allow to say of two versions of a benchmark, and what is missing",
    "estimate": "point estimates of adjusted accuracy",
    "fit": "sample the joint posterior",
    "mixtures": "compare mixtures of the selection frequency by size",
    "sweep": "run a grid of studies, methods and options, and go on where it was stopped",
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
    "passk": "the share of items that k attempts solve, for any k",
    "summarize": "adjusted accuracies with credible intervals",
    "ranks": "rank classifiers by adjusted accuracy",
    "pairs": "which of two classifiers is better once selection is removed",
    "images": "how hard every image is, for people and for classifiers",
    "remeasure": "what images kept by a rule would say if they were measured again",
    "diagnose": "say whether to trust a fit, and what to change",
    "loo": "compare fits of one study by how well they predict what is left out",
    "match": "accuracy on images about which a classifier says alike",
    "multilabel": "accuracy by all labels that are right on an image",
    "compare": "classifiers beside people and each other on both data sets",
    "figure": "draw a figure of a study or of a paper; list them all",
    "paper": "all that a study can show of one paper, beside its printed numbers",
    "report": "write a page of all results that needs no network",
    "bench": "whether a GPU is seen, is right, and what it buys",
    "completion": "a script that completes commands and options in bash, zsh or fish",
}
"""What each does; its module is the one of its name in `commands`."""

GROUPS: Mapping[str, Sequence[str]] = {
    "Start here": ("run", "demo", "check", "doctor"),
    "A study from your data": ("import", "predict", "simulate", "count"),
    "How much of the drop is real": ("estimate", "fit", "annotators", "mixtures", "sweep"),
    "What a fit says": (
        *("diagnose", "summarize", "ranks", "pairs", "images", "loo", "remeasure"),
        *("figure", "paper", "report"),
    ),
    "Collect a new test set": ("collect", "match-images", "plan", "lab", "rematch"),
    "Who answered": ("answers", "clean", "crowd", "dependence"),
    "Other protocols": ("match", "multilabel", "compare", "passk"),
}
"""Under which headings the help lists commands; those that are in none come last."""
FORMATS = ("text", "markdown", "latex")
NOTHING_KEPT_TEXT = "nothing was written"


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
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        known = did_you_mean(words[0], COMMANDS)
        say(f"there is no command {words[0]!r}{known or '; bayesrep --help lists them'}")
        return MISTAKE
    try:
        arguments = _parser(words).parse_args(words)
    except SystemExit as stop:
        return int(stop.code or 0)
    with warnings.catch_warnings():
        warnings.showwarning = show_each_once()
        # JAX writes a kept program in place: where another command is writing it, or was killed
        # while it did, JAX says so and compiles it. The answer is the same.
        warnings.filterwarnings("ignore", "Error reading persistent compilation cache entry")
        return copy_context().run(_run, arguments)  # the format of tables is this command's own


def run_process() -> NoReturn:
    """Run the process's own command and end it: the script `bayesrep`."""
    # Products of our size are done before a second thread wakes: with one, a report takes a tenth
    # of the time for them, and waits for nobody where others compute. JAX has threads of its own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    open_streams()
    process.run(main)


class _Parser(argparse.ArgumentParser):
    """A parser that answers in one line, at the command whose option a mistyped one was to be."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """As argparse does; but an option that there is not is told, and nothing else before it."""
        words = list(sys.argv[1:] if args is None else args)
        before = takewhile(lambda word: word.startswith("-"), words)  # the name of a command
        self._refuse_unknown(list(before) if self._subparsers else words)
        parsed, left = super().parse_known_args(words, namespace)
        if left and self._subparsers is None:
            self.error(f"one argument too many: {plain_text(' '.join(left))}")
        return parsed, left

    def error(self, message: str) -> NoReturn:
        """What is wrong in one line, where argparse prints the whole usage before it."""
        self.exit(MISTAKE, f"{self.prog}: error: {message} ({self.prog} --help says more)\n")

    def _refuse_unknown(self, words: Sequence[str]) -> None:
        known = self._option_string_actions
        for word in takewhile(lambda word: word != "--", words):
            name = word.split("=")[0]
            if name.startswith("--") and not any(each.startswith(name) for each in known):
                named = [
                    each.metavar
                    for each in self._get_positional_actions()
                    if isinstance(each.metavar, str) and f"--{each.dest}" == name
                ]
                hint = f"; {named[0]} is given without it" if named else did_you_mean(name, known)
                self.error(plain_text(f"there is no option {name}{hint}"))


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of all commands, of which only the one that is asked for is imported."""
    asked = next((word for word in words if word in COMMANDS), None)
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog="bayesrep",
        usage=None if asked else "bayesrep [-h] [--version] COMMAND ...",
        description=f"How much of a benchmark's accuracy drop is real?\n\n{_list_commands()}",
        epilog="bayesrep COMMAND --help says what each takes, with an example.",
        formatter_class=raw,
    )
    parser.add_argument("--version", action="version", version=f"bayesrep {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, help=argparse.SUPPRESS)
    for name, text in COMMANDS.items():
        command = commands.add_parser(
            name,
            description=text,
            epilog=epilog(name),
            formatter_class=raw,
            conflict_handler="resolve",  # a command may have a help of its own
        )
        if name == asked:
            module = _module(name)
            command.add_argument(
                "--json", action="store_true", help="print one JSON object, nothing else"
            )
            command.add_argument(
                "--format", choices=FORMATS, default="text", help="of printed tables (text)"
            )
            module.add(command)
            command.set_defaults(module=module, command=name)
            if name == "completion":
                command.set_defaults(commands={each: _module_name(each) for each in COMMANDS})
    return parser


def _list_commands() -> str:
    """The commands under their headings."""
    grouped = {name for names in GROUPS.values() for name in names}
    groups = {**GROUPS, "More": [name for name in COMMANDS if name not in grouped]}
    width = max(map(len, COMMANDS)) + 2
    room = max(shutil.get_terminal_size().columns - width - 6, 40)
    lines: list[str] = []
    for heading, names in groups.items():
        lines += ["", f"  {heading}"]
        for name in names:
            first, *more = textwrap.wrap(COMMANDS[name], room)
            lines.append(f"    {name.ljust(width)}{first}")
            lines += [" " * (4 + width) + text for text in more]
    return "\n".join(lines[1:])


def _module(name: str) -> ModuleType:
    return import_module(_module_name(name))


def _module_name(name: str) -> str:
    return f"bayesrep.commands.{name.replace('-', '_')}{'_' * iskeyword(name)}"


def _run(arguments: argparse.Namespace) -> int:
    """Run a parsed command; what is wrong with its data, options or files becomes one line."""
    try:
        write_tables_as(arguments.format)
        PLACED_FILES.set([])
        return arguments.module.run(arguments)
    except (Exception, KeyboardInterrupt) as error:
        if not isinstance(error, KeyboardInterrupt) and not process.is_stopped():
            return _report_refusal(error)
        say(f"interrupted; {_describe_kept(arguments)}")
        return process.INTERRUPTED_STATUS


def _describe_kept(arguments: argparse.Namespace) -> str:
    """What an interrupt leaves: what had been written to a place that was given, or what goes on.

    What is written besides, as into a cache, is nobody's concern.
    """
    given = [each.absolute() for each in vars(arguments).values() if isinstance(each, Path)]
    placed = [
        p for p in PLACED_FILES.get() or () if any(p.absolute().is_relative_to(g) for g in given)
    ]
    describe: Callable[[argparse.Namespace], str] | None = getattr(
        arguments.module, "describe_kept", None
    )
    told = describe(arguments) if describe else NOTHING_KEPT_TEXT
    if told == NOTHING_KEPT_TEXT and placed:
        return f"{', '.join(map(str, placed))} had been written"
    return told


def _report_refusal(error: Exception) -> int:
    """Say what is wrong with the data, the options or a file; what else went wrong is ours."""
    match error:
        case BayesrepError():
            say(reason(error))
            return FINDING if isinstance(error, ConvergenceError) else MISTAKE
        case BrokenPipeError(filename=name) if name == STANDARD_OUTPUT:
            return DONE_STATUS  # all was made, and who reads what is printed has enough
        case OSError():
            say(f"{getattr(error, 'filename', None) or 'a file'}: {reason(error)}")
            return FINDING
        case MemoryError():
            say(f"not enough memory for this: {reason(error)}")
            return FINDING
        case _:
            raise error
