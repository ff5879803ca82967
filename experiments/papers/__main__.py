"""Figures and printed numbers of four papers, drawn of any study, and a page with sliders.

    python -m experiments.papers list [STUDY]                       every figure, and what it needs
    python -m experiments.papers engstrom2020 STUDY --out DIR       all of a paper, one page
    python -m experiments.papers paper-6 STUDY --out figure.pdf     one figure
    python -m experiments.papers lab --reference 3,2 --pool 2,2 --out lab.html

Papers are engstrom2020, anzaku2022, shankar2020 and tsipras2020. The page of a paper has its
figures, and the numbers that it prints beside those of the study. `lab` says what matching on
noisy answers leaves of two populations of your own, also with sliders.
"""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import bayesrep
from bayesrep.commands.options import (
    GLOBAL_OPTIONS,
    PEOPLE_INPUTS,
    add_datasets,
    add_inputs,
    given_options,
    keep_compiled,
    setting,
    whole_numbers,
)
from bayesrep.commands.output import new_file, new_folder
from bayesrep.errors import BayesrepError, OptionError, reason
from bayesrep.numerics.noisy_matching import BetaMixture
from experiments.papers.catalogue import PAPER_TITLES

INPUTS = {
    "labels": "label sets, one or several",
    "humans": "a table of image, labeler, answer",
    **PEOPLE_INPUTS,
    "classes": "groups of classes: a table with the column class, or superclasses.npy",
    "images": "a folder of pictures, by the study's names of images",
}
"""Files beside a study."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run, and tell in one line what is refused."""
    try:
        run(sys.argv[1:] if argv is None else argv)
    except (BayesrepError, OSError) as error:
        print(reason(error), file=sys.stderr)
        return 2
    return 0


