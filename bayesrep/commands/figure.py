"""`bayesrep figure`: draw one of the figures of a study, or list those of all papers."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesrep.commands.options import add_datasets, add_shared, keep_compiled, setting
from bayesrep.commands.output import emit, new_file, report_missing_arguments, say

if TYPE_CHECKING:
    from bayesrep.report.figure_inputs import FigurePaths

EXAMPLE = "accuracies my-study posterior.nc --out figure.pdf"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("name", nargs="?", metavar="NAME", help="such as paper-6: see --list")
    option("study", type=Path, nargs="?", metavar="STUDY", help="folder of a study")
    option("posterior", type=Path, nargs="?", metavar="posterior.nc", help="of `fit`")
    option("--out", type=Path, metavar="FILE", help="ends in .pdf, .svg or .png")
    option(
        "--list",
        action="store_true",
        help="list every figure of every paper, what it needs and, of a STUDY, whether it is there",
    )
    add_datasets(parser)
    for name in ("classifier", "class"):
        option(
            f"--{name}",
            action="append",
            metavar="NAME",
            help="show this one, where a figure shows a few; may be given several times",
        )
    option(
        "--set",
        type=setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a number of the figure's, such as annotators=1,5,20; may be given several times",
    )
    add_files(parser)
    add_shared(parser, "--no-progress", "--seed", "--force")


def add_files(parser: ArgumentParser) -> None:
    """Add the replicates, and the files beside a study, of which figures are drawn."""
    option = parser.add_argument
    text = "replicates for 95 %% intervals (the paper's)"
    option("--bootstrap", type=int, metavar="B", help=text)
    option("--labels", type=Path, nargs="+", default=[], metavar="FILE", help="label sets")
    option("--humans", type=Path, metavar="FILE", help="a table of image, labeler, answer")
    add_shared(parser, "--objects", "--counts", "--classes", "--by")
    option("--images", type=Path, metavar="FOLDER", help="pictures, by the study's names of images")


def given_files(arguments: Namespace) -> "FigurePaths":
    """Collect the files given by `add_files`, with the study and the posterior."""
    from bayesrep.report.figure_inputs import FigurePaths

    return FigurePaths(
        arguments.study,
        getattr(arguments, "posterior", None),
        (arguments.reference, arguments.replication),
        tuple(arguments.labels),
        **{
            name: getattr(arguments, name)
            for name in ("humans", "objects", "counts", "classes", "images", "by")
        },
    )


def run(arguments: Namespace) -> int:
    if arguments.list:
        return _list(arguments)
    keep_compiled()
    from bayesrep.report.figure_registry import (
        chosen_options,
        chosen_settings,
        find_figure,
        read_inputs,
    )
    from bayesrep.report.style import check_format, save_figure
    from bayesrep.studies.study_folder import StudyFolder

    chosen = {"NAME": arguments.name, "--out": arguments.out}
    if missing := [argument for argument, value in chosen.items() if value is None]:
        return report_missing_arguments("figure", missing)
    options = chosen_options(
        arguments.name,
        requested={
            "bootstrap": arguments.bootstrap,
            "classifiers": arguments.classifier,
            "classes": getattr(arguments, "class"),
        },
        defaults={"seed": arguments.seed, "progress": not arguments.no_progress},
    )
    options |= chosen_settings(arguments.name, dict(arguments.set))
    new_file(check_format(arguments.out), arguments)
    inputs = read_inputs(arguments.name, given_files(arguments))
    for each in inputs:
        if arguments.posterior is not None and _is_unconverged(each):
            say("the fit has not converged: no answer is to be read off this figure")
    save_figure(find_figure(arguments.name).draw(*inputs, **options), arguments.out)
    facts = {"figure": arguments.name, "out": str(arguments.out)}
    left_out = StudyFolder(arguments.study).images_left_out if arguments.study else None
    return emit(arguments, f"Written to {arguments.out}", facts, left_out)


def _is_unconverged(path: Any) -> bool:
    """Return whether an argument is a posterior that has not converged."""
    if not (hasattr(path, "groups") or hasattr(path, "children")):
        return False
    from bayesrep.posterior.groups import find_group

    group = find_group(path, "posterior")
    return group is not None and not group.attrs.get("converged")


def _list(arguments: Namespace) -> int:
    """List every figure, and whether a study has what it needs."""
    from bayesrep.report import figure_catalogue

    study = arguments.study or (Path(arguments.name) if arguments.name else None)
    available = None
    if study is not None:
        from bayesrep.studies.study_folder import StudyFolder

        roles = (arguments.reference, arguments.replication)
        available = StudyFolder(study).find_parts(roles) | files_given(arguments)
    facts, lines = [], list[str]()
    for paper in ("", *figure_catalogue.PAPER_TITLES):
        lines += ["", figure_catalogue.PAPER_TITLES[paper], ""] if paper else []
        rows = list(figure_catalogue.of_paper(paper))
        for entry in rows:
            lacks = None if available is None or entry.why else entry.lacks(available)
            needs = ", ".join(map(figure_catalogue.in_words, entry.needs))
            fact = {"name": entry.name or None, "paper": paper or None, "shows": entry.shows}
            fact |= {"number": entry.number or None, "needs": list(entry.needs)}
            fact |= {"why_not": entry.why or None} | ({} if available is None else {"lacks": lacks})
            facts.append(fact)
            number = f"{entry.number:>5}  " if paper else ""
            if entry.why:
                lines.append(f"{number}{'-':<12}{entry.shows} (not drawn: {entry.why})")
                continue
            status = f"  [{needs}]" if needs else ""
            if lacks is not None:
                short = "it lacks " + ", ".join(map(figure_catalogue.in_words, lacks))
                status = f"  [{short if lacks else 'yes'}]"
            lines.append(f"{number}{entry.name:<12}{entry.shows}{status}")
    lines += ["", *(f"{need}: {text}" for need, text in figure_catalogue.STUDY_NEEDS.items())]
    return emit(arguments, "\n".join(lines), {"figures": facts})


def files_given(arguments: Namespace) -> set[str]:
    """The options, and the posterior, that are given."""
    names = ("labels", "humans", "objects", "counts", "classes", "images")
    option_names = {f"--{name}" for name in names if getattr(arguments, name)}
    return option_names | ({"posterior"} if getattr(arguments, "posterior", None) else set())
