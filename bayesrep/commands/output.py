"""Output of commands, of which nothing else prints: results to standard output, else to error."""

import codecs
import io
import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bayesrep.atomic import replaced_file
from bayesrep.errors import OptionError, plain_text
from bayesrep.files.strict_json import replace_non_finite
from bayesrep.studies.layout import MANIFEST_FILE, STUDY_ENTRIES

DONE_STATUS = 0
FINDING_STATUS = 1  # the command did its work, and what it found is bad; or the machine failed it
STANDARD_OUTPUT = "standard output"
MISTAKE_STATUS = 2  # wrong usage, a bad option, data or a file that cannot be used


def describe_kept_work(place: Path | None) -> str:
    """Describe what an interrupt leaves of work stored at a place, once it has begun."""
    if place is None or not place.exists() or (place.is_dir() and not any(place.iterdir())):
        return "nothing was written"
    return f"the same command resumes from {place}"


def new_folder(path: Path, arguments: Namespace) -> None:
    """Refuse, before any work, what exists, or what holds a path that another argument names."""
    place = path.resolve()
    for each in _other_paths(path, arguments):
        if each.exists() and each.resolve().is_relative_to(place):
            raise OptionError("output-holds-input", path=path, input=each)
    _refuse_existing(path, arguments)


def _refuse_existing(path: Path, arguments: Namespace) -> None:
    if path.exists() and not vars(arguments).get("force", False):
        raise OptionError("output-path-exists", path=path)


def new_file(path: Path, arguments: Namespace) -> None:
    """Refuse, before any work, what exists, cannot be written, or another argument names."""
    if path.is_dir():
        raise OptionError("output-is-folder", path=path)
    place = path.resolve()
    for each in _other_paths(path, arguments):
        if each.resolve() == place or (path.exists() and each.exists() and path.samefile(each)):
            raise OptionError("output-is-input", path=path)
        inside = each.is_dir() and path.exists() and place.is_relative_to(each.resolve())
        if inside and (each / MANIFEST_FILE).is_file():
            if place.relative_to(each.resolve()).parts[0] in STUDY_ENTRIES:
                raise OptionError("output-is-input", path=path)
    _refuse_existing(path, arguments)
    if path.exists() and not path.is_file():
        raise OptionError("output-not-a-file", path=path)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise OptionError("output-folder-not-writable", path=path, parent=path.parent)


def _other_paths(path: Path, arguments: Namespace) -> list[Path]:
    return [each for each in _paths_in(list(vars(arguments).values())) if each is not path]


def _paths_in(value: Any) -> Iterator[Path]:
    if isinstance(value, Path):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _paths_in(each)


def new_table_file(path: Path, arguments: Namespace) -> None:
    """Refuse, before any work, a name that is neither CSV nor Parquet, or as `new_file` does."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise OptionError("output-not-table-file", path=path)
    new_file(path, arguments)


def write_table(table: Any, path: Path) -> None:
    """Write a table as CSV or Parquet, which its name says, whole or not at all."""
    with replaced_file(path) as partial:
        (table.write_csv if path.suffix.lower() == ".csv" else table.write_parquet)(partial)


def write_batches(parts: Iterable[Any], path: Path) -> None:
    """Write a table of which a part is in memory at a time, as `write_table` does."""
    from polars.io.plugins import register_io_source

    rows = iter(parts)
    first = next(rows, None)
    if first is None:
        raise OptionError("output-without-rows", path=path)

    def remaining(*_: Any) -> Iterator[Any]:
        yield first
        yield from rows

    table = register_io_source(remaining, schema=first.schema)
    with replaced_file(path) as partial:
        (table.sink_csv if path.suffix.lower() == ".csv" else table.sink_parquet)(partial)


TYPED_SIGNS: Mapping[str, str] = {
    **{"−": "-", "–": "-", "±": "+/-", "×": "x", "≤": "<=", "≥": ">=", "…": "...", "→": "->"},
    **{"²": "^2", "³": "^3", "√": "sqrt ", "·": "*", "∝": "~"},
}
"""Replacements for characters of ours that a terminal's encoding may lack."""


def open_streams() -> None:
    """Let the process's streams take any text, and be there where whoever began it closed them."""
    # What an encoding lacks is written as it is typed, or as an escape, as in `\xe9`.
    codecs.register_error("bayesrep", _escape_unencodable)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            _close_to_nothing(number)
            setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))
        elif number and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="bayesrep")


