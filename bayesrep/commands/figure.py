"""`bayesrep figure`: draw one of the figures of a study, or list them."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from bayesrep.commands.options import (
    PEOPLE_INPUTS,
    add_datasets,
    add_inputs,
    given_inputs,
    keep_compiled,
)
from bayesrep.commands.output import emit, new_file, report_missing_arguments, say

EXAMPLE = "accuracies my-study posterior.nc --out figure.pdf"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("name", nargs="?", metavar="NAME", help="figure to draw, such as curves: see --list")
    option("study", type=Path, nargs="?", metavar="STUDY", help="folder of a study")
    option("posterior", type=Path, nargs="?", metavar="posterior.nc", help="a fit's posterior")
    option("--out", type=Path, metavar="FILE", help="file to draw, .pdf, .svg or .png")
    option(
        "--list",
        action="store_true",
        help="list every figure, what it needs and, given a STUDY, whether that is there",
    )
    add_datasets(parser)
    text = "classifier to show, in figures that show a few; may be repeated"
    option("--classifier", action="append", metavar="NAME", help=text)
    add_inputs(parser, **PEOPLE_INPUTS)


def run(arguments: Namespace) -> int:
    if arguments.list:
        return _list(arguments)
    keep_compiled()
    from bayesrep.posterior.groups import find_group
    from bayesrep.report.figure import check_format, save_picture
    from bayesrep.report.figure_catalogue import FIGURE_ENTRIES
    from bayesrep.report.figure_inputs import FigurePaths, Inputs
    from bayesrep.report.figure_registry import chosen_options, find_figure, read_inputs
    from bayesrep.studies.study_folder import StudyFolder

    chosen = {"NAME": arguments.name, "--out": arguments.out}
    if missing := [argument for argument, value in chosen.items() if value is None]:
        return report_missing_arguments("figure", missing)
    figure = find_figure(arguments.name)
    options = chosen_options(
        arguments.name,
        figure,
        requested={"classifiers": arguments.classifier},
        defaults={"seed": arguments.seed, "progress": not arguments.quiet},
    )
    new_file(check_format(arguments.out), arguments)
    entry = next(each for each in FIGURE_ENTRIES if each.name == arguments.name)
    roles = (arguments.reference, arguments.replication)
    files = FigurePaths(arguments.study, arguments.posterior, roles, **given_inputs(arguments))
    inputs = read_inputs(entry, figure, Inputs(files))
    fits = (each for each in inputs if hasattr(each, "groups") or hasattr(each, "children"))
    for fit in fits if arguments.posterior is not None else ():
        group = find_group(fit, "posterior")
        if group is not None and not group.attrs.get("converged"):
            say("the fit has not converged: no answer is to be read off this figure")
    save_picture(figure.draw(*inputs, **options), arguments.out)
    facts = {"figure": arguments.name, "out": str(arguments.out)}
    left_out = StudyFolder(arguments.study).images_left_out if arguments.study else None
    return emit(arguments, f"Written to {arguments.out}", facts, left_out)


def _list(arguments: Namespace) -> int:
    from bayesrep.report.figure_catalogue import FIGURE_ENTRIES, STUDY_NEEDS, describe_needs

    study = arguments.study or (Path(arguments.name) if arguments.name else None)
    available = None
    if study is not None:
        from bayesrep.studies.study_folder import StudyFolder

        roles = (arguments.reference, arguments.replication)
        available = StudyFolder(study).find_parts(roles)
        available |= {f"--{name}" for name in given_inputs(arguments)}
        available |= {"posterior"} if arguments.posterior else set()
    facts: list[dict[str, Any]] = []
    for entry in FIGURE_ENTRIES:
        lacks = {} if available is None else {"lacks": entry.lacks(available)}
        facts.append(dict(name=entry.name, shows=entry.shows, needs=[*entry.needs], **lacks))
    lines = [f"{e.name:<12}{e.shows}{describe_needs(e, available)}" for e in FIGURE_ENTRIES]
    needed = {need for entry in FIGURE_ENTRIES for need in entry.needs}
    lines += ["", *(f"{need}: {text}" for need, text in STUDY_NEEDS.items() if need in needed)]
    return emit(arguments, "\n".join(lines), {"figures": facts})
