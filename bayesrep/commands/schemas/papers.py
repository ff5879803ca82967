"""What papers measure: the group papers."""

from collections.abc import Mapping

from bayesrep.commands.schemas.collect import GAP_LEFT
from bayesrep.commands.schemas.drop import MATCHING
from bayesrep.commands.schemas.fits import FIGURE
from bayesrep.commands.schemas.shapes import (
    LEFT_OUT_FIELD,
    OUT_FILE,
    Schema,
    conditional_name,
    count,
    ends,
    file,
    flag,
    fraction,
    nullable,
    number,
    probability,
    rows,
    text,
    thing,
    word,
)

_ENDS = ends(each=nullable(fraction()))
_ROLE = text("its role")


def _table(names: Mapping[str, Schema]) -> Mapping[str, Schema]:
    return {"rows": rows(names), **LEFT_OUT_FIELD}


_PARTICIPANT_FIELDS: Mapping[str, Schema] = {
    "participant": text("a classifier or a person"),
    "kind": text("classifier or human; (published) of `--published`"),
    "metric": text("top-1 or, by label sets, multi-label"),
    **{
        name: schema
        for role in ("reference", "replication")
        for name, schema in (
            (f"{role}_images", nullable(count("answered; null of published rows"))),
            (f"{role}_accuracy", nullable(fraction())),
            (f"{role}_lower", nullable(fraction())),
            (f"{role}_upper", nullable(fraction())),
        )
    },
    "gap": nullable(fraction("reference less replication")),
    "gap_lower": nullable(fraction()),
    "gap_upper": nullable(fraction()),
}
_LINES: Mapping[str, Schema] = {
    "scale": word("linear", "probit", "logit"),
    "quantity": text("slope, intercept, mean_gap"),
    "estimate": nullable(number()),
    **ends(each=nullable(number())),
    "classifiers_lower": nullable(number("the interval for other classifiers")),
    "classifiers_upper": nullable(number()),
}
_ROBUSTNESS_KEYS: Mapping[str, Schema] = {
    "dataset": text(),
    "adjusted": flag("accuracies on it are those that a fit adjusts"),
}
_BASELINES: Mapping[str, Schema] = {**_ROBUSTNESS_KEYS, **_LINES}
_CONFUSION: Mapping[str, Schema] = {
    "participant": text(),
    "label": text(),
    "answer": text(),
    "images": count("of that label, answered"),
    "count": count("with that answer"),
    "rate": fraction(),
    **ends(),
}
_STATISTIC: Mapping[str, Schema] = {
    "statistic": text(),
    "figure": text("of Tsipras et al."),
    "of": count("images that count"),
    "images": count("of which it is so"),
    "share": nullable(fraction()),
    **_ENDS,
}

_LINEARITY = thing(
    {
        "annotators": count("the most that 99 % of the images have"),
        "half": count("half of these, rounded up"),
        "r_squared": nullable(number("of the line through the naive estimates")),
        "jackknife": nullable(fraction("mean estimate from all annotators")),
        "jackknife_from_half": nullable(fraction("and from half of them")),
        "left": nullable(fraction("of the bias after the jackknife")),
    },
    "whether the naive estimates are a line; null for too few annotators",
)

