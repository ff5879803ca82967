"""`bayesrep import`: published data or tables become a study, or what one needs."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any, get_args

from bayesrep import process
from bayesrep.choices import Key
from bayesrep.commands.options import SHARED_ARGUMENTS, by_name, names, table_options
from bayesrep.commands.output import emit, new_folder
from bayesrep.errors import OptionError, listing, plain_text
from bayesrep.sources import READERS  # the parser asks for them
from bayesrep.studies.vocabulary import named_words, vocabulary_of, words_of

if TYPE_CHECKING:
    from bayesrep.studies.draft import StudyContents

MAX_CLASSIFIER_NAMES = 10  # of classifiers that are all named
LOG_CHOICES = ("metric", "filter", "scorer")
LOG_COLUMNS = ("item", "model", "score", "dataset")
# By source, what it takes beside files and --out.
SOURCE_OPTIONS: Mapping[str, Sequence[str]] = {
    "tables": (
        *("reference", "replication", "further", "rename", "people", "selection"),
        "keep-workers",
    ),
    "evals": (
        *("reference", "replication", "rename", "where", "judges", "solvers", "threshold", "key"),
        *("repeats", "common", "group", "selection"),
    ),
    "imagenetv2": ("reference", "replication", "selection"),
}


def _kind_and_names(*kinds: str) -> Callable[[str], tuple[str, tuple[str, ...]]]:
    """A type of KIND=NAME,..., of some kinds or of any."""

    def split(text: str) -> tuple[str, tuple[str, ...]]:
        kind, equals, rest = text.partition("=")
        members = tuple(each.strip() for each in rest.split(","))
        if not (kind and equals and all(members)) or (kinds and kind not in kinds):
            form = f"{' or '.join(kinds) or 'NAME'}=NAME,..."
            raise ArgumentTypeError(f"{text!r} is not {form}")
        return kind.strip(), members

    return split


OPTION_DETAILS: Mapping[str, Mapping[str, Any]] = {
    "out": {
        "type": Path,
        "metavar": "STUDY",
        "help": "folder for the study",
    },
    "reference": {"metavar": "NAME", "help": "name of the reference data set"},
    "replication": {"metavar": "NAME", "help": "name of the replication data set"},
    **{name: SHARED_ARGUMENTS[f"--{name}"] for name in ("further", "rename", "people")},
    "selection": {
        "action": "append",
        "metavar": "NAME=RULE",
        "help": "rule by which a data set's images were kept, on these very counts: 'v1=all of 6', "
        "'v2=at least 3 of 5', 'v1=at least 70 %%', or a table (selected, shown, probability); "
        "may be repeated",
    },
    "keep-workers": {
        "action": "store_true",
        "help": "keep workers' names instead of codes that cannot be traced back",
    },
    "where": {
        "action": "append",
        "type": _kind_and_names(*LOG_CHOICES),
        "metavar": "KIND=NAME,...",
        "help": "metric, filter or scorer that says what is solved, where logs hold several; may "
        "be repeated",
    },
    "judges": {
        "type": names,
        "metavar": "NAME,...",
        "help": "scorers whose verdicts supply the counts",
    },
    "solvers": {
        "type": names,
        "metavar": "NAME,...",
        "help": "models whose attempts supply the counts; the others are evaluated",
    },
    "threshold": {"type": float, "metavar": "SCORE", "help": "lowest score of a solved item"},
    "key": {"choices": get_args(Key), "help": "what identifies an item (default auto)"},
    "repeats": {
        "action": "store_true",
        "default": None,
        "help": "take repeated records of a model and item as further attempts",
    },
    "common": {
        "action": "store_true",
        "default": None,
        "help": "keep only items that all models have, where one lacks more than 5 %%",
    },
    "group": {
        "action": "append",
        "type": _kind_and_names(),
        "metavar": "NAME=TASK,...",
        "help": "tasks, or patterns of their names, that form one data set; may be repeated "
        "(lm-evaluation-harness's groups are known)",
    },
}
LOG_TEXTS = {
    "out": "folder for the study; without it, what the logs hold is listed",
    "rename": "column of a table, or path in JSON (a.b), to read as item, model, score or "
    "dataset; may be repeated",
}


@dataclass(frozen=True)
class SourceImport:
    """The command that imports one source."""

    source: str
    EXAMPLE: str

    def add(self, parser: ArgumentParser) -> None:
        """Say what the source takes."""
        width = max(get_terminal_size().columns - 2, 40)
        parser.description = fill(READERS[self.source].text, width)
        parser.add_argument("files", type=Path, nargs="*", metavar="FILE", help="files or folders")
        for name in ("out", *SOURCE_OPTIONS.get(self.source, ())):
            details = dict(OPTION_DETAILS[name])
            if self.source == "evals" and name in LOG_TEXTS:
                details["help"] = LOG_TEXTS[name]
            parser.add_argument(f"--{name}", **details)

    def run(self, arguments: Namespace) -> int:
        """Import the files, or list what logs hold."""
        options = reader_options(self.source, arguments)
        # Without --out, logs are only surveyed: users see what they hold before naming data sets.
        survey = READERS[self.source].survey if arguments.out is None else None
        if not arguments.files or (arguments.out is None and survey is None):
            raise OptionError("import-needs-file-and-out", source=self.source)
        if survey is not None:
            return _print_survey(arguments, survey, options)
        return _import(self.source, arguments, options)


IMPORTS: Mapping[str, SourceImport] = {
    name: SourceImport(name, reader.example) for name, reader in READERS.items()
}


def reader_options(source: str, arguments: Namespace) -> dict[str, Any]:
    given = vars(arguments)
    options = {name: given.get(name) for name in signature(READERS[source].read).parameters}
    if source == "evals":
        if given.get("further"):
            raise OptionError("further-set-of-logs")
        for kind, members in given.get("where") or ():
            options[kind] = (*(options[kind] or ()), *members)
        options["group"] = dict(given.get("group") or ()) or None
        for column, name in (by_name("--rename", given["rename"]) or {}).items():
            if name not in LOG_COLUMNS:
                raise OptionError("renamed-to-no-log-column", column=column, name=name)
            # Of several scores the reader takes the lowest.
            options[name] = f"{options[name]},{column}" if options[name] else column
    else:
        options |= {
            name: each for name, each in table_options(arguments).items() if name in options
        }
    ours = ("keep_workers", "progress")
    return {name: each for name, each in options.items() if each is not None and name not in ours}


def _import(source: str, arguments: Namespace, options: Mapping[str, Any]) -> int:
    from bayesrep.sources.importing import import_files
    from bayesrep.studies.study_folder import StudyFolder

    out, given = arguments.out, vars(arguments)
    # A folder that awaits counts is completed; any other existing folder needs --force.
    if not (READERS[source].adds_counts and StudyFolder(out).awaits_counts):
        new_folder(out, arguments)
    imported = import_files(
        source,
        arguments.files,
        out,
        force=arguments.force,
        keep_workers=given.get("keep_workers", False),
        selections=_selections(given.get("selection") or ()),
        people=given.get("people"),
        progress=not arguments.quiet,
        **options,
    )
    lines, fingerprint = describe_imported(imported, out)
    if imported.attempts:
        repeated = dict.fromkeys(each.classifier for each in imported.attempts)
        lines.append(f"With repeated attempts of {listing(repeated, 'model')} (attempts.parquet)")
    text = "\n".join([*lines, *(f"Note: {note}" for note in imported.notes)])
    facts = {"out": str(out), "fingerprint": fingerprint, "notes": list(imported.notes)}
    return emit(arguments, text, facts)


def _written_options(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if name == "group":
            for group, tasks in value.items():
                yield from ("--group", f"{group}={','.join(tasks)}")
        else:
            for column in value.split(","):
                yield from ("--rename", f"{column}={name}")


def describe_imported(contents: "StudyContents", out: Path) -> tuple[list[str], str | None]:
    from bayesrep.report.study_text import describe_study

    if contents.lacks("counts"):
        return _without_counts(contents, out), None
    if contents.lacks("predictions"):
        return _without_predictions(contents, out), None
    study = contents.study()
    lines, names = [describe_study(study)], study.classifiers
    if len(names) <= MAX_CLASSIFIER_NAMES:  # a column of a table may not be meant as one
        lines.append(f"  {words_of(study).classifiers}: {', '.join(map(plain_text, names))}")
    following = process.command("fit", out, "--out", "posterior.nc")
    return [*lines, f"Written to {out}", f"Next: {following}"], study.fingerprint()


def _selections(texts: Sequence[str]) -> dict[str, Any]:
    """Rules by data set, of NAME=RULE or NAME=FILE."""
    from bayesrep.sources.selection_table import read_selection

    rules: dict[str, Any] = {}
    for text in texts:
        name, equals, rule = text.partition("=")
        if not (name and equals and rule):
            raise OptionError("selection-not-name-rule", argument=text)
        if name in rules:
            raise OptionError("selection-rule-twice", dataset=name)
        path = Path(rule)
        rules[name] = read_selection(path) if path.suffix in (".csv", ".parquet") else rule
    return rules


def _print_survey(
    arguments: Namespace, survey: Callable[..., Any], options: Mapping[str, Any]
) -> int:
    from bayesrep.report.table_format import list_rows

    if foreign := [name for name in options if name not in signature(survey).parameters]:
        raise OptionError("option-needs-out", option=foreign[0])
    table, groups = survey(arguments.files, progress=not arguments.quiet, **options)

    def joined_names(name: str) -> Callable[[Mapping[str, Any]], str]:
        return lambda row: ", ".join(row[name]) or "-"

    # Columns that are empty for every log are left out of the table.
    some = [name for name in ("metrics", "filters", "scorers") if table[name].list.len().sum()]
    text = list_rows(
        table,
        {
            "data set": "{dataset}",
            "items": "{items:,}",
            "models": lambda row: f"{len(row['models']):,}",
            "attempts": "{attempts:,}",
            **{name: joined_names(name) for name in some},
        },
    )
    models = list(dict.fromkeys(name for row in table["models"] for name in row))
    lines = [text, f"Models: {', '.join(models)}"]
    lines += [f"Group {name}: {listing(tasks, 'task')}" for name, tasks in groups.items()]
    # The options of the survey are repeated, so that the next command reads the same rows.
    words = (*arguments.files, *_written_options(options))
    named = ("--reference", "NAME", "--replication", "NAME", "--out", "STUDY")
    lines.append(f"Next: {process.command('import', 'evals', *words, *named)}")
    return emit(arguments, "\n".join(lines), {"datasets": table.to_dicts(), "groups": groups})


def _without_counts(contents: "StudyContents", out: Path) -> list[str]:
    names = " and ".join(plain_text(each.dataset) for each in contents.answers)
    count = len(contents.answers[0].classifiers)
    following = f"Next: {process.command('papers', 'compare', out)}"
    if vocabulary_of(contents.provenance) != "images":
        return [
            f"Answers of {count:,} model{'s' if count != 1 else ''} on {names}",
            f"Written to {out}; for a study it awaits counts: import again with --judges or "
            "--solvers, or a table of counts (import tables) to the same --out",
            following,
        ]
    multilabel = ("papers", "compare", out, "--table", "multilabel")
    return [
        f"Answers of {count} classifiers on {names}",
        f"Written to {out}",
        following,
        f"With labels: {process.command(*multilabel, '--input', 'labels=FILE')}",
        f"With counts: {process.command('import', 'tables', 'counts.csv', '--out', out)}",
    ]


def _without_predictions(contents: "StudyContents", out: Path) -> list[str]:
    datasets, words = contents.datasets, named_words(contents.provenance)
    counted = ", ".join(
        f"{plain_text(data.name)} ({len(data.images):,} {words.images})"
        for data in datasets.values()
    )
    names = " and ".join(plain_text(data.name) for data in datasets.values())
    if vocabulary_of(contents.provenance) != "images":
        return [
            counted,
            f"Written to {out}; answers are wanted on {names}: import these tables again beside "
            "one of dataset, item, model and solved",
        ]
    options = ("--images", "NAME=PATH", "--classifiers", "NAMES")
    following = process.command("predict", "--study", out, *options)
    return [counted, f"Written to {out}; predictions are wanted of {names}", f"Next: {following}"]
