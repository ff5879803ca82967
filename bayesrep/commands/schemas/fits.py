"""What a fit says: diagnose, summarize, ranks, pairs, images, figure and report."""

from collections.abc import Mapping

from bayesrep.commands.schemas.drop import ACCURACIES, GAPS
from bayesrep.commands.schemas.shapes import (
    LEFT_OUT_FIELD,
    OUT_FILE,
    TRUST,
    Schema,
    by_name,
    conditional_name,
    count,
    ends,
    fraction,
    list_of,
    nats,
    nullable,
    number,
    probability,
    rows,
    text,
    thing,
    word,
)

_CHECKS = rows(
    {
        "check": text(),
        "value": text("what was found"),
        "wanted": text("what would be fine"),
        "trust": TRUST,
    }
)
_DEPENDENCE = nullable(
    rows(
        {
            "dependence": number("correlation of the answers about an image"),
            "shift": nullable(fraction("of the mean gap under it")),
            "widening": nullable(number("factor of its interval")),
            "support": nullable(nats("below −10 the counts speak against it")),
        },
        "what the mean gap would be if answers depended on each other; null of another model",
    )
)
_PREDICTIONS = rows(
    {
        "kind": word("counts", "answers"),
        "name": text("data set or classifier"),
        "discrepancy": nullable(number("posterior mean of X²")),
        "bins": nullable(count()),
        "p": nullable(probability("nearly uniform where the model holds")),
        "p_adjusted": nullable(probability("for all rows of the kind")),
        "worst_cell": nullable(text()),
        "observed": nullable(number("images there, or the share of right answers")),
        "expected": nullable(number("likewise")),
        "effect": nullable(fraction("of the misfit, weighed as an accuracy")),
        "unfilled": nullable(fraction("images expected at counts that none has")),
    },
    "replicated data; null where the posterior holds none",
)
_SENSITIVITY = rows(
    {
        "quantity": text("(mean gap), then classifiers"),
        "prior": nullable(number("index of sensitivity to it")),
        "likelihood": nullable(number("likewise")),
        "noise": nullable(number("of prior")),
        "shift": nullable(number("of the mean for twice the prior's power, in posterior sd")),
        "shift_se": nullable(number()),
        "sd": nullable(fraction("of the posterior")),
        "reading": text(),
    },
    "what the prior moves; null where the posterior does not hold it",
)
_ESTIMATE = thing(
    {
        "value": nullable(fraction()),
        **ends(each=nullable(fraction())),
    }
)
_COLUMN = list_of(nullable(number()))
FIGURE = {
    "name": nullable(text("by which `figure` draws it")),
    "number": text("in the paper"),
    "shows": text(),
    "why_not": nullable(text("why it is not drawn")),
}

FORMS: Mapping[str, Mapping[str, Mapping[str, Schema]]] = {
    "diagnose": {
        "": {
            "trust": TRUST,
            "assumption": text("what every answer rests on and no check can see"),
            "sentences": list_of(text(), "what is not as it should be, the worst first"),
            "checks": _CHECKS,
            "predictions": nullable(_PREDICTIONS),
            "sensitivity": nullable(_SENSITIVITY),
            "dependence": _DEPENDENCE,
            **LEFT_OUT_FIELD,
        }
    },
    "summarize": {
        "": {
            "rows": rows(
                {
                    **ACCURACIES,
                    "rhat": nullable(number()),
                    "ess_bulk": nullable(number()),
                    "ess_tail": nullable(number()),
                },
                "a row a classifier",
            ),
            "gaps": GAPS,
            "dependence": _DEPENDENCE,
            **LEFT_OUT_FIELD,
        }
    },
    "ranks": {
        "": {
            "rows": rows(
                {
                    "classifier": text(),
                    "adjusted_accuracy": fraction("posterior mean"),
                    "reference_rank": number("as measured"),
                    "replication_rank": number("as measured"),
                    "rank": number("posterior mean; 1 is the best"),
                    **ends(each=number()),
                    "best": probability("to be the first"),
                },
                "the best first",
            ),
            **LEFT_OUT_FIELD,
        }
    },
    "pairs": {
        "": {
            "rows": rows(
                {
                    "classifier": text(),
                    "other": text(),
                    "raw_difference": fraction("of replication accuracies"),
                    "difference": fraction("of adjusted accuracies, classifier less other"),
                    **ends(),
                    "probability": probability("that the classifier is better than the other"),
                }
            ),
            **LEFT_OUT_FIELD,
        }
    },
    "images": {
        "": {
            "rows": rows(
                {
                    "dataset": text(),
                    "image": text(),
                    "label": conditional_name("where there are labels", nullable(text())),
                    "selected": count(),
                    "shown": count(),
                    "right": fraction("classifiers that are"),
                    "selection_frequency": fraction("posterior mean"),
                    "selection_frequency_sd": fraction("posterior standard deviation"),
                    **{
                        name: number("0 for the average image, 1 a standard deviation harder")
                        for name in ("difficulty", "difficulty_sd")
                    },
                    **{
                        f"difficulty_{factor}{end}": conditional_name(
                            "of a model with more factors", number()
                        )
                        for factor in (2, 3)
                        for end in ("", "_sd")
                    },
                }
            ),
            **LEFT_OUT_FIELD,
        }
    },
    "figure": {
        "": {"figure": text("its name"), "out": OUT_FILE, **LEFT_OUT_FIELD},
        "with `--list`": {
            "figures": rows(
                {
                    **FIGURE,
                    "number": nullable(FIGURE["number"]),
                    "paper": nullable(text("null of our own")),
                    "needs": list_of(text(), "of a study and of options"),
                    "lacks": conditional_name(
                        "with a study", nullable(list_of(text(), "what is not there of that"))
                    ),
                }
            )
        },
    },
    "report": {
        "": {
            "out": OUT_FILE,
            "failed": list_of(text(), "conditions of `--fail-if` that hold"),
            "study": thing(
                {"name": text(), "classifiers": count(), "images": by_name(count(), "by role")}
            ),
            "headline": nullable(text("title of the page")),
            "answer": nullable(text("its first sentence")),
            "method": nullable(text("whose division `drop` is")),
            "drop": nullable(
                thing(
                    {name: _ESTIMATE for name in ("measured", "remaining", "selection", "share")},
                    "the mean over classifiers and its parts",
                )
            ),
            "methods": rows(
                {
                    "method": text(),
                    "gap": nullable(fraction("bias-corrected")),
                    **ends(each=nullable(fraction())),
                    "share": nullable(fraction("of the drop that selection explains")),
                }
            ),
            "truth": nullable(fraction("mean true gap, of a simulation")),
            "classifiers": nullable(
                {
                    "type": "object",
                    "description": "by columns: classifier, reference, replication, of every "
                    "method METHOD, METHOD_lower and METHOD_upper (fractions); truth, rhat, ess "
                    "where there are any",
                    "properties": {"classifier": list_of(text())},
                    "required": ["classifier"],
                    "additionalProperties": _COLUMN,
                }
            ),
            "trust": nullable(
                thing(
                    {
                        "verdict": TRUST,
                        "assumption": text("what every answer rests on and no check can see"),
                        "sentences": list_of(text(), "what is not as it should be"),
                        "checks": _CHECKS,
                    }
                )
            ),
            "ranks": nullable(
                thing(
                    {
                        "classifier": list_of(text()),
                        **{name: _COLUMN for name in ("rank", "lower", "upper", "measured")},
                    },
                    "by columns",
                )
            ),
            "missing": by_name(text(), "what is not shown, and why"),
            **LEFT_OUT_FIELD,
        }
    },
}
