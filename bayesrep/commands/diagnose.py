"""`bayesrep diagnose`: say whether to trust a fit, and what to change."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import bayesrep
from bayesrep.commands.options import add_shared, read_draws, read_study, speak_of
from bayesrep.commands.output import emit, finding


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "posterior")
    parser.add_argument(
        "--study", type=Path, metavar="STUDY", help="check the agreement of classifiers too"
    )


def run(arguments: Namespace) -> int:
    study = read_study(arguments.study) if arguments.study else None
    posterior = read_draws(arguments.posterior)
    if study is None:
        speak_of(posterior)
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
    from bayesrep.report.fits_text import diagnosis_text

    text = diagnosis_text(diagnosis, str(arguments.study or "STUDY"), str(arguments.posterior))
    emit(arguments, text, facts, study.left_out if study else None)
    if diagnosis.trust == "no":
        return finding(f"{arguments.posterior}: do not trust this fit")
    return 0
