"""`bayesrep figure`: draw one of the figures of a study."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bayesrep.commands.options import add_datasets, add_shared, keep_compiled
from bayesrep.commands.output import emit, lacking, new_file


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("name", nargs="?", metavar="NAME", help="such as paper-6: see --list")
    option("study", type=Path, nargs="?", metavar="STUDY")
    option("posterior", type=Path, nargs="?", metavar="posterior.nc")
    option("--out", type=Path, metavar="FILE", help="ends in .pdf, .svg or .png")
    option("--list", action="store_true", help="list the figures and stop")
    add_datasets(parser)
    option(
        "--classifier",
        action="append",
        metavar="NAME",
        help="show this one, where a figure shows a few; may be given several times",
    )
    option(
        "--bootstrap", type=int, metavar="B", help="replicates for 95 %% intervals (the paper's)"
    )
    add_shared(parser, "--objects", "--counts", "--no-progress", "--seed", "--force")


def run(arguments: Namespace) -> int:
    keep_compiled()
    from bayesrep.report.figure_names import FIGURES, chosen_options, named, read_inputs
    from bayesrep.report.figures import check_format, save_figure
    from bayesrep.studies.reading import images_left_out

    if arguments.list:
        described = {name: figure.description for name, figure in FIGURES.items()}
        width = max(map(len, described))
        lines = (f"{name.ljust(width)}  {text}" for name, text in described.items())
        return emit(arguments, "\n".join(lines), described)
    given = {"NAME": arguments.name, "--out": arguments.out}
    if missing := [argument for argument, value in given.items() if value is None]:
        return lacking("figure", missing)
    options = chosen_options(
        arguments.name,
        asked={"bootstrap": arguments.bootstrap, "classifiers": arguments.classifier},
        taken={"seed": arguments.seed, "progress": not arguments.no_progress},
    )
    new_file(check_format(arguments.out), force=arguments.force)
    roles = (arguments.reference, arguments.replication)
    people = {"objects": arguments.objects, "counts": arguments.counts}
    inputs = read_inputs(arguments.name, arguments.study, arguments.posterior, roles, people)
    save_figure(named(arguments.name).draw(*inputs, **options), arguments.out)
    facts = {"figure": arguments.name, "out": str(arguments.out)}
    left_out = images_left_out(arguments.study) if arguments.study else None
    return emit(arguments, f"Written to {arguments.out}", facts, left_out)
