"""Collect a new test set: the group collect."""

from collections.abc import Mapping

from bayesrep.commands.schemas.answers import DROPPED_ROWS, EFFECT
from bayesrep.commands.schemas.shapes import (
    OUT_FILE,
    Schema,
    by_name,
    conditional_name,
    count,
    ends,
    flag,
    fraction,
    list_of,
    money,
    nullable,
    number,
    probability,
    rows,
    text,
    thing,
    word,
)

_TASKS = {
    "tasks": count(),
    "assignments": count("of tasks to people"),
    "images": count(),
}
_FILES = {"files": list_of(text(), "in the folder"), "out": OUT_FILE}
_COLLECT: Mapping[str, Mapping[str, Schema]] = {
    "candidates": {
        "labels": by_name(count(), "images, by how many labels they have"),
        "written": count("rows of the table"),
        "out": OUT_FILE,
    },
    "contains": {
        **_TASKS,
        "answers": count("without those about controls"),
        "same_neighbours": count("images of labels that fill no more than a grid"),
        **_FILES,
    },
    "pilot": {"people": count(), "assignments": count("done"), "out": OUT_FILE},
    "read": {
        "rows": rows(
            {
                "worker": text(),
                "assignments": count(),
                "hours": nullable(number(unit="hours")),
                "pay": nullable(money()),
                "per_hour": nullable(money()),
                "selected": nullable(fraction("of the places")),
                "controls": nullable(fraction("positive controls that are selected")),
            }
        ),
        "not_counted": by_name(count(), "assignments, by reason"),
        "out": OUT_FILE,
        "dropped": conditional_name("with `--rules`", DROPPED_ROWS),
        "effect": conditional_name("with `--rules`", EFFECT),
    },
    "labels": {
        "rows": rows(
            {"step": count(), "labels": count("that came in by it; of the last, that went")}
        ),
        "by_wordnet": flag("whether step 3 could be done"),
        "images": by_name(count(), "by what becomes of them"),
        "out": OUT_FILE,
    },
    "classify": {**_TASKS, **_FILES},
    "objects": {
        "not_counted": by_name(count(), "assignments, by reason"),
        "images": conditional_name(
            "with `--fates`",
            by_name(count(), "by what became of them; `classified` and `clear_taken`, the table's"),
        ),
        "written": count("rows of the table"),
        "out": OUT_FILE,
    },
    "review": {
        "rows": rows(
            {
                "dataset": text(),
                "images": count(),
                "predictions": count("distinct"),
                "judged": count(),
                "right": count(),
                "share": nullable(fraction("right of the judged")),
                "several": nullable(fraction("images with more than one right label")),
                "labels": nullable(number("right ones of an image that has several")),
            }
        ),
        "tasks": count("predictions to be judged"),
        "out": OUT_FILE,
    },
}
GAP_LEFT = fraction("reference's mean selection frequency less that of the images chosen")
_DESIGN = {
    "images": count("of each data set"),
    "answers": count("about an image"),
    "workers": nullable(count("in all; null where every answer is another's")),
    "crowds": count("1: the same people answer about both data sets"),
}
_OPTIONS = rows(
    {
        **_DESIGN,
        "total": count("answers"),
        "cost": money(),
        "width": fraction("expected, of the mean gap's 95 % interval"),
    }
)
_EXPECTED_OUTCOME = thing(
    {
        "mean_width": nullable(fraction("of the mean gap's 95 % interval")),
        "mean_held": nullable(probability("that it holds the truth")),
        "alone_width": nullable(fraction("without what workers add")),
        "single_width": nullable(fraction("of a single classifier's")),
        "single_held": nullable(probability()),
        "pair_width": nullable(fraction("of the difference of two next to each other")),
        "error": nullable(fraction("of the mean's estimate")),
        "converged": nullable(probability("that the fit is certified")),
    },
    "over simulated studies",
)

FORMS: Mapping[str, Mapping[str, Mapping[str, Schema]]] = {
    **{step: {"": names} for step, names in _COLLECT.items()},
    "match": {
        "": {
            "rows": rows(
                {
                    "method": word("published", "fine", "posterior"),
                    "images": count("chosen"),
                    "gap": GAP_LEFT,
                    **ends(),
                    "distance": number("between distributions of selection frequencies"),
                    "moved": count("images from another bin than the one that was short"),
                }
            ),
            "planned": rows(
                {
                    "answers": count("about every image"),
                    **{name: fraction() for name in ("published", "fine", "posterior")},
                },
                "what each way would leave; empty without `--answers`",
            ),
            "reference_mean": fraction("selection frequency"),
            "pool_mean": fraction("selection frequency"),
            "method": word("published", "fine", "posterior", said="by which images were written"),
            "out": OUT_FILE,
        }
    },
    "plan": {
        "": {
            **_DESIGN,
            "cost": money(),
            "width": fraction("expected, of the mean gap's 95 % interval"),
            "range": list_of(fraction(), "5 % and 95 % quantiles of it over simulated studies"),
            "wanted": nullable(fraction("the width asked for")),
            "reached": flag("whether the design has it within the limits"),
            "expected": _EXPECTED_OUTCOME,
            "studies": count("simulated"),
            "certified": count("of these fits"),
            "correction": number("factor by which these fits correct the widths of all designs"),
            "prices": thing({"answer": money(), "image": money()}),
            "options": {**_OPTIONS, "description": "the cheapest design of each number of answers"},
            "by_money": {**_OPTIONS, "description": "the best design at several budgets"},
            "other_crowds": rows(
                {"crowd": text(), "workers": nullable(count()), "width": fraction()},
                "what other crowds would make of the width",
            ),
            "power": by_name(
                probability(), "to tell two classifiers apart, by their difference (a fraction)"
            ),
        },
        "with `--batch`": {
            "width": fraction("now"),
            "wanted": fraction(),
            "stop": flag("whether it is reached"),
            "rows": rows(
                {
                    "label": text("what to buy"),
                    "images": count(),
                    "answers": number("about an image, mean"),
                    "cost": money(),
                    "width": fraction("to be expected"),
                },
                "the narrowest first",
            ),
        },
    },
}
