"""A study from your data: import, predict and simulate."""

from collections.abc import Mapping

from bayesrep.commands.schemas.shapes import (
    LEFT_OUT_FIELD,
    OUT_FILE,
    Schema,
    by_name,
    count,
    flag,
    fraction,
    list_of,
    nullable,
    rows,
    seconds,
    text,
    thing,
)

_WRITTEN = {
    "out": OUT_FILE,
    "fingerprint": nullable(text("of the study; null where it still lacks counts or predictions")),
}
_STAGES = {
    "classifiers": count("that answered together; in all"),
    "images": count("that went by; in all passes"),
    **{name: seconds() for name in ("load", "read", "decode", "preprocess", "compute", "compile")},
    "wait": seconds("that cores or GPUs waited"),
    "total": seconds(),
    "ideal": seconds("had the busiest never waited"),
}
_CLASSIFIER_FIELDS = {
    "classifier": text(),
    "full_name": nullable(text("timm's, with its tag")),
    "images": nullable(count("answered")),
    "top1": nullable(fraction()),
    "top5": nullable(fraction("null of fewer than five classes")),
    "seconds": nullable(seconds("of the network itself, summed over threads")),
    "failures": nullable(count("images without an answer")),
    "judged_again": nullable(count("of an earlier run's images, labelled otherwise now")),
    "evaluated_again": nullable(count("whose files hold something else now")),
    "dropped": nullable(count("that are no longer there")),
    "status": text("done, already done, judged again, or why there is nothing"),
}
_PREDICTED = {
    "failures": rows(
        {
            "image": text(),
            "reason": text(),
            "left_out": flag("whether the study is left without it"),
        }
    ),
    "listed": list_of(text(), "classifiers that the study has now on every data set"),
    "among": nullable(text("which classes answers are among; null of all")),
    "outside": count("images passed over that show none of these"),
    "passes": list_of(thing(_STAGES), "where the time of each pass over the images went"),
    "stages": thing(_STAGES, "of all passes"),
}
_CATALOG = {
    "classifier": text("in the paper"),
    "timm": nullable(text("its name in timm")),
    "note": text(),
}

FORMS: Mapping[str, Mapping[str, Mapping[str, Schema]]] = {
    "import": {
        "": {
            **_WRITTEN,
            "notes": list_of(text(), "what was left out, counted or taken to be so"),
        },
        "of `evals`, without `--out`": {
            "datasets": rows(
                {
                    "dataset": text(),
                    "items": count("that any model has"),
                    "attempts": count("the most of a model at an item"),
                    **{
                        name: list_of(text())
                        for name in ("models", "metrics", "filters", "scorers")
                    },
                },
                "what the logs hold",
            ),
            "groups": {
                "type": "object",
                "description": "the tasks of groups that are known",
                "additionalProperties": list_of(text()),
            },
        },
        "of `sql`": {"statement": text("to be asked of the database")},
    },
    "predict": {
        "": {
            "rows": rows(_CLASSIFIER_FIELDS, "a row a classifier"),
            **_PREDICTED,
            **LEFT_OUT_FIELD,
        },
        "with `--suite`": {
            "rows": rows(
                {"dataset": text(), **_CLASSIFIER_FIELDS}, "a row a classifier and data set"
            ),
            "sets": by_name(thing(_PREDICTED), "what was done, by data set"),
            **LEFT_OUT_FIELD,
        },
        "with `--list`": {"catalogs": {"type": "object", "additionalProperties": rows(_CATALOG)}},
    },
    "simulate": {"": _WRITTEN},
}
