"""`bayesrep diagnose`: say whether to trust a fit, and what to change."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import bayesrep
from bayesrep.commands.options import add_shared, read_draws
from bayesrep.commands.output import emit, emit_table, finding
from bayesrep.errors import OptionError
from bayesrep.studies.vocabulary import words_of

EXAMPLE = "posterior.nc --study my-study"


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "posterior")
    text = "study that was fitted, to check classifiers' agreement too"
    parser.add_argument("--study", type=Path, metavar="STUDY", help=text)
    parser.add_argument(
        "--against",
        type=Path,
        action="append",
        default=[],
        metavar="OTHER.nc",
        help="another fit of the study, to compare how well each predicts data left out; may be "
        "repeated",
    )


def run(arguments: Namespace) -> int:
    if arguments.against:
        return _compare(arguments)
    study = bayesrep.read_study(arguments.study) if arguments.study else None
    posterior = read_draws(arguments.posterior)
    diagnosis = bayesrep.diagnose(posterior, study)
    tables = {
        name: getattr(diagnosis, name) for name in ("predictions", "sensitivity", "dependence")
    }
    facts = {
        "trust": diagnosis.trust,
        "assumption": diagnosis.assumption,
        "sentences": diagnosis.sentences,
        "checks": diagnosis.checks.to_dicts(),
        **{name: None if table is None else table.to_dicts() for name, table in tables.items()},
    }
    from bayesrep.posterior.groups import read_record
    from bayesrep.report.fits_text import diagnosis_text

    words = read_record(posterior).words if study is None else words_of(study)
    places = str(arguments.study or "STUDY"), str(arguments.posterior)
    text = diagnosis_text(diagnosis, *places, words)
    emit(arguments, text, facts, study.left_out if study else None)
    if diagnosis.trust == "no":
        return finding(f"{arguments.posterior}: do not trust this fit")
    return 0


def _compare(arguments: Namespace) -> int:
    from bayesrep.checks import compare_fits
    from bayesrep.posterior.groups import read_record
    from bayesrep.report.fits_text import fits_text

    if arguments.study is not None:
        raise OptionError("against-with-study")
    fits = {str(path): read_draws(path) for path in (arguments.posterior, *arguments.against)}
    table = compare_fits(fits)
    words = read_record(next(iter(fits.values()))).words
    return emit_table(arguments, table, fits_text(table, words))
