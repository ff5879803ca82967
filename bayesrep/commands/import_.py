"""`bayesrep import`: published data or tables become a study, or what one needs."""

from argparse import (
    SUPPRESS,
    Action,
    ArgumentParser,
    ArgumentTypeError,
    Namespace,
)
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any, NoReturn, get_args

from bayesrep import process
from bayesrep.choices import Key
from bayesrep.commands.options import (
    SHARED_ARGUMENTS,
    HelpFormatter,
    add_global_options,
    names,
    table_options,
)
from bayesrep.commands.output import emit, new_folder
from bayesrep.errors import OptionError, listing, plain_text
from bayesrep.sources import READERS  # the parser asks for them
from bayesrep.studies.vocabulary import VOCABULARY_OF_NAME, named_words, vocabulary_of, words_of

if TYPE_CHECKING:
    from bayesrep.studies.draft import StudyContents

EXAMPLE = "tables counts.csv predictions.csv --reference v1 --replication v2 --out my-study"
# Each of some readers.
SOURCE_OPTIONS = ("name", "seed", "version")
OF_LOGS = ("metric", "filter", "scorer", "judges", "solvers", "counts", "threshold", "key")
MAX_CLASSIFIER_NAMES = 10  # of classifiers that are all named
COLUMN_OPTIONS = ("item", "model", "score", "dataset")
FLAG_OPTIONS = ("repeats", "common")


def add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-h", "--help", action=_Help, help="show this help message, or the named source's, and exit"
    )
    more = "bayesrep import SOURCE --help says what each source is and takes."
    parser.epilog = f"{_list_examples(*READERS)}\n\n{more}"
    sources = tuple(READERS)
    parser.add_argument("source", choices=sources, metavar="SOURCE", help=", ".join(sources))
    _add_options(parser, None)


