"""Who answered: answers, clean, crowd and dependence."""

from collections.abc import Mapping

from bayesrep.commands.schemas.shapes import (
    LEFT_OUT,
    OUT,
    Schema,
    by_name,
    count,
    ends,
    fraction,
    maybe,
    number,
    rows,
    text,
)

DROPPED = rows(
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
        "after": maybe(fraction("likewise")),
        "images": count("before"),
        "images_lost": count("all of whose answers went"),
    }
)

COUNTED = {
    "dataset": text(),
    "images": count(),
    "answers": count(),
    "workers": count(),
    "selection_frequency": fraction("mean over images"),
    "error_images": maybe(fraction("standard error of that, over images")),
    "error_workers": maybe(fraction("and over workers")),
}

FORMS: Mapping[str, Mapping[str, Mapping[str, Schema]]] = {
    "answers": {
        "": {
            "rows": rows(
                {
                    "dataset": text(),
                    "images": count(),
                    "questions": count("images and labels"),
                    "workers": count(),
                    "answers": count(),
                    "yes": maybe(fraction("of the answers")),
                    "repeated": count("answers of a worker to the same question again"),
                }
            ),
            "not_counted": by_name(count(), "answers, by reason"),
            "out": OUT,
        }
    },
    "clean": {"": {"rows": DROPPED, "effect": EFFECT, "out": OUT}},
    "crowd": {
        "": {
            "rows": rows(
                {
                    **COUNTED,
                    "answers_a_worker": number("median"),
                    "correlation": maybe(number("of two answers of a worker")),
                    "annotators": number("an image, mean"),
                    "effective_answers": maybe(number()),
                    "effective_annotators": maybe(number()),
                    "drift": maybe(number("null where the order of answers is not known")),
                    "drift_error": maybe(number()),
                }
            ),
            "in_common": maybe(count("workers of both data sets")),
            "difference_images": maybe(
                fraction("standard error of the difference of frequencies, over images")
            ),
            "difference_workers": maybe(fraction("and over workers")),
            "sentence": text("the same in words"),
            "aggregators": maybe(
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
            **LEFT_OUT,
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
}