def run(words: Sequence[str]) -> None:
    """Draw what the first word names."""
    what = words[0] if words else ""
    kinds: Mapping[str, tuple[Callable[[ArgumentParser], None], Callable[[Namespace], str]]] = {
        "list": (_add_study, _list_figures),
        "lab": (_add_lab, _explore),
        **dict.fromkeys(PAPER_TITLES, (_add_paper, _write_paper)),
    }
    add, make = kinds.get(what, (_add_figure, _draw_figure))
    parser = ArgumentParser(
        prog="python -m experiments.papers",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", metavar="WHAT", help="a paper, one of its figures, list or lab")
    add(parser)
    print(make(parser.parse_args(words)))


def _add_study(parser: ArgumentParser) -> None:
    parser.add_argument("study", type=Path, nargs="?", metavar="STUDY", help="folder of a study")
    add_datasets(parser)
    option = parser.add_argument
    option("--bootstrap", type=int, metavar="B", help="replicates for intervals (the paper's)")
    add_inputs(parser, **INPUTS)
    option("--by", metavar="COLUMN", help="the column of the classes to put them together by")


def _add_paper(parser: ArgumentParser) -> None:
    _add_study(parser)
    _add_global(parser, "--quiet", "--seed", "--force")
    parser.add_argument("--out", type=Path, required=True, metavar="PATH", help="a folder or file")


def _add_global(parser: ArgumentParser, *names: str) -> None:
    for name in names:
        parser.add_argument(name, **GLOBAL_OPTIONS[name])


def _add_figure(parser: ArgumentParser) -> None:
    _add_paper(parser)
    for name in ("classifier", "class"):
        text = "show this one, where a figure shows a few; may be given several times"
        parser.add_argument(f"--{name}", action="append", metavar="NAME", help=text)
    text = "a number of the figure's, such as annotators=1,5,20; may be given several times"
    parser.add_argument(
        "--set", type=setting, action="append", default=[], metavar="NAME=VALUE", help=text
    )


def _inputs(given: Namespace) -> Any:
    from experiments.papers.inputs import PaperInputs, PaperPaths

    roles = (given.reference, given.replication)
    files: dict[str, Any] = {name: path for name, path in given.input if name != "labels"}
    files["labels"] = tuple(path for name, path in given.input if name == "labels")
    return PaperInputs(PaperPaths(given.study, None, roles, by=given.by, **files))


def _find_parts(given: Namespace) -> set[str]:
    """What there is to draw of: parts of the study, and files beside it."""
    from bayesrep.studies.study_folder import StudyFolder

    roles = (given.reference, given.replication)
    return StudyFolder(given.study).find_parts(roles) | {f"--{name}" for name, _ in given.input}


def _list_figures(given: Namespace) -> str:
    """Every figure, and whether a study has what it needs."""
    from bayesrep.report.figure_catalogue import describe_needs
    from experiments.papers.catalogue import of_paper

    available = None if given.study is None else _find_parts(given)
    lines: list[str] = []
    for paper, title in PAPER_TITLES.items():
        lines += ["", title, ""]
        for entry in of_paper(paper):
            what = f"{entry.number:>5}  {entry.name or '-':<12}{entry.shows}"
            why = f" (not drawn: {entry.why})" if entry.why else ""
            lines.append(what + (why or describe_needs(entry, available)))
    return "\n".join(lines[1:])


def _write_paper(given: Namespace) -> str:
    """All that a study can show of one paper, beside its printed numbers."""
    new_folder(given.out, given)
    keep_compiled()
    from experiments.papers.page import write_paper

    if given.study is None:
        raise OptionError("figure-needs-study", figure=given.what)
    options = {"bootstrap": given.bootstrap, "seed": given.seed}
    figures = write_paper(
        given.what,
        _inputs(given),
        _find_parts(given),
        given.out,
        options={name: value for name, value in options.items() if value is not None},
        progress=not given.quiet,
    )
    lines = [f"{f['number']:>5}  {f['file'] or 'not drawn: ' + f['why_not']}" for f in figures]
    count = sum(bool(each["file"]) for each in figures)
    return "\n".join(
        [*lines, f"{count} of {len(figures)} figures; written to {given.out / 'index.html'}"]
    )


def _draw_figure(given: Namespace) -> str:
    """One figure."""
    keep_compiled()
    from bayesrep.report.figure import check_format
    from bayesrep.report.figure_registry import chosen_options, read_inputs
    from experiments.papers.registry import PAPER_FIGURES, chosen_settings, find_entry
    from experiments.style import save_figure

    entry = find_entry(given.what)
    figure = PAPER_FIGURES[entry.name]
    options = chosen_options(
        entry.name,
        figure,
        requested={
            "bootstrap": given.bootstrap,
            "classifiers": given.classifier,
            "classes": getattr(given, "class"),
        },
        defaults={"seed": given.seed, "progress": not given.quiet},
    )
    options |= chosen_settings(entry.name, dict(given.set))
    new_file(check_format(given.out), given)
    drawing = figure.draw(*read_inputs(entry, figure, _inputs(given)), **options)
    save_figure(drawing, given.out)
    return f"Written to {given.out}"


def _betas(text: str) -> list[tuple[float, float, float]]:
    """A,B or A,B,WEIGHT+A,B,WEIGHT+..."""
    parts = [part.split(",") for part in text.split("+")]
    try:
        parameters = [tuple(map(float, part)) for part in parts]
    except ValueError:
        parameters = []
    sizes = {len(part) for part in parameters}
    if not parameters or sizes - {2, 3} or (len(parameters) > 1 and sizes != {3}):
        raise ArgumentTypeError(f"{text!r} is not A,B of a beta, or A,B,WEIGHT+A,B,WEIGHT of two")
    return [(each[0], each[1], each[2] if len(each) == 3 else 1.0) for each in parameters]


def _add_lab(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("--reference", type=_betas, metavar="A,B", help="betas of the reference (3,2)")
    option("--pool", type=_betas, metavar="A,B", help="betas of the candidates (2,2)")
    option("--study", type=Path, metavar="STUDY", help="in their place: mixtures of its counts")
    text = "the study's data set of candidates (candidates)"
    option("--pool-role", metavar="ROLE", default="candidates", help=text)
    option("--answers", type=whole_numbers, metavar="N,N", help="numbers of answers to look at")
    text = "of the answers, given without looking (0.0)"
    option("--careless", type=float, metavar="SHARE", help=text)
    option("--out", type=Path, metavar="FILE", help="a page with sliders, which ends in .html")
    option("--csv", type=Path, metavar="FILE", help="write the table here, too")
    _add_global(parser, "--seed", "--force")


def _explore(given: Namespace) -> str:
    """The pipeline of Engstrom et al. (2020) on two populations."""
    from bayesrep.studies.vocabulary import IMAGE_WORDS, words_of
    from experiments.papers.lab import explore, lab_text
    from experiments.papers.lab_page import write_lab

    if given.csv is not None:
        new_file(given.csv, given)
    if given.out is not None:
        if given.out.suffix.lower() != ".html":
            raise OptionError("out-not-html", out=given.out)
        new_file(given.out, given)
    words = IMAGE_WORDS
    if given.study is None:
        reference, pool = _mixture(given.reference, 3.0, 2.0), _mixture(given.pool, 2.0, 2.0)
    elif given.reference or given.pool:
        raise OptionError("study-and-populations-given")
    else:
        study = bayesrep.read_study(given.study)
        words = words_of(study)
        reference, pool = _mixtures_of(study, given)
    table = explore(reference, pool, **given_options(given, explore))
    if given.out is not None:
        write_lab(given.out, reference, pool, table.to_dicts(), words)
    if given.csv is not None:
        table.write_csv(given.csv)
    return lab_text(table, reference.mean, pool.mean, given.out, words)


def _mixture(given: list[tuple[float, float, float]] | None, a: float, b: float) -> BetaMixture:
    """The betas that are given, or one."""
    import numpy as np

    components = np.array(given or [(a, b, 1.0)])
    if not (np.isfinite(components) & (components > 0)).all():
        raise OptionError("population-parameters-not-positive")
    first, second, weights = components.T
    return BetaMixture(first, second, weights / weights.sum())


def _mixtures_of(study: bayesrep.Study, given: Namespace) -> tuple[BetaMixture, BetaMixture]:
    """Mixtures of the counts of a study's reference and candidates."""
    from bayesrep.planning.matching import fitted_mixtures

    if given.pool_role not in study.datasets:
        raise OptionError(
            "no-dataset-in-pool-role",
            study=given.study,
            pool_role=given.pool_role,
            choices=", ".join(study.datasets),
        )
    sets = study.reference, study.datasets[given.pool_role]
    return fitted_mixtures(*((each.selected, each.shown) for each in sets), seed=given.seed or 0)


if __name__ == "__main__":
    sys.exit(main())