FORMS: Mapping[str, Mapping[str, Mapping[str, Schema]]] = {
    "report": {
        "": {
            "figures": rows({**FIGURE, "file": nullable(text("in the folder")), "command": text()}),
            "out": OUT_FILE,
        }
    },
    "match": {
        "with `--table accuracies`, or without": _table(
            {
                "criterion": text(),
                "classifier": text(),
                "quantity": text("such as matched_gap"),
                "estimate": nullable(fraction("mean over runs")),
                "run_sd": nullable(fraction("standard deviation over runs")),
                **_ENDS,
            }
        ),
        "with `--table curves`": _table(
            {
                "criterion": text(),
                "classifier": text(),
                "dataset": _ROLE,
                "subset": word("all", "matched", "unmatched"),
                "low": fraction("of a range of confidence"),
                "high": fraction("likewise"),
                "images": number("mean over runs"),
                "density": number("share of the images over the width of the range"),
                "confidence": fraction("mean"),
                "accuracy": fraction(),
                **_ENDS,
            }
        ),
        "with `--table confidence`": _table(
            {
                "classifier": text(),
                "dataset": _ROLE,
                "accuracy": fraction(),
                **_ENDS,
                "confidence": fraction("mean over images"),
                "confidence_lower": nullable(fraction()),
                "confidence_upper": nullable(fraction()),
            }
        ),
    },
    "multilabel": {
        "with `--table accuracies`, or without": _table(
            {
                "classifier": text(),
                "subset": text(),
                "metric": text(),
                "images": count(),
                "right": count(),
                "accuracy": nullable(fraction()),
                **_ENDS,
                "change": nullable(fraction("from all images")),
                "p_value": nullable(probability("of a change as large, by random classes")),
            }
        ),
        "with `--table co-occurrence`": _table(
            {name: each for name, each in _CONFUSION.items() if name != "participant"}
        ),
        "with `--table people`": _table(_STATISTIC),
        "with `--table judged`": _table({"classifier": text(), **_STATISTIC}),
        "with `--table confusion`": _table(_CONFUSION),
    },
    "compare": {
        "with `--table accuracies`, or without": {
            "rows": rows(_PARTICIPANT_FIELDS),
            "lines": rows(_LINES, "through the classifiers' accuracies"),
            **LEFT_OUT_FIELD,
        },
        "with `--table pairs`": _table(
            {
                "dataset": _ROLE,
                "participant": text(),
                "other": text(),
                "images": count("that both answered"),
                **{name: count() for name in ("both", "only_first", "only_second", "neither")},
                "difference": nullable(fraction("of accuracies, posterior mean")),
                **_ENDS,
                "probability": nullable(probability("that the first is better")),
                "p_value": nullable(probability("McNemar's")),
                "p_holm": nullable(probability("adjusted for all pairs of the data set")),
            }
        ),
        "with `--table lines`": _table(_LINES),
        "with `--table subsets`": _table(
            {
                "subset": text(),
                **_PARTICIPANT_FIELDS,
                "reference_change": nullable(fraction("from all images")),
                "replication_change": nullable(fraction("likewise")),
            }
        ),
        "with `--table missed`": _table(
            {
                "dataset": text(),
                "missed_by": word("all classifiers", "all people", "everybody"),
                "image": text(),
                "label": text(),
            }
        ),
        "with `--table robustness`": {
            "rows": rows(
                {
                    **_ROBUSTNESS_KEYS,
                    "classifier": text(),
                    "baseline": flag("the line goes through it"),
                    "scale": word("logit", "probit"),
                    "reference_accuracy": fraction(),
                    "accuracy": fraction(),
                    "expected_accuracy": nullable(fraction("of the line")),
                    "robustness": nullable(fraction("accuracy less that expected")),
                    **_ENDS,
                }
            ),
            "lines": rows(_BASELINES, "through the baseline's accuracies"),
            **LEFT_OUT_FIELD,
        },
        "with `--table baseline`": _table(_BASELINES),
        "with `--table confusion`": _table(_CONFUSION),
        "with `--table confusion --between`": _table(
            {
                "label": text(),
                "answer": text(),
                "images": count(),
                "rate": fraction("of the first"),
                "other_rate": fraction(),
                "difference": fraction("posterior mean"),
                **ends(),
            }
        ),
    },
    "annotators": {
        "": {
            "rows": rows(
                {
                    "annotators": count(),
                    "classifier": text(),
                    "reference_accuracy": fraction(),
                    "naive": nullable(fraction("adjusted accuracy by so many annotators")),
                    "jackknife": nullable(fraction("likewise; null of one annotator")),
                }
            ),
            "linearity": nullable(_LINEARITY),
            "matching": MATCHING,
            "forward": conditional_name(
                "with `--forward`",
                rows(
                    {
                        "annotators": count(),
                        "gap": fraction("mean by the naive estimate"),
                        "left": fraction("by how much that is larger than without noise"),
                    }
                ),
            ),
            "half": conditional_name(
                "with `--half`",
                rows(
                    {
                        "repeat": count("0 is all images"),
                        "reference_images": count(),
                        "replication_images": count(),
                        "gap": nullable(fraction("mean over classifiers")),
                        "change": nullable(fraction("from that of all images")),
                    }
                ),
            ),
            **LEFT_OUT_FIELD,
        }
    },
    "lab": {
        "": {
            "rows": rows(
                {
                    "answers": count(),
                    "weight": nullable(fraction("of the reference's distribution")),
                    **{name: GAP_LEFT for name in ("published", "fine", "posterior")},
                    "simulated": fraction("of fine, by sampling"),
                    "error": fraction("standard error of that"),
                    "measured_reference": fraction("mean frequency by answers given afresh"),
                    "measured_replication": fraction("likewise"),
                }
            ),
            "reference_mean": fraction("selection frequency"),
            "pool_mean": fraction("selection frequency"),
            "out": nullable(file("the page; null without `--out`")),
        }
    },
    "rematch": {
        "": {
            "by_answers": rows(
                {
                    "annotators": count(),
                    "gap": fraction("mean over classifiers, to the weighted candidates"),
                    **ends(each=nullable(fraction())),
                },
                "appendix D.1",
            ),
            "held_out": rows(
                {
                    "reference_answers": count("by which the reference was known"),
                    "by": word("matched", "held out"),
                    "reference": fraction("mean selection frequency"),
                    "sampled": fraction("likewise"),
                    "difference": fraction(),
                    "error": nullable(fraction("standard error of that")),
                },
                "appendix D.2",
            ),
            "by_source": nullable(
                rows(
                    {
                        "source": text(),
                        "candidates": number("how many, mean over deals"),
                        "frequency": nullable(fraction("of the sampled images")),
                        "frequency_difference": nullable(fraction("to all candidates")),
                        "frequency_error": nullable(fraction("standard error of that")),
                        "accuracy": nullable(fraction("of them, mean over classifiers")),
                        "accuracy_difference": nullable(fraction("to all candidates")),
                        "accuracy_error": nullable(fraction("standard error of that")),
                    },
                    "appendix D.3; null where there are too few answers to hold out",
                )
            ),
            **LEFT_OUT_FIELD,
        }
    },
    "passk": {
        "": {
            "rows": rows(
                {
                    "dataset": text(),
                    "model": text(),
                    "k": count("attempts"),
                    "estimate": fraction("items that k attempts solve, posterior mean"),
                    **ends(),
                    "unbiased": nullable(fraction("null where an item has fewer attempts")),
                    "unbiased_lower": nullable(fraction()),
                    "unbiased_upper": nullable(fraction()),
                    "prior_share": nullable(fraction("of the variance that counts do not decide")),
                }
            ),
            "target": word("population", "items", said="whose pass@k it is"),
            "models": rows(
                {
                    "dataset": text(),
                    "model": text(),
                    "items": count(),
                    "fewest": count("attempts at an item"),
                    "most": count("likewise"),
                    "solved": fraction("attempts, items alike"),
                    "never": fraction("items that no number of attempts solves"),
                    "never_lower": fraction(),
                    "never_upper": fraction(),
                }
            ),
            "differences": nullable(
                rows(
                    {
                        "dataset": text(),
                        "model": text(),
                        "other": text(),
                        "k": count(),
                        "difference": fraction("of the posterior means"),
                        **ends(),
                        "probability": probability("that the model's is the larger"),
                        "unbiased": nullable(fraction()),
                        "unbiased_lower": nullable(fraction()),
                        "unbiased_upper": nullable(fraction()),
                    },
                    "of two models, or with `--between`; else null",
                )
            ),
            "answer": text("in a sentence"),
        }
    },
}
