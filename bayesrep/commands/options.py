"""Arguments that several commands take, and how what is typed is read."""

import csv
import inspect
import os
import sys
from argparse import (
    Action,
    ArgumentParser,
    ArgumentTypeError,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any, get_args

import bayesrep
from bayesrep import bounds
from bayesrep.atomic import LEAST_COMPILATION, programs_cache
from bayesrep.choices import Role, list_methods
from bayesrep.commands.output import say
from bayesrep.errors import OptionError, StudyError, reason

TABLE_OPTIONS = ("reference", "replication", "candidates", "further", "rename", "people")
ROLE_NAMES: tuple[Role, ...] = get_args(Role)


def seed(text: str) -> int:
    """A whole number that every generator of random numbers takes."""
    if not (text.isdecimal() and int(text) <= bounds.MAX_SEED):
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 to {bounds.MAX_SEED}")
    return int(text)


def ends(text: str) -> tuple[int, int]:
    """LOW:HIGH, or N for N:N."""
    low, _, high = text.partition(":")
    try:
        both = int(low), int(high or low)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not N or LOW:HIGH") from None
    if both[0] > both[1]:
        raise ArgumentTypeError(f"{text!r} runs backwards; give LOW:HIGH")
    return both


def whole_numbers(text: str) -> list[int]:
    """N,N,...: whole numbers, which a command checks further."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise ArgumentTypeError(f"{text!r} is not N,N of whole numbers")
    return [int(part) for part in parts]


def setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE: a number, true or false, a word, numbers with commas, or a distribution."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name.isidentifier() or not value:
        raise ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    if "(" in value:
        return name, value
    parts = [_literal(part.strip()) for part in value.split(",")]
    return name, tuple(parts) if len(parts) > 1 else parts[0]


def _literal(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def names(text: str) -> list[str]:
    """NAME,NAME,... as in a line of CSV, or @FILE with a name a line, where # begins a comment."""
    if not text.startswith("@"):
        try:
            parts = next(csv.reader([text], skipinitialspace=True), [])
        except csv.Error as error:
            raise ArgumentTypeError(f"not names separated by commas: {error}") from None
        return [name for part in parts if (name := part.strip())]
    from bayesrep.files.delimited import read_lines

    try:
        lines = read_lines(Path(text[1:]))
    except OSError as error:
        raise ArgumentTypeError(f"{text[1:]}: {reason(error)}") from None
    except StudyError as error:
        raise ArgumentTypeError(str(error)) from None
    return [name for line in lines if (name := line.split("#")[0].strip())]


TEXT_FORMATS = ("text", "markdown")
GLOBAL_OPTIONS: dict[str, dict[str, Any]] = {
    "--json": {"action": "store_true", "help": "print one JSON object and nothing else"},
    "--format": {"default": "text", "help": "format of the printed output (default text)"},
    "--quiet": {"action": "store_true", "help": "show no progress on standard error"},
    "--seed": {"type": seed, "metavar": "N", "help": "seed of all random numbers (default 0)"},
    "--force": {"action": "store_true", "help": "overwrite existing output"},
}
"""Options of every command, which mean nothing to one that has nothing of theirs to do."""


def add_global_options(parser: ArgumentParser, *, has_table: bool) -> None:
    """Add the options of every command; only a table can be printed as CSV."""
    group = parser.add_argument_group("global options")
    formats = (*TEXT_FORMATS, "csv") if has_table else TEXT_FORMATS
    formatted = {**GLOBAL_OPTIONS["--format"], "choices": formats}
    options: dict[str, dict[str, Any]] = {**GLOBAL_OPTIONS, "--format": formatted}
    for name, details in options.items():
        group.add_argument(name, **details)


class HelpFormatter(RawDescriptionHelpFormatter):
    """A help whose first lines leave out the options of every command."""

    def add_usage(
        self, usage: str | None, actions: Iterable[Action], *rest: Any, **more: Any
    ) -> None:
        """Write the usage of a command's own arguments."""
        own = [each for each in actions if f"--{each.dest}" not in GLOBAL_OPTIONS]
        super().add_usage(usage, own, *rest, **more)


PEOPLE_INPUTS = {
    "objects": "what people see, from `collect read --table objects`",
    "counts": "what they select, from `collect read --counts`",
}
SHARED_ARGUMENTS: dict[str, dict[str, Any]] = {
    "study": {"type": Path, "metavar": "STUDY", "help": "folder of a study"},
    "posterior": {"type": Path, "metavar": "posterior.nc", "help": "a fit's posterior"},
    "--allow-unconverged": {"action": "store_true", "help": "show a fit that failed its checks"},
    "--method": {
        "choices": list_methods(),
        "help": "laplace: takes seconds, checked by importance weights; nuts: chains; auto: "
        "laplace where its weights hold, else nuts until its chains agree (default auto)",
    },
    "--people": {
        "type": lambda text: int(text) if text.isdecimal() else text,
        "metavar": "same|N",
        "help": "who answered: the same people about both data sets, mixed (same), or N about each",
    },
    "--further": {
        "action": "append",
        "metavar": "ROLE=NAME",
        "help": "a further data set and its role, such as candidates=NAME, the replication's "
        "pool; may be repeated",
    },
    "--rename": {
        "action": "append",
        "metavar": "COLUMN=NAME",
        "help": "column of the tables to read as dataset, image, selected, shown, classifier or "
        "correct; may be repeated",
    },
}


def add_shared(parser: ArgumentParser, *option_names: str) -> None:
    """Add some of the arguments that mean the same to every command that takes them."""
    for name in option_names:
        parser.add_argument(name, **SHARED_ARGUMENTS[name])


def by_name(option: str, pairs: list[str] | None) -> dict[str, str] | None:
    """The pairs of an option that may be repeated, of NAME=NAME."""
    if pairs is None:
        return None
    names: dict[str, str] = {}
    split = str.rpartition if option == "--rename" else str.partition  # a column's name may hold =
    for text in pairs:
        name, equals, other = (part.strip() for part in split(text, "="))
        if not (name and equals and other):
            form = SHARED_ARGUMENTS[option]["metavar"]
            raise OptionError("pair-without-names", option=option, argument=text, form=form)
        if name in names:
            raise OptionError("pair-given-twice", option=option, name=name)
        names[name] = other
    return names


def add_roles(parser: ArgumentParser) -> None:
    """Add what tables call the data sets, and columns, and who answered."""
    for role in ROLE_NAMES:
        parser.add_argument(f"--{role}", metavar="NAME", help=f"name of the {role} in the tables")
    add_shared(parser, "--further", "--rename", "--people")


def table_options(arguments: Namespace) -> dict[str, Any]:
    """What tables call the data sets and columns, and who answered, as far as it is given."""
    given = {name: getattr(arguments, name, None) for name in TABLE_OPTIONS}
    pairs = {name: by_name(f"--{name}", given[name]) for name in ("further", "rename")}
    return {name: value for name, value in (given | pairs).items() if value is not None}


def named_path(text: str) -> tuple[str, Path]:
    """NAME=PATH, a data set's name and where it is."""
    from bayesrep.files.names import normalize_name

    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise ArgumentTypeError(f"{text!r} is not NAME=PATH, with the data set's name")
    return normalize_name(name), Path(path)


def add_length(parser: ArgumentParser, nouns: str) -> None:
    """Add how much of a long table is printed; `--format csv` and `--json` have all of it."""

    def number_or_all(text: str) -> int:
        if text == "all":
            return sys.maxsize
        if not text.isdecimal() or not int(text):
            raise ArgumentTypeError(f"{text!r} is neither all nor a whole number above 0")
        return int(text)

    text = f"number of {nouns} to print (default 10)"
    parser.add_argument("--top", type=number_or_all, metavar="N|all", help=text)


def add_table(parser: ArgumentParser, *tables: str) -> None:
    """Add the choice of a table; the first is printed unless another is asked for."""
    text = f"table to show (default {tables[0]})"
    parser.add_argument("--table", choices=tables, default=tables[0], help=text)


def refuse_foreign(
    arguments: Namespace, only_for: Mapping[str, Sequence[str]], switch: str = "table"
) -> None:
    """Refuse options, by name, that are given with another table than those that take them."""
    for name, tables in only_for.items():
        if getattr(arguments, name) is not None and getattr(arguments, switch) not in tables:
            option = f"input {name}" if name in dict(vars(arguments).get("input", ())) else name
            facts = {"option": option, "switch": switch, "table": " or ".join(tables)}
            raise OptionError("option-of-another-table", **facts)


def add_inputs(parser: ArgumentParser, **texts: str) -> None:
    """Add files beside a study, by names whose meaning is told."""

    def name_and_path(text: str) -> tuple[str, Path]:
        name, _, path = text.partition("=")
        if name not in texts or not path:
            forms = ", ".join(f"{each}=PATH" for each in texts)
            raise ArgumentTypeError(f"{text!r} is none of {forms}")
        return name, Path(path)

    told = "; ".join(f"{name}: {text}" for name, text in texts.items())
    text = f"{told}; may be repeated"
    parser.add_argument(
        "--input", type=name_and_path, action="append", default=[], metavar="NAME=PATH", help=text
    )


def given_inputs(arguments: Namespace, *of_several: str) -> dict[str, Any]:
    """The files beside a study: one a name, or a list of those of which there may be several."""
    paths: dict[str, Any] = {}
    for name, path in arguments.input:
        if name in of_several:
            paths.setdefault(name, []).append(path)
        elif paths.setdefault(name, path) is not path:
            raise OptionError("pair-given-twice", option="--input", name=name)
    return paths


def add_datasets(parser: ArgumentParser) -> None:
    """Add the names of both data sets, of which the answers are enough."""
    for role in ROLE_NAMES:
        text = f"data set to take as the {role}, where the study names none"
        parser.add_argument(f"--{role}", default=role, metavar="NAME", help=text)


def given_options(arguments: Namespace, function: Callable[..., Any]) -> dict[str, Any]:
    """The options of a function, those parameters that have a default, that the user gave."""
    parameters = inspect.signature(function).parameters.values()
    options = [each.name for each in parameters if each.default is not each.empty]
    values = {name: getattr(arguments, name, None) for name in options}
    return {name: value for name, value in values.items() if value is not None}


def read_fitted(arguments: Namespace) -> "tuple[bayesrep.Study, Any]":
    _ = bayesrep.read_study  # imports it
    with import_in_thread("h5py", "scipy.special"):
        study = bayesrep.read_study(arguments.study)
    return study, read_draws(arguments.posterior)


def read_draws(path: Path) -> Any:
    """Read the draws as `bayesrep.read_posterior` does, without ArviZ, a second's import."""
    keep_compiled()  # what is asked of a posterior may compile
    from bayesrep.posterior import read_tree

    return read_tree(path)


@contextmanager
def import_in_thread(*names: str) -> Generator[None]:
    """Import modules that share none with reading in a thread while a study is read."""

    def work() -> None:
        for name in names:
            with suppress(BaseException):  # what fails fails again where it is needed, and is told
                import_module(name)

    thread = Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join()  # a process that ends while a library is being imported crashes


def keep_compiled() -> None:
    """Keep what commands compile, as `fit` does by itself, unless the user decided where."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    try:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(programs_cache())
    except (OSError, RuntimeError) as error:
        say(f"compiled programs are not kept: {error}")
        return
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", str(LEAST_COMPILATION))
