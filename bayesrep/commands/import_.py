"""`bayesrep import`: published data or tables become a study, or what one needs.

The source sql has no files: it prints the statement that a database is to be asked.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bayesrep import process
from bayesrep.commands.options import add_shared, seed
from bayesrep.commands.output import emit, new_study
from bayesrep.errors import OptionError

OPTIONS = ("reference", "replication", "candidates", "name", "seed")  # each of some readers
STATEMENT = ("annotations", "predictions", "reference", "replication")


def add(parser: ArgumentParser) -> None:
    from bayesrep.sources import READERS
    from bayesrep.sources.sql import DIALECTS

    option = parser.add_argument
    sources = (*READERS, "sql")
    option("source", choices=sources, metavar="SOURCE", help=", ".join(sources))
    option("files", type=Path, nargs="*", metavar="FILE", help="none of sql")
    option("--out", type=Path, metavar="STUDY", help="where to write; sql is printed")
    option("--reference", help="name of the reference data set")
    option("--replication", help="name of the replication data set")
    option("--candidates", metavar="NAME", help="name of the pool of candidates (tables)")
    option("--name", help="name of the study (tables; that of the folder)")
    option("--seed", type=seed, help="of the placebo replication (cifar10h)")
    option(
        "--keep-workers",
        action="store_true",
        help="keep workers' names, instead of codes that cannot be undone (tables)",
    )
    option(
        "--dialect",
        choices=tuple(DIALECTS),
        help="print the one statement whose result is a study (sql)",
    )
    for table in ("annotations", "predictions"):
        option(f"--{table}", metavar="TABLE", help=f"the database's name of it (sql; {table})")
    add_shared(parser, "--force")


def run(arguments: Namespace) -> int:
    if arguments.source == "sql":
        return _statement(arguments)
    if not arguments.files or arguments.out is None:
        raise OptionError(f"import {arguments.source} takes FILE and --out STUDY")
    for name in ("dialect", "annotations", "predictions"):
        if getattr(arguments, name) is not None:
            raise OptionError(f"the source {arguments.source} takes no --{name}")
    from bayesrep.report.text import describe_study
    from bayesrep.sources.importing import import_files
    from bayesrep.studies.study import Study
    from bayesrep.studies.writing import awaits_counts

    out = arguments.out
    if not (arguments.source == "tables" and awaits_counts(out)):
        new_study(out, force=arguments.force)
    options = {name: getattr(arguments, name) for name in OPTIONS}
    if arguments.source == "tables" and options["name"] is None:
        options["name"] = out.resolve().name
    imported = import_files(
        arguments.source,
        arguments.files,
        out,
        force=arguments.force,
        keep_workers=arguments.keep_workers,
        **options,
    )
    fingerprint = None
    if isinstance(imported, Study):
        text, fingerprint = f"{describe_study(imported)}\nWritten to {out}", imported.fingerprint()
    elif isinstance(imported, Mapping):
        text = _without_predictions(imported, out)
    else:
        text = _without_counts(imported, out)
    return emit(arguments, text, {"study": str(out), "fingerprint": fingerprint})


def _statement(arguments: Namespace) -> int:
    """Print the statement for a database."""
    from bayesrep.sources.sql import DIALECTS, statement

    if arguments.dialect is None:
        raise OptionError(f"import sql takes --dialect: {', '.join(DIALECTS)}")
    taken = ("files", "out", "candidates", "name", "seed", "keep_workers", "force")
    if given := [name for name in taken if getattr(arguments, name)]:
        raise OptionError(
            f"import sql takes no {given[0]}: it prints a statement, and its result is what import "
            "tables takes"
        )
    asked = {name: getattr(arguments, name) for name in STATEMENT}
    options = {name: value for name, value in asked.items() if value is not None}
    text = statement(arguments.dialect, **options)
    return emit(arguments, text.rstrip("\n"), {"statement": text})


def _without_counts(answers: Sequence[Any], out: Path) -> str:
    """What was written of published answers, and what is to be done next."""
    names, program = [each.dataset for each in answers], process.program()
    return (
        f"Answers of {len(answers[0].classifiers)} classifiers on {' and '.join(names)}\n"
        f"Written to {out}\n"
        f"Next: {program} multilabel {out} --dataset {names[0]} --labels FILE, or add "
        f"counts: {program} import tables counts.csv --reference {names[0]} --replication "
        f"{names[1]} --out {out}"
    )


def _without_predictions(datasets: Mapping[str, Any], out: Path) -> str:
    """What was written of tables of counts, and what is to be done next."""
    counted = ", ".join(f"{data.name} ({len(data.images):,} images)" for data in datasets.values())
    names = " and ".join(data.name for data in datasets.values())
    return (
        f"{counted}\nWritten to {out}\n"
        f"Next: {process.program()} predict --study {out} --dataset NAME --images PATH "
        f"--classifiers NAMES, for {names}"
    )
