"""Start here: run, demo, check and doctor."""

from collections.abc import Mapping

from bayesrep.commands.schemas.shapes import (
    COMPONENTS,
    LEFT_OUT_FIELD,
    OUT_FILE,
    TRIED_FIELD,
    TRUST,
    Schema,
    by_name,
    conditional_name,
    count,
    ends,
    file,
    flag,
    fraction,
    list_of,
    nullable,
    number,
    probability,
    rows,
    seconds,
    text,
    thing,
    word,
)

_BROKEN_RULES = list_of(text(), "a sentence for every rule that is broken")
_FREQUENCIES = {
    "dataset": text("its role"),
    "images": count(),
    "mean": fraction("selection frequency over images"),
    **ends(each=nullable(fraction())),
    "standard_error": nullable(fraction()),
}
_FINITE_FIELDS = {
    "classifier": nullable(text("null: the mean over classifiers")),
    "accuracy": fraction("on the replication"),
    "standard_error": nullable(fraction("of the term, over images")),
    **ends(each=nullable(fraction())),
}

FORMS: Mapping[str, Mapping[str, Mapping[str, Schema]]] = {
    "run": {
        "": {
            "out": OUT_FILE,
            "answer": text("what the fit says of the drop"),
            "trust": TRUST,
            "verdict": text("the same as a sentence"),
            "sentences": list_of(text(), "what is not as it should be, the worst first"),
            "assumption": text("what every answer rests on and no check can see"),
            "matching": list_of(
                text(), "which images naive matching takes, and what noise is left"
            ),
            "converged": flag(),
            **COMPONENTS,
            **TRIED_FIELD,
            "seconds": by_name(seconds(), "by stage"),
        }
    },
    "demo": {
        "": {
            "study": thing(
                {
                    "name": text(),
                    "simulated": {"type": "object", "description": "the options of `simulate`"},
                }
            ),
            "methods": rows(
                {
                    "method": text("`truth` is the last"),
                    "mean_gap": fraction("bias-corrected, over classifiers"),
                    "mean_error": nullable(fraction("of that gap")),
                    "share_explained": nullable(fraction("of the drop, by selection")),
                    "coverage": nullable(probability("of the classifiers' 95 % intervals")),
                    **ends(each=nullable(fraction())),
                }
            ),
            "fitted_by": word("laplace", "nuts", said="what made the draws"),
            "max_rhat": nullable(number("of chains; null of weighted draws")),
            "min_ess_bulk": number(),
            "min_ess_tail": number(),
            "verdict": text("on convergence, as a sentence"),
            "versions": by_name(text(), "by package"),
        }
    },
    "check": {
        "of a study": {
            "study": file("what was checked"),
            "broken": _BROKEN_RULES,
            "frequencies": conditional_name(
                "where no rule is broken and there are counts", rows(_FREQUENCIES)
            ),
            "finite_sample": conditional_name(
                "likewise", rows(_FINITE_FIELDS, "what the replication's finite size adds to gaps")
            ),
            **LEFT_OUT_FIELD,
        },
        "of tables": {"files": list_of(file(), "what was checked"), "broken": _BROKEN_RULES},
    },
    "doctor": {
        "": {
            "is": text("what the data are"),
            "supported": flag("whether a drop can be told from a difference of the versions"),
            "allows": rows(
                {
                    "what": text("that may be wanted of the data"),
                    "state": word("yes", "with care", "no", said="whether it can be had"),
                    "because": text("what there is"),
                    "missing": text("what it would take; empty where nothing is missing"),
                }
            ),
        }
    },
}