class _Help(Action):
    """The help of the command, or of the source that is named before it."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, default=SUPPRESS, help=help)

    def __call__(self, parser: ArgumentParser, namespace: Namespace, *_: Any) -> NoReturn:
        source = getattr(namespace, "source", None)
        source_parser = parser if source is None else _parser_of(source)
        source_parser.print_help()
        parser.exit()


def _parser_of(source: str) -> ArgumentParser:
    """Build the parser that explains one source: its own options only."""
    parser = ArgumentParser(
        prog=f"bayesrep import {source}",
        description=fill(READERS[source].text, max(get_terminal_size().columns - 2, 40)),
        epilog=_list_examples(source),
        formatter_class=HelpFormatter,
    )
    _add_options(parser, source)
    add_global_options(parser, has_table=False)
    return parser


def _list_examples(*sources: str) -> str:
    """An example of each source, as the help ends with them."""
    lines = [f"  bayesrep import {each} {READERS[each].example}" for each in sources]
    return "\n".join([f"example{'s' if len(sources) > 1 else ''}:", *lines])


def _options_of(source: str) -> set[str]:
    """The options that a source takes."""
    reader = READERS[source]
    option_names = {name.replace("_", "-") for name in signature(reader.read).parameters}
    option_names |= {"files", "out", "words", "people"}
    return option_names | {"selection"} if reader.has_counts else option_names


def _add_options(parser: ArgumentParser, source: str | None) -> None:
    """Add the options of all sources, or of one alone."""
    option_names = None if source is None else _options_of(source)

    def adding(add: Callable[..., Action]) -> Callable[..., None]:
        def option(name: str, **details: Any) -> None:
            if option_names is None or name.removeprefix("--") in option_names:
                add(name, **details)

        return option

    option = adding(parser.add_argument)
    option("files", type=Path, nargs="*", metavar="FILE", help="what to read")
    _add_own(option)
    _add_logs(adding(parser.add_argument_group("logs of evaluations (evals)").add_argument))


def _add_own(option: Callable[..., None]) -> None:
    """Add what is written, which data sets there are, and what single sources need."""
    # What is written, of which data sets.
    option(
        "--out",
        type=Path,
        metavar="STUDY",
        help="folder to write (evals without it lists what the logs hold)",
    )
    option("--reference", help="name of the reference data set")
    option("--replication", help="name of the replication data set")
    option("--candidates", metavar="NAME", help="name of the pool of candidates (tables)")
    for name in ("further", "rename", "people"):
        option(f"--{name}", **SHARED_ARGUMENTS[f"--{name}"])
    option(
        "--selection",
        action="append",
        metavar="NAME=RULE",
        help="the rule by which a data set's images were kept on the very counts given: 'v1=all of "
        "6', 'v2=at least 3 of 5', 'v1=at least 70 %%', or a table (selected, shown, probability); "
        "may be repeated",
    )
    option("--name", help="name of the study (evals; tables: that of the folder)")
    option(
        "--words",
        choices=tuple(VOCABULARY_OF_NAME),
        help="images and classifiers, or items and models: what is printed of the study speaks of "
        "these (by default what the source speaks of)",
    )
    # What single sources need.
    option("--version", metavar="V", help="v4 or v6 (cifar10.1; v6)")
    option(
        "--keep-workers",
        action="store_true",
        help="keep workers' names, instead of codes that cannot be undone (tables)",
    )


def _add_logs(option: Callable[..., None]) -> None:
    """Add the options of logs of evaluations, which have a group of their own."""
    # What of a log counts: lists of names.
    for name, text in (
        ("metric", "the metric that says what is solved, where logs hold several"),
        ("filter", "the filter of answers, likewise"),
        ("scorer", "the scorer that says what is solved, likewise"),
        ("judges", "scorers whose verdicts are counted"),
        ("solvers", "models whose attempts are counted; the others are evaluated"),
    ):
        option(f"--{name}", type=names, metavar="NAME,...", help=text)
    # How items are told apart, and what is kept of them.
    option("--counts", type=Path, metavar="FILE", help="a table of dataset, item, selected, shown")
    option("--threshold", type=float, metavar="SCORE", help="the least score of a solved item")
    option("--key", choices=get_args(Key), help="what tells items apart (auto)")
    option(
        "--repeats",
        action="store_true",
        default=None,
        help="records of one model and item that come again are further attempts",
    )
    option(
        "--common",
        action="store_true",
        default=None,
        help="keep the items that all models have, where a model lacks more than 5 %%",
    )
    option(
        "--group",
        action="append",
        type=_group,
        metavar="NAME=TASK,...",
        help="tasks, or patterns of their names, that are one data set; may be repeated (groups of "
        "lm-evaluation-harness are known by their names)",
    )
    # Where a table or JSON has what is read.
    for name in COLUMN_OPTIONS:
        option(
            f"--{name}",
            metavar="COLUMN",
            help=f"the column of a table, or the path in JSON (a.b), of the {name}".replace(
                "dataset", "data set"
            ),
        )


def _group(text: str) -> tuple[str, tuple[str, ...]]:
    """A data set's name, and of which tasks it is."""
    name, equals, rest = text.partition("=")
    members = tuple(each.strip() for each in rest.split(","))
    if not (name and equals and all(members)):
        raise ArgumentTypeError(f"{text!r} is not NAME=TASK,...")
    return name.strip(), members


def run(arguments: Namespace) -> int:
    from bayesrep.sources.importing import refuse_unknown_options

    source, options = arguments.source, _given_options(arguments)
    # Without --out, logs are only surveyed: users see what they hold before naming data sets.
    reader = READERS[source]
    survey = reader.survey if arguments.out is None else None
    if not arguments.files or (arguments.out is None and survey is None):
        raise OptionError("import-needs-file-and-out", source=source)
    refuse_unknown_options(source, options, signature(reader.read).parameters)
    if survey is not None:
        return _print_survey(arguments, survey, options)
    return _import(arguments, options)


