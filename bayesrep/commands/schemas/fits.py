"""What a fit says: diagnose, summarize, ranks, pairs, images, loo, remeasure, figures, report."""

from collections.abc import Mapping

from bayesrep.commands.schemas.drop import ACCURACIES, GAPS
from bayesrep.commands.schemas.shapes import (
    LEFT_OUT,
    OUT,
    TRUST,
    Schema,
    by_name,
    count,
    ends,
    file,
    fraction,
    many,
    maybe,
    nats,
    number,
    only,
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
_DEPENDENCE = maybe(
    rows(
        {
            "dependence": number("correlation of the answers about an image"),
            "shift": maybe(fraction("of the mean gap under it")),
            "widening": maybe(number("factor of its interval")),
            "support": maybe(nats("below −10 the counts speak against it")),
        },
        "what the mean gap would be if answers depended on each other; null of another model",
    )
)
_PREDICTIONS = rows(
    {
        "kind": word("counts", "answers"),
        "name": text("data set or classifier"),
        "discrepancy": maybe(number("posterior mean of X²")),
        "bins": maybe(count()),
        "p": maybe(probability("nearly uniform where the model holds")),
        "p_adjusted": maybe(probability("for all rows of the kind")),
        "worst_cell": maybe(text()),
        "observed": maybe(number("images there, or the share of right answers")),
        "expected": maybe(number("likewise")),
        "effect": maybe(fraction("of the misfit, weighed as an accuracy")),
        "unfilled": maybe(fraction("images expected at counts that none has")),
    },
    "replicated data; null where the posterior holds none",
)
_SENSITIVITY = rows(
    {
        "quantity": text("(mean gap), then classifiers"),
        "prior": maybe(number("index of sensitivity to it")),
        "likelihood": maybe(number("likewise")),
        "noise": maybe(number("of prior")),
        "shift": maybe(number("of the mean for twice the prior's power, in posterior sd")),
        "shift_se": maybe(number()),
        "sd": maybe(fraction("of the posterior")),
        "reading": text(),
    },
    "what the prior moves; null where the posterior does not hold it",
)
_ESTIMATE = thing(
    {
        "value": maybe(fraction()),
        **ends(each=maybe(fraction())),
    }
)
_COLUMN = many(maybe(number()))
_FIGURE = {
    "name": maybe(text("by which `figure` draws it")),
    "number": text("in the paper"),
    "shows": text(),
    "why_not": maybe(text("why it is not drawn")),
}

FORMS: Mapping[str, Mapping[str, Mapping[str, Schema]]] = {
    "diagnose": {
        "": {
            "trust": TRUST,
            "assumption": text("what every answer rests on and no check can see"),
            "sentences": many(text(), "what is not as it should be, the worst first"),
            "checks": _CHECKS,
            "predictions": maybe(_PREDICTIONS),
            "sensitivity": maybe(_SENSITIVITY),
            "dependence": _DEPENDENCE,
            **LEFT_OUT,
        }
    },
    "summarize": {
        "": {
            "rows": rows(
                {
                    **ACCURACIES,
                    "rhat": maybe(number()),
                    "ess_bulk": maybe(number()),
                    "ess_tail": maybe(number()),
                },
                "a row a classifier",
            ),
            "gaps": GAPS,
            "dependence": _DEPENDENCE,
            **LEFT_OUT,
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
            **LEFT_OUT,
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
            **LEFT_OUT,
        }
    },
    "images": {
        "": {
            "rows": rows(
                {
                    "dataset": text(),
                    "image": text(),
                    "label": only("where there are labels", maybe(text())),
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
                        f"difficulty_{factor}{end}": only("of a model with more factors", number())
                        for factor in (2, 3)
                        for end in ("", "_sd")
                    },
                }
            ),
            **LEFT_OUT,
        }
    },
    "loo": {
        "": {
            "rows": rows(
                {
                    "model": file("the posterior"),
                    "elpd": nats("larger is better"),
                    "p_loo": number("effective number of parameters"),
                    "difference": nats("to the best"),
                    "se": nats("standard error of that"),
                    "se_shared": nats("the same where errors go together"),
                    "counts_difference": nats(),
                    "counts_se": nats(),
                    "answers_difference": nats(),
                    "answers_se": nats(),
                    "pareto_k_high": count("units whose share of elpd is not reliable"),
                    "waic": nats("the same as elpd by another formula"),
                },
                "the best first",
            )
        }
    },
    "remeasure": {
        "": {
            "rows": rows(
                {
                    "dataset": text(),
                    "role": maybe(text("null without a posterior")),
                    "selection": maybe(text("the rule by which images were kept")),
                    "images": count(),
                    "measured": fraction("mean of selected / shown"),
                    "frequency": fraction("mean true selection frequency, posterior median"),
                    **{f"frequency_{end}": fraction() for end in ("lower", "upper")},
                    "regression": fraction("frequency less measured"),
                    **{f"regression_{end}": fraction() for end in ("lower", "upper")},
                    "dropped": maybe(fraction("images that would not pass the rule again")),
                    **{f"dropped_{end}": maybe(fraction()) for end in ("lower", "upper")},
                }
            ),
            **LEFT_OUT,
        }
    },
    "figure": {
        "": {"figure": text("its name"), "out": OUT, **LEFT_OUT},
        "with `--list`": {
            "figures": rows(
                {
                    **_FIGURE,
                    "number": maybe(_FIGURE["number"]),
                    "paper": maybe(text("null of our own")),
                    "needs": many(text(), "of a study and of options"),
                    "lacks": only("with a study", maybe(many(text(), "what is not there of that"))),
                }
            )
        },
    },
    "paper": {
        "": {
            "figures": rows({**_FIGURE, "file": maybe(text("in the folder")), "command": text()}),
            "out": OUT,
        }
    },
    "report": {
        "": {
            "out": OUT,
            "failed": many(text(), "conditions of `--fail-if` that hold"),
            "study": thing(
                {"name": text(), "classifiers": count(), "images": by_name(count(), "by role")}
            ),
            "headline": maybe(text("title of the page")),
            "answer": maybe(text("its first sentence")),
            "method": maybe(text("whose division `drop` is")),
            "drop": maybe(
                thing(
                    {name: _ESTIMATE for name in ("measured", "remaining", "selection", "share")},
                    "the mean over classifiers and its parts",
                )
            ),
            "methods": rows(
                {
                    "method": text(),
                    "gap": maybe(fraction("bias-corrected")),
                    **ends(each=maybe(fraction())),
                    "share": maybe(fraction("of the drop that selection explains")),
                }
            ),
            "truth": maybe(fraction("mean true gap, of a simulation")),
            "classifiers": maybe(
                {
                    "type": "object",
                    "description": "by columns: classifier, reference, replication, of every "
                    "method METHOD, METHOD_lower and METHOD_upper (fractions); truth, rhat, ess "
                    "where there are any",
                    "properties": {"classifier": many(text())},
                    "required": ["classifier"],
                    "additionalProperties": _COLUMN,
                }
            ),
            "trust": maybe(
                thing(
                    {
                        "verdict": TRUST,
                        "assumption": text("what every answer rests on and no check can see"),
                        "sentences": many(text(), "what is not as it should be"),
                        "checks": _CHECKS,
                    }
                )
            ),
            "ranks": maybe(
                thing(
                    {
                        "classifier": many(text()),
                        **{name: _COLUMN for name in ("rank", "lower", "upper", "measured")},
                    },
                    "by columns",
                )
            ),
            "missing": by_name(text(), "what is not shown, and why"),
            **LEFT_OUT,
        }
    },
}
