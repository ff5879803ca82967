"""`bayesrep papers lab`: the paper's pipeline on two populations of your own."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import bayesrep
from bayesrep.commands.options import add_shared, given_options, whole_numbers
from bayesrep.commands.output import emit_table, new_file, new_table
from bayesrep.errors import OptionError

if TYPE_CHECKING:
    import bayesrep
    from bayesrep.numerics.noisy_matching import BetaMixture

EXAMPLE = "--reference 3,2 --pool 2,2 --out lab.html"


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


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("--reference", type=_betas, metavar="A,B", help="betas of the reference (3,2)")
    option("--pool", type=_betas, metavar="A,B", help="betas of the candidates (2,2)")
    option("--study", type=Path, metavar="STUDY", help="in their place: mixtures of its counts")
    option(
        "--pool-role",
        metavar="ROLE",
        default="candidates",
        help="the study's data set of candidates (candidates)",
    )
    option("--answers", type=whole_numbers, metavar="N,N", help="numbers of answers to look at")
    option(
        "--careless",
        type=float,
        metavar="SHARE",
        help="of the answers, given without looking (0.0)",
    )
    option(
        "--out", type=Path, metavar="FILE", help="write a page with sliders, which ends in .html"
    )
    add_shared(parser, "--seed", "--csv", "--force")


def run(arguments: Namespace) -> int:
    from bayesrep.lab import explore
    from bayesrep.report.lab_page import write_lab
    from bayesrep.report.plan_text import lab_text
    from bayesrep.studies.vocabulary import IMAGE_WORDS, words_of

    new_table(arguments)
    if arguments.out is not None:
        if arguments.out.suffix.lower() != ".html":
            raise OptionError("out-not-html", out=arguments.out)
        new_file(arguments.out, arguments)
    study = _read_given_study(arguments)
    reference, pool = _populations(arguments) if study is None else _of_study(study, arguments)
    # Without a study the populations are those of the options, or two textbook betas.
    table = explore(reference, pool, **given_options(arguments, explore))
    facts = {
        "reference_mean": reference.mean,
        "pool_mean": pool.mean,
        "out": None if arguments.out is None else str(arguments.out),
    }
    words = IMAGE_WORDS if study is None else words_of(study)
    if arguments.out is not None:
        write_lab(arguments.out, reference, pool, table.to_dicts(), words)
    text = lab_text(table, reference.mean, pool.mean, arguments.out, words)
    return emit_table(arguments, table, text, facts)


def _read_given_study(arguments: Namespace) -> "bayesrep.Study | None":
    if arguments.study is None:
        return None
    if arguments.reference or arguments.pool:
        raise OptionError("study-and-populations-given")
    return bayesrep.read_study(arguments.study)


def _populations(arguments: Namespace) -> "tuple[BetaMixture, BetaMixture]":
    import numpy as np

    from bayesrep.numerics.noisy_matching import BetaMixture

    def mixture(components: list[tuple[float, float, float]]) -> BetaMixture:
        a, b, weights = np.array(components).T
        if not (np.isfinite(np.array(components)).all() and (np.array(components) > 0).all()):
            raise OptionError("population-parameters-not-positive")
        return BetaMixture(a, b, weights / weights.sum())

    return (
        mixture(arguments.reference or [(3.0, 2.0, 1.0)]),
        mixture(arguments.pool or [(2.0, 2.0, 1.0)]),
    )


def _of_study(study: "bayesrep.Study", arguments: Namespace) -> "tuple[BetaMixture, BetaMixture]":
    from bayesrep.lab.matching import fitted_mixtures

    if arguments.pool_role not in study.datasets:
        raise OptionError(
            "no-dataset-in-pool-role",
            study=arguments.study,
            pool_role=arguments.pool_role,
            choices=", ".join(study.datasets),
        )
    sets = study.reference, study.datasets[arguments.pool_role]
    return fitted_mixtures(
        *((each.selected, each.shown) for each in sets), seed=arguments.seed or 0
    )