def _import(arguments: Namespace, options: Mapping[str, Any]) -> int:
    """Write what the files hold, and say what that is."""
    from bayesrep.sources.importing import import_files
    from bayesrep.studies.study_folder import StudyFolder

    source, out = arguments.source, arguments.out
    # A folder that awaits counts is completed; any other existing folder needs --force.
    if not (READERS[source].adds_counts and StudyFolder(out).awaits_counts):
        new_folder(out, arguments)
    imported = import_files(
        source,
        arguments.files,
        out,
        force=arguments.force,
        keep_workers=arguments.keep_workers,
        selections=_selections(arguments.selection or ()),
        words=arguments.words,
        people=arguments.people,
        progress=not arguments.quiet,
        **options,
    )
    lines, fingerprint = _describe_imported(imported, out)
    if imported.attempts:
        repeated = dict.fromkeys(each.classifier for each in imported.attempts)
        lines.append(f"With repeated attempts of {listing(repeated, 'model')} (attempts.parquet)")
    text = "\n".join([*lines, *(f"Note: {note}" for note in imported.notes)])
    facts = {"out": str(out), "fingerprint": fingerprint, "notes": list(imported.notes)}
    return emit(arguments, text, facts)


def _written_options(options: Mapping[str, Any]) -> Iterator[str]:
    """Options of how logs are read, as they are typed."""
    for name, value in options.items():
        if name == "group":
            for group, tasks in value.items():
                yield from ("--group", f"{group}={','.join(tasks)}")
        else:
            yield from (f"--{name}", value if isinstance(value, str) else ",".join(value))


def _given_options(arguments: Namespace) -> dict[str, Any]:
    """The options of sources that are given, by name."""
    names = (*SOURCE_OPTIONS, *OF_LOGS, *COLUMN_OPTIONS, *FLAG_OPTIONS)
    options: dict[str, Any] = {name: getattr(arguments, name) for name in names}
    options["group"] = dict(arguments.group) if arguments.group else None
    given = {name: value for name, value in options.items() if value is not None}
    given |= table_options(arguments)
    return {name: value for name, value in given.items() if name != "people"}  # of no reader


def _describe_imported(contents: "StudyContents", out: Path) -> tuple[list[str], str | None]:
    """List the files written and those missing, and a study's fingerprint."""
    from bayesrep.report.study_text import describe_study

    if contents.lacks("counts"):
        return _without_counts(contents, out), None
    if contents.lacks("predictions"):
        return _without_predictions(contents, out), None
    study = contents.study()
    lines, names = [describe_study(study)], study.classifiers
    if len(names) <= MAX_CLASSIFIER_NAMES:  # a column of a table may not be meant as one
        lines.append(f"  {words_of(study).classifiers}: {', '.join(map(plain_text, names))}")
    return [*lines, f"Written to {out}"], study.fingerprint()


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
    """Print what files hold, for who does not know yet how to call it."""
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
    lines.append(f"Next: {process.command('import', arguments.source, *words, *named)}")
    return emit(arguments, "\n".join(lines), {"datasets": table.to_dicts(), "groups": groups})


def _without_counts(contents: "StudyContents", out: Path) -> list[str]:
    """Describe an import of answers alone, and the next step."""
    names = " and ".join(plain_text(each.dataset) for each in contents.answers)
    count = len(contents.answers[0].classifiers)
    following = f"Next: {process.command('papers', 'compare', out)}"
    if vocabulary_of(contents.provenance) != "images":
        return [
            f"Answers of {count:,} model{'s' if count != 1 else ''} on {names}",
            f"Written to {out}; for a study it awaits counts: import again with --judges, "
            "--solvers or --counts",
            following,
        ]
    return [
        f"Answers of {count} classifiers on {names}",
        f"Written to {out}",
        following,
        f"With labels: {process.command('papers', 'multilabel', out, '--labels', 'FILE')}",
        f"With counts: {process.command('import', 'tables', 'counts.csv', '--out', out)}",
    ]


def _without_predictions(contents: "StudyContents", out: Path) -> list[str]:
    """Describe an import of counts alone, and the next step."""
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
