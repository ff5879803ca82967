"""`bayesrep diagnose`: say whether to trust a fit, and what to change."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import bayesrep
from bayesrep.commands import shapes
from bayesrep.commands.options import add_shared, read_draws
from bayesrep.commands.output import emit, finding
from bayesrep.studies.vocabulary import words_of

EXAMPLE = "posterior.nc --study my-study"


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "posterior")
    parser.add_argument(
        "--study", type=Path, metavar="STUDY", help="check the agreement of classifiers too"
    )


def run(arguments: Namespace) -> int:
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


FORMS: shapes.Forms = {
    "": {
        "trust": shapes.TRUST_FIELD,
        "assumption": shapes.text("what every answer rests on and no check can see"),
        "sentences": shapes.list_of(shapes.text(), "what is not as it should be, the worst first"),
        "checks": shapes.CHECK_ROWS,
        "predictions": shapes.nullable(
            shapes.rows(
                {
                    "kind": shapes.word("counts", "answers"),
                    "name": shapes.text("data set or classifier"),
                    "discrepancy": shapes.nullable(shapes.number("posterior mean of X²")),
                    "bins": shapes.nullable(shapes.count()),
                    "p": shapes.nullable(
                        shapes.probability("nearly uniform where the model holds")
                    ),
                    "p_adjusted": shapes.nullable(shapes.probability("for all rows of the kind")),
                    "worst_cell": shapes.nullable(shapes.text()),
                    "observed": shapes.nullable(
                        shapes.number("images there, or the share of right answers")
                    ),
                    "expected": shapes.nullable(shapes.number("likewise")),
                    "effect": shapes.nullable(
                        shapes.fraction("of the misfit, weighed as an accuracy")
                    ),
                    "unfilled": shapes.nullable(
                        shapes.fraction("images expected at counts that none has")
                    ),
                },
                "replicated data; null where the posterior holds none",
            )
        ),
        "sensitivity": shapes.nullable(
            shapes.rows(
                {
                    "quantity": shapes.text("(mean gap), then classifiers"),
                    "prior": shapes.nullable(shapes.number("index of sensitivity to it")),
                    "likelihood": shapes.nullable(shapes.number("likewise")),
                    "noise": shapes.nullable(shapes.number("of prior")),
                    "shift": shapes.nullable(
                        shapes.number("of the mean for twice the prior's power, in posterior sd")
                    ),
                    "shift_se": shapes.nullable(shapes.number()),
                    "sd": shapes.nullable(shapes.fraction("of the posterior")),
                    "reading": shapes.text(),
                },
                "what the prior moves; null where the posterior does not hold it",
            )
        ),
        "dependence": shapes.DEPENDENCE_FIELD,
        **shapes.LEFT_OUT_FIELD,
    }
}
