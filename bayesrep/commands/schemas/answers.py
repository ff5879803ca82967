"""What annotators answered: the group answers."""

from collections.abc import Mapping

from bayesrep.commands.schemas.shapes import (
    LEFT_OUT_FIELD,
    OUT_FILE,
    Schema,
    by_name,
    count,
    ends,
    fraction,
    nullable,
    number,
    rows,
    text,
)

DROPPED_ROWS = rows(
    {
        "rule": text(),
        "workers": count("all of whose answers went"),
        "assignments": count("of which all went"),
        "answers": count(),
    },
    "what each rule left out",
)
EFFECT = rows(
    {
        "dataset": text(),
        "before": fraction("mean selection frequency over images"),
        "after": nullable(fraction("likewise")),
        "images": count("before"),
        "images_lost": count("all of whose answers went"),
    }
)

COUNT_FIELDS = {
    "dataset": text(),
    "images": count(),
    "answers": count(),
    "workers": count(),
    "selection_frequency": fraction("mean over images"),
    "error_images": nullable(fraction("standard error of that, over images")),
    "error_workers": nullable(fraction("and over workers")),
}

FORMS: Mapping[str, Mapping[str, Mapping[str, Schema]]] = {
    "import": {
        "": {
            "rows": rows(
                {
                    "dataset": text(),
                    "images": count(),
                    "questions": count("images and labels"),
                    "workers": count(),
                    "answers": count(),
                    "yes": nullable(fraction("of the answers")),
                    "repeated": count("answers of a worker to the same question again"),
                }
            ),
            "not_counted": by_name(count(), "answers, by reason"),
            "out": OUT_FILE,
        }
    },
    "clean": {"": {"rows": DROPPED_ROWS, "effect": EFFECT, "out": OUT_FILE}},
    "count": {
        "": {
            "rows": rows(COUNT_FIELDS),
            "out": OUT_FILE,
        }
    },
    "crowd": {
        "": {
            "rows": rows(
                {
                    **COUNT_FIELDS,
                    "answers_a_worker": number("median"),
                    "correlation": nullable(number("of two answers of a worker")),
                    "annotators": number("an image, mean"),
                    "effective_answers": nullable(number()),
                    "effective_annotators": nullable(number()),
                    "drift": nullable(number("null where the order of answers is not known")),
                    "drift_error": nullable(number()),
                }
            ),
            "in_common": nullable(count("workers of both data sets")),
            "difference_images": nullable(
                fraction("standard error of the difference of frequencies, over images")
            ),
            "difference_workers": nullable(fraction("and over workers")),
            "sentence": text("the same in words"),
            "aggregators": nullable(
                rows(
                    {
                        "dataset": text(),
                        "method": text(),
                        "images": count(),
                        "mean": fraction("of the probabilities of a yes"),
                        "yes": fraction("images where it is above 1/2"),
                        "certain": fraction("images where it is below 0.05 or above 0.95"),
                        "agreement": fraction("images on the same side of 1/2 as the counts"),
                    },
                    "null without `--aggregators`",
                )
            ),
            **LEFT_OUT_FIELD,
        }
    },
    "dependence": {
        "": {
            "rows": rows(
                {
                    "dataset": text("empty where the table names none"),
                    "correlation": number("below 0 by chance where answers are independent"),
                    **ends(each=number()),
                    "images": count("with two contexts"),
                    "answers": count("about these"),
                }
            )
        }
    },
    "remeasure": {
        "": {
            "rows": rows(
                {
                    "dataset": text(),
                    "role": nullable(text("null without a posterior")),
                    "selection": nullable(text("the rule by which images were kept")),
                    "images": count(),
                    "measured": fraction("mean of selected / shown"),
                    "frequency": fraction("mean true selection frequency, posterior median"),
                    **{f"frequency_{end}": fraction() for end in ("lower", "upper")},
                    "regression": fraction("frequency less measured"),
                    **{f"regression_{end}": fraction() for end in ("lower", "upper")},
                    "dropped": nullable(fraction("images that would not pass the rule again")),
                    **{f"dropped_{end}": nullable(fraction()) for end in ("lower", "upper")},
                }
            ),
            **LEFT_OUT_FIELD,
        }
    },
}
