"""The command line: parse, call the command, and put in one line what goes wrong.

docs/reference/command-line.md says what is printed where, and what the exit statuses mean.
"""

import argparse
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from bayesrep import errors, process
from bayesrep.atomic import PLACED_FILES, remove_partials
from bayesrep.commands import import_command
from bayesrep.commands.options import HelpFormatter, add_global_options
from bayesrep.commands.output import (
    DONE_STATUS,
    FINDING_STATUS,
    MISTAKE_STATUS,
    STANDARD_OUTPUT,
    open_streams,
    say,
    show_each_once,
    write_as,
)
from bayesrep.errors import BayesrepError, ConvergenceError, did_you_mean, plain_text, reason
from bayesrep.version import __version__


@dataclass(frozen=True)
class CommandGroup:
    """Commands that are steps of one thing: what it is, and what each of its steps does."""

    text: str
    steps: Mapping[str, str]


HELP_HEADINGS: Mapping[str, Mapping[str, str]] = {
    "Start here": {
        "run": "from your tables to the report, in one go",
        "demo": "simulate a study, fit it, compare with the truth",
        "check": "what tables, a study or logs hold, what is wrong, and what they can answer",
    },
    "A study from your data": {
        "predict": "run timm classifiers over a folder of images (extra [timm])",
        "simulate": "write a simulated study whose truth is known",
    },
    "How much of the drop is real": {
        "estimate": "point estimates of adjusted accuracy, also by number of annotators",
        "fit": "fit the joint model and write its posterior",
        "sweep": "run a grid of studies, methods and options, and resume it where it stopped",
    },
    "What a fit says": {
        "diagnose": "say whether to trust a fit, and what to change; compare fits",
        "summarize": "adjusted accuracies, ranks, pairs of classifiers, single images",
        "figure": "draw a figure of a study; list them all",
        "report": "write all results as one page that needs no network",
    },
}
"""Commands with their descriptions, under the headings of the help."""

GROUPS: Mapping[str, CommandGroup] = {
    "import": CommandGroup(
        "turn published data or tables into a study",
        {
            "tables": "your own tables of counts or annotations, and of predictions",
            "evals": "logs of evaluations of language models",
            "imagenetv2": "predictions of 45 classifiers on ImageNet and ImageNet-v2",
            "cifar10.1": "predictions of 20 classifiers on CIFAR-10 and CIFAR-10.1",
            "cifar10h": "a placebo whose true gap is zero, from people's answers on CIFAR-10",
            "madrylab": "the annotations behind Engstrom et al. (2020)",
            "arrays": "data sets that come as arrays, such as CIFAR-10.2 and CINIC-10",
        },
    ),
    "collect": CommandGroup(
        "collect a new test set: plan it, ask people, read their answers, choose images",
        {
            "plan": "how many images, answers and workers a replication takes, and what they cost",
            "tasks": "write tasks: labels to ask about, grids, single images, predictions to judge",
            "read": "read the answers, the labels worth a closer look, and what each image shows",
            "match": "choose a replication's images from a pool; the bias that matching leaves",
        },
    ),
    "answers": CommandGroup(
        "read annotators' answers, count them, and see who gave them",
        {
            "import": "read answers, as annotation tools export them, into one table",
            "count": "count answers, all or by rules of quality control, with errors over workers",
            "crowd": "who answered, how workers differ, and what that adds to errors",
            "remeasure": "how often images kept by a rule would be selected if measured again",
        },
    ),
    "papers": CommandGroup(
        "measures of published papers, on your data",
        {
            "compare": "classifiers beside people and each other, by one label or by several, on "
            "matched images, by effective robustness",
            "passk": "pass@k: the share of items solved within k attempts, for any k",
        },
    ),
}
"""The groups, whose commands are typed with the group's name before their own."""

COMMANDS: Mapping[str, str] = {
    **{name: text for commands in HELP_HEADINGS.values() for name, text in commands.items()},
    **{
        f"{name} {step}": text for name, each in GROUPS.items() for step, text in each.steps.items()
    },
}
"""Descriptions of commands by whole name; the module in `commands` has the same name."""

TABLE_COMMANDS = (
    *("answers crowd", "answers remeasure", "collect match", "diagnose", "estimate"),
    *("papers compare", "papers passk", "predict", "summarize"),
)
"""Commands that print a table, as CSV where it is asked for."""

