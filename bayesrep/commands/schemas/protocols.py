"""Other protocols: match, multilabel, compare and passk."""

from collections.abc import Mapping

from bayesrep.commands.schemas.shapes import (
    LEFT_OUT_FIELD,
    Schema,
    count,
    ends,
    flag,
    fraction,
    nullable,
    number,
    probability,
    rows,
    text,
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

FORMS: Mapping[str, Mapping[str, Mapping[str, Schema]]] = {
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