def _close_to_nothing(number: int) -> None:
    """Keep a stream's number from the next file that is opened, which would get what is printed."""
    with suppress(OSError):
        os.fstat(number)
        return
    null = os.open(os.devnull, os.O_RDWR)  # the least number that is free
    if null != number:
        os.dup2(null, number)
        os.close(null)


def _escape_unencodable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    escaped = (TYPED_SIGNS.get(c) or c.encode("ascii", "backslashreplace").decode() for c in lost)
    return "".join(escaped), error.end


@contextmanager
def _standard_output() -> Generator[None]:
    """Print, and name the stream where it cannot be written; nothing is tried again at the end."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OSError(error.errno, error.strerror, STANDARD_OUTPUT) from error


def say(message: str, program: str = "bayesrep") -> None:
    """One line on standard error, if anybody reads it."""
    with suppress(BrokenPipeError):
        print(f"{program}: {plain_text(message)}", file=sys.stderr)


def write_as(form: str) -> None:
    """Print what this command says as text, Markdown or CSV."""
    if form == "markdown":
        from bayesrep.report.table_format import TEXT_FORMAT, WRITTEN_TABLES

        TEXT_FORMAT.set(form)
        WRITTEN_TABLES.set([])


def progress_line(text: str) -> None:
    """Write a line of progress on standard error, beside the bars."""
    print(plain_text(text), file=sys.stderr, flush=True)


def finding(message: str) -> int:
    """Print a finding; return its exit status."""
    say(message)
    return FINDING_STATUS


def report_missing_arguments(command: str, names: Sequence[str]) -> int:
    say(f"{', '.join(names)} must be given", f"bayesrep {command}")
    return MISTAKE_STATUS


def show_each_once() -> Callable[..., None]:
    """Build a `warnings.showwarning` that shows each warning for users once, in one line."""
    texts: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any) -> None:
        line = f"{category.__name__}: {message}"
        if not issubclass(category, FutureWarning | DeprecationWarning) and line not in texts:
            texts.add(line)
            say(line)

    return show


LeftOut = Mapping[str, Mapping[str, str]]  # images that a study is left without, by data set


def emit(
    arguments: Namespace, text: str, facts: Mapping[str, Any], left_out: LeftOut | None = None
) -> int:
    """Print the text, or the facts as JSON, and which images are left out, and why."""
    if not arguments.json and arguments.format == "csv":
        raise OptionError("no-table-as-csv")
    if left_out:
        from bayesrep.report.study_text import left_out_lines

        text = "\n".join([text, *left_out_lines(left_out)])
        facts = {**facts, "left_out": left_out}
    with _standard_output():
        print(_output_text(arguments, text, facts))
    return DONE_STATUS


def _output_text(arguments: Namespace, text: str, facts: Mapping[str, Any]) -> str:
    """Return the text for standard output: JSON facts, or text without control sequences."""
    if arguments.json:
        return as_json(arguments.command, facts)
    for path in (str(each) for each in vars(arguments).values() if isinstance(each, Path)):
        text = text.replace(path, plain_text(path))  # a line break in it is not an end of a line
    if vars(arguments).get("format") == "markdown":
        from bayesrep.report.table_format import write_sentences

        text = write_sentences(text)
    return "\n".join(map(plain_text, text.split("\n")))


def as_json(command: str, facts: Mapping[str, Any]) -> str:
    """One object, which says of which command it is; what is not a number is null."""
    return json.dumps(
        replace_non_finite({"format": f"bayesrep {command} 1", **facts}), allow_nan=False
    )


def emit_table(
    arguments: Namespace,
    table: Any,
    text: str,
    facts: Mapping[str, Any] | None = None,
    left_out: LeftOut | None = None,
) -> int:
    """Print the table as text, as CSV alone, or as JSON with further facts."""
    if not arguments.json and arguments.format == "csv":
        return _emit_csv(table, left_out)
    return emit(arguments, text, {"rows": table.to_dicts(), **(facts or {})}, left_out)


def _emit_csv(table: Any, left_out: LeftOut | None) -> int:
    """Print a table as CSV; which images are left out goes to standard error."""
    if left_out:
        from bayesrep.report.study_text import left_out_lines

        for line in left_out_lines(left_out):
            say(line)
    text = table.write_csv()
    if sys.stdout.isatty():  # where a name could steer the terminal
        text = "\n".join(map(plain_text, text.split("\n")))
    with _standard_output():
        print(text, end="")
    return DONE_STATUS