_WAYS = {
    "ranks pairs images": "it is now: bayesrep summarize --table {}",
    "plan": "it is now: bayesrep collect plan",
    "match-images": "it is now: bayesrep collect match",
    "count crowd remeasure": "it is now: bayesrep answers {}",
    "match multilabel compare": "it is now: bayesrep papers compare",
    "passk": "it is now: bayesrep papers passk",
    "doctor": "it is now: bayesrep check",
    "loo; models: loo": "it is now: bayesrep diagnose FIT --against OTHER",
    "mixtures; models: mixtures": "it is now: bayesrep estimate STUDY --table components",
    "annotators; papers: annotators": "it is now: bayesrep estimate STUDY --table annotators",
    "rematch; papers: rematch": "it is now: bayesrep collect match STUDY --check",
    "clean; answers: clean": "it is now: bayesrep answers count TABLE --rules NAME,NAME",
    "dependence; answers: dependence": "it is now: bayesrep answers crowd TABLE --context grid",
    "collect: candidates contains classify review": "it is now: bayesrep collect tasks --kind {}",
    "collect: labels objects": "it is now: bayesrep collect read TABLE --table {}",
    "papers: match": "it is now: bayesrep papers compare STUDY --table matched",
    "papers: multilabel": "it is now: bayesrep papers compare STUDY --table multilabel",
    "paper lab; papers: report lab": "run python -m experiments.papers in a checkout "
    "(docs/report.md)",
    "bench": "run python -m benchmarks.device in a checkout (docs/how-to/mcmc-experiments.md)",
    "completion": "print it: bayesrep --print-completion SHELL",
    "collect: pilot": "answer some tasks on the offline page (docs/how-to/collect.md)",
    "import: sql": "let the database count, and import its table (docs/how-to/own-data.md)",
    "answers import: doccano argilla prodigy": "save the export as a table "
    "(docs/how-to/own-data.md)",
    "--no-progress": "it is now --quiet",
    "--all": "it is now --top all",
    "--csv": "print the table: --format csv > FILE",
    "figure: --objects --counts; report: --objects --counts --images; "
    "papers compare: --humans --labels --objects --counts --classes --subsets "
    "--posterior": "it is now --input {}=PATH",
    "run: --candidates; check: --candidates; "
    "import tables: --candidates": "it is now --further candidates=NAME",
    "run: --bootstrap": "use bayesrep estimate --bootstrap on the study that it makes",
    "fit: --draws --warmup --feedback": "it is now --set {}=...",
    "fit: --no-classes": "it is now --set classes=false",
    "simulate: --process --dependence": "in Python: bayesrep.simulate_study({}=...)",
    "figure: --bootstrap": "in Python, plots take bootstrap=N (docs/report.md)",
    "import evals: --item --model --score --dataset": "give --rename COLUMN={}",
    "import evals: --metric --filter --scorer": "give --where {}=NAME",
    "import evals: --counts": "import the table to the same --out (bayesrep import tables)",
    "import cifar10.1: --version": "it is v6; of v4 is bayesrep.sources.cifar10_1.read in Python",
    "predict: --calibrate-on --ensembles": "use predict_from_logits in Python (docs/predict.md)",
    "predict: --catalog": "a catalog's name stands among --classifiers (docs/predict.md)",
    "predict: --list": "docs/predict.md has the catalogs, read_catalog in Python what is in them",
    "predict: --batch-size --cache --compile --workers": "give {} in Python (docs/predict.md)",
    "predict: --dataset": "name the data set with its images (--images NAME=PATH)",
    "papers compare: --reference --replication": "name both data sets with --datasets",
    "papers compare: --published": "it is --table published",
    "papers compare: --fast": "--table subsets has them where --input humans=FILE has seconds",
    "collect read: --least": "it is now: --rules time=SECONDS",
    "collect read: --pay --keep-workers": "do so in Python (docs/how-to/collect.md)",
    "collect match: --least --most --components --replicates; "
    "collect plan: --crowds --leniency --answers --studies --jobs "
    "--ray": "give it in Python (docs/how-to/collect.md)",
    "answers import: --image --worker --answer --label": "it is now: --rename COLUMN={}",
}
GONE_NAMES: Mapping[str, str] = {
    f"{command} {name}".strip(): way.format(name.lstrip("-").replace("-", "_"))
    for typed, way in _WAYS.items()
    for command, _, names in (each.rpartition(":") for each in typed.split(";"))
    for name in names.split()
}
"""Commands, sources and options that are gone, as they were typed, with the way now."""
SHELL_NAMES = ("bash", "zsh", "fish")
NOTHING_KEPT_TEXT = "nothing was written"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command."""
    words = sys.argv[1:] if argv is None else argv
    if refused := _refuse_gone(words) or _refuse_name(words):
        say(refused)
        return MISTAKE_STATUS
    try:
        arguments = _parse(words)
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
    # A notebook's backend is handed on, and need not be installed here; figures have a style.
    os.environ.update(MPLBACKEND="agg", MATPLOTLIBRC=os.devnull)
    open_streams()
    process.run(main)


class _Parser(argparse.ArgumentParser):
    """A parser that answers in one line, and tells an option that there is not before all else."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Parse as argparse does, options between positionals too; refuse unknown words."""
        self._refuse_unknown(args)
        parse = self.parse_known_args if "--" in args else self.parse_known_intermixed_args
        parsed, rest = parse(args, namespace)
        if rest:
            self.error(f"one argument too many: {plain_text(' '.join(rest))}")
        return parsed

    def error(self, message: str) -> NoReturn:
        """Refuse wrong words in one line, where argparse prints the whole usage before it."""
        self.exit(MISTAKE_STATUS, f"{self.prog}: error: {message} ({self.prog} --help says more)\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check a choice as argparse does, and suggest the nearest one."""
        valid = [] if action.choices is None else list(map(str, action.choices))
        if isinstance(value, str) and value not in valid and (hint := did_you_mean(value, valid)):
            raise argparse.ArgumentError(action, f"there is no {value!r}{hint}")
        super()._check_value(action, value)

    def _refuse_unknown(self, words: Sequence[str]) -> None:
        options = self._option_string_actions
        for word in takewhile(lambda word: word != "--", words):
            name = word.split("=")[0]
            if name.startswith("--") and not any(each.startswith(name) for each in options):
                named = [
                    each.metavar
                    for each in self._get_positional_actions()
                    if isinstance(each.metavar, str) and f"--{each.dest}" == name
                ]
                hint = f"; {named[0]} is given without it" if named else did_you_mean(name, options)
                self.error(plain_text(f"there is no option {name}{hint}"))


def _find_name(words: Sequence[str]) -> str:
    """The command, or else the group, that the words begin with; "" where they begin with none."""
    first, second = [*words, "", ""][:2]
    if first in GROUPS:
        return f"{first} {second}" if second in GROUPS[first].steps else first
    return first if first in COMMANDS and " " not in first else ""


def _refuse_gone(words: Sequence[str]) -> str:
    """Refuse what is gone, with the way now."""
    for gone, way in GONE_NAMES.items():
        *command, last = gone.split()
        rest = words[len(command) :]
        given = [each.split("=")[0] for each in rest] if last.startswith("--") else rest[:1]
        if [*words[: len(command)]] == command and last in given:
            return f"'{gone}' no longer exists; {way}"
    return ""


def _refuse_name(words: Sequence[str]) -> str:
    name = _find_name(words)
    word = next(iter(words[len(name.split()) :]), "")
    if name in COMMANDS or not word or word.startswith("-"):
        return ""
    if name:
        lacking, names, listing = f"step {word!r} of {name}", GROUPS[name].steps, f"bayesrep {name}"
    else:
        lacking, names, listing = f"command {word!r}", [*COMMANDS, *GROUPS], "bayesrep"
    return f"there is no {lacking}{did_you_mean(word, names) or f'; {listing} --help lists them'}"


def _parse(words: Sequence[str]) -> argparse.Namespace:
    name = _find_name(words)
    parser = _command_parser(name) if name in COMMANDS else _listing_parser(name)
    rest = words[len(name.split()) :]
    return parser.parse_args(rest if name in COMMANDS else rest or ["--help"])


def _listing_parser(name: str) -> argparse.ArgumentParser:
    """Build the parser that explains a group by its steps, or the program ("") by its commands."""
    program = f"bayesrep {name}".rstrip()
    kind, own = "STEP" if name else "COMMAND", " [--version] [--print-completion SHELL]"
    if name:
        text = f"{GROUPS[name].text}\n\n{_list_commands({'Steps': GROUPS[name].steps})}"
    else:
        groups = {
            each: f"{group.text} ({', '.join(group.steps)})" for each, group in GROUPS.items()
        }
        listed = _list_commands({**HELP_HEADINGS, "Groups of commands": groups})
        text = f"How much of a benchmark's accuracy drop is real?\n\n{listed}"
    parser = _Parser(
        prog=program,
        usage=f"{program} [-h]{'' if name else own} {kind} ...",
        description=text,
        epilog=f"{program} {kind} --help says what each takes, with an example.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if not name:
        parser.add_argument("--version", action="version", version=f"bayesrep {__version__}")
        text = "a script that completes commands, options and choices"
        parser.add_argument(
            "--print-completion", choices=SHELL_NAMES, action=_PrintCompletion, help=text
        )
    return parser


class _PrintCompletion(argparse.Action):
    """Print a shell's completion of all commands, and end."""

    def __call__(self, parser: argparse.ArgumentParser, _: Any, values: Any, *__: Any) -> NoReturn:
        import shtab

        from bayesrep.report.figure_catalogue import FIGURE_ENTRIES

        every = argparse.ArgumentParser(prog="bayesrep")
        every.add_argument("--version", action="store_true")
        words = every.add_subparsers(metavar="COMMAND")
        of_group = {
            name: words.add_parser(name, help=group.text).add_subparsers(metavar="STEP")
            for name, group in GROUPS.items()
        }
        for name, text in COMMANDS.items():
            group, _, step = name.rpartition(" ")
            listing = of_group[group] if group else words
            each = listing.add_parser(step, help=text, conflict_handler="resolve")
            _add_arguments(each, name)
            for action in each._actions:
                if action.type is Path:
                    action.complete = shtab.FILE  # type: ignore[attr-defined]
                elif (name, action.dest) == ("figure", "name"):  # a refusal would list all of them
                    action.choices = [figure.name for figure in FIGURE_ENTRIES]
        sys.stdout.write(f"{shtab.complete(every, values)}\n")
        parser.exit()


def _command_parser(name: str) -> argparse.ArgumentParser:
    module = import_command(name)
    parser = _Parser(
        prog=f"bayesrep {name}",
        description=COMMANDS[name],
        epilog=f"example:\n  bayesrep {name} {module.EXAMPLE}",
        formatter_class=HelpFormatter,
        conflict_handler="resolve",  # a command may have a help of its own
    )
    _add_arguments(parser, name)
    parser.set_defaults(module=module, command=name)
    return parser


def _add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    import_command(name).add(parser)
    add_global_options(parser, has_table=name in TABLE_COMMANDS)


def _list_commands(headings: Mapping[str, Mapping[str, str]]) -> str:
    width = max(len(name) for commands in headings.values() for name in commands) + 2
    room = max(shutil.get_terminal_size().columns - width - 6, 40)
    lines: list[str] = []
    for heading, commands in headings.items():
        lines += ["", f"  {heading}"]
        for name, text in commands.items():
            first, *more = textwrap.wrap(text, room)
            lines.append(f"    {name.ljust(width)}{first}")
            lines += [" " * (4 + width) + text for text in more]
    return "\n".join(lines[1:])


def _run(arguments: argparse.Namespace) -> int:
    """Run a parsed command; what is wrong with its data, options or files becomes one line."""
    try:
        if os.environ.get("POLARS_MAX_THREADS") == "0":  # which ends it at every file
            raise errors.OptionError("no-polars-threads")
        write_as(arguments.format)
        PLACED_FILES.set([])
        context = copy_context()
        process.on_interrupt(lambda: context.run(_describe_interrupt, arguments))
        return arguments.module.run(arguments)
    except (Exception, KeyboardInterrupt) as error:
        if not isinstance(error, KeyboardInterrupt) and not process.is_stopped():
            return _report_refusal(error)
        if text := process.interrupt_text():
            say(text)
        return process.INTERRUPTED_STATUS


def _describe_interrupt(arguments: argparse.Namespace) -> str:
    """What an interrupt leaves, once the file being written is removed: files, or kept work."""
    remove_partials()
    # What is written besides, as into a cache, is nobody's concern.
    paths = [each.absolute() for each in vars(arguments).values() if isinstance(each, Path)]
    placed = [
        p for p in PLACED_FILES.get() or () if any(p.absolute().is_relative_to(g) for g in paths)
    ]
    describe: Callable[[argparse.Namespace], str] | None = getattr(
        arguments.module, "describe_kept", None
    )
    text = describe(arguments) if describe else NOTHING_KEPT_TEXT
    if text == NOTHING_KEPT_TEXT and placed:
        text = f"{', '.join(map(str, placed))} had been written"
    return f"interrupted; {text}"


def _report_refusal(error: Exception) -> int:
    """Report an error in data, options or a file in one line; raise any other, which is a bug."""
    match error:
        case BayesrepError() | Warning():  # where PYTHONWARNINGS makes them errors
            say(reason(error))
            return FINDING_STATUS if isinstance(error, ConvergenceError) else MISTAKE_STATUS
        case BrokenPipeError(filename=name) if name == STANDARD_OUTPUT:
            return DONE_STATUS  # all was made, and who reads what is printed has enough
        case OSError():
            say(f"{getattr(error, 'filename', None) or 'a file'}: {reason(error)}")
            return FINDING_STATUS
        case ValueError() if "for environment 'JAX_" in str(error):  # as JAX is imported
            say(f"{reason(error)}; unset it, or correct it")
            return MISTAKE_STATUS
        case MemoryError():
            say(f"not enough memory for this: {reason(error)}")
            return FINDING_STATUS
        case _:
            raise error
