"""`bayesrep papers report`: all that a study can show of one paper, beside its printed numbers."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bayesrep.commands.figure import add_files, files_given, given_files
from bayesrep.commands.options import add_datasets, add_shared, keep_compiled
from bayesrep.commands.output import emit, new_folder

EXAMPLE = "engstrom2020 my-study --out figures"


def add(parser: ArgumentParser) -> None:
    from bayesrep.report.figure_catalogue import PAPER_TITLES

    option = parser.add_argument
    option("paper", choices=tuple(PAPER_TITLES), metavar="PAPER", help=", ".join(PAPER_TITLES))
    add_shared(parser, "study")
    option("--out", type=Path, required=True, metavar="DIR", help="figures and index.html")
    add_datasets(parser)
    add_files(parser)
    add_shared(parser, "--no-progress", "--seed", "--force")


def run(arguments: Namespace) -> int:
    new_folder(arguments.out, arguments)
    keep_compiled()
    from bayesrep.report.figure_inputs import Inputs
    from bayesrep.report.paper_page import write_paper
    from bayesrep.studies.study_folder import StudyFolder

    roles = (arguments.reference, arguments.replication)
    available = StudyFolder(arguments.study).find_parts(roles) | files_given(arguments)
    options = {"bootstrap": arguments.bootstrap, "seed": arguments.seed}
    figures = write_paper(
        arguments.paper,
        Inputs(given_files(arguments)),
        available,
        arguments.out,
        options={name: value for name, value in options.items() if value is not None},
        progress=not arguments.no_progress,
    )
    drawings = [each for each in figures if each["file"]]
    lines = [
        f"{each['number']:>5}  " + (each["file"] or f"not drawn: {each['why_not']}")
        for each in figures
    ]
    lines.append(
        f"{len(drawings)} of {len(figures)} figures; written to {arguments.out / 'index.html'}"
    )
    return emit(arguments, "\n".join(lines), {"figures": figures, "out": str(arguments.out)})
