"""A study from your data: import, predict, simulate and count."""

from collections.abc import Mapping

from bayesrep.commands.schemas.answers import COUNTED
from bayesrep.commands.schemas.shapes import (
    LEFT_OUT,
    OUT,
    Schema,
    count,
    flag,
    fraction,
    many,
    maybe,
    only,
    rows,
    seconds,
    text,
    thing,
)

_WRITTEN = {
    "out": OUT,
    "fingerprint": maybe(text("of the study; null where it still lacks counts or predictions")),
}
_STAGES = {
    "classifiers": count("that answered together; in all"),
    "images": count("that went by; in all passes"),
    **{name: seconds() for name in ("load", "read", "decode", "preprocess", "compute", "compile")},
    "wait": seconds("that cores or GPUs waited"),
    "total": seconds(),
    "ideal": seconds("had the busiest never waited"),
}
_PREDICTED = {
    "classifier": text(),
    "full_name": maybe(text("timm's, with its tag")),
    "images": maybe(count("answered")),
    "top1": maybe(fraction()),
    "top5": maybe(fraction("null of fewer than five classes")),
    "seconds": maybe(seconds("of the network itself, summed over threads")),
    "failures": maybe(count("images without an answer")),
    "judged_again": maybe(count("of an earlier run's images, labelled otherwise now")),
    "evaluated_again": maybe(count("whose files hold something else now")),
    "dropped": maybe(count("that are no longer there")),
    "status": text("done, already done, judged again, or why there is nothing"),
}
_CATALOG = {
    "classifier": text("in the paper"),
    "timm": maybe(text("its name in timm")),
    "note": text(),
}

FORMS: Mapping[str, Mapping[str, Mapping[str, Schema]]] = {
    "import": {
        "": {**_WRITTEN, "notes": only("of evals", many(text(), "what was taken to be so"))},
        "of `evals`, without `--out`": {
            "datasets": rows(
                {
                    "dataset": text(),
                    "items": count("that any model has"),
                    "attempts": count("the most of a model at an item"),
                    **{name: many(text()) for name in ("models", "metrics", "filters", "scorers")},
                },
                "what the logs hold",
            ),
            "groups": {
                "type": "object",
                "description": "the tasks of groups that are known",
                "additionalProperties": many(text()),
            },
        },
        "of `sql`": {"statement": text("to be asked of the database")},
    },
    "predict": {
        "": {
            "rows": rows(_PREDICTED, "a row a classifier"),
            "failures": rows(
                {
                    "image": text(),
                    "reason": text(),
                    "left_out": flag("whether the study is left without it"),
                }
            ),
            "listed": many(text(), "classifiers that the study has now on every data set"),
            "passes": many(thing(_STAGES), "where the time of each pass over the images went"),
            "stages": thing(_STAGES, "of all passes"),
            **LEFT_OUT,
        },
        "with `--list`": {"catalogs": {"type": "object", "additionalProperties": rows(_CATALOG)}},
    },
    "simulate": {"": _WRITTEN},
    "count": {
        "": {
            "rows": rows(COUNTED),
            "out": OUT,
        }
    },
}
