"""How much of the drop is real: estimate, fit, annotators and mixtures."""

from collections.abc import Mapping

from bayesrep.commands.schemas.shapes import (
    COMPONENTS,
    LEFT_OUT_FIELD,
    OUT_FILE,
    TRIED_FIELD,
    Schema,
    by_name,
    conditional_name,
    count,
    ends,
    flag,
    fraction,
    nats,
    nullable,
    number,
    probability,
    rows,
    seconds,
    text,
    thing,
)
from bayesrep.studies.rules import REQUIRED_ROLES

ACCURACIES: Mapping[str, Schema] = {
    "method": text(),
    "classifier": text(),
    "reference_accuracy": fraction(),
    "replication_accuracy": fraction(),
    "adjusted_accuracy": nullable(fraction("at the reference's selection frequencies")),
    **ends(each=nullable(fraction())),
    "bias_corrected_gap": nullable(fraction("reference less adjusted accuracy")),
    "selection_gap": nullable(fraction("adjusted less replication accuracy")),
}
GAPS = rows(
    {
        "method": text(),
        "quantity": text(
            "bias_corrected_gap, selection_gap, share_explained, slope, intercept; of `summarize` "
            "also population_gap, population_slope, population_intercept; slopes are not fractions"
        ),
        "estimate": nullable(number()),
        **ends(each=nullable(number())),
    },
    "means over classifiers, and the line of adjusted on reference accuracies",
)
_MATCHING = rows(
    {
        "method": text(),
        "annotators": count("n', to which images were thinned"),
        "images_left_out": thing(
            {role: count() for role in REQUIRED_ROLES}, "that have fewer annotators"
        ),
        "fewest_annotators": count("of any image"),
        "images_with_no_more": thing(
            {role: count() for role in REQUIRED_ROLES}, "that hold n' down, where most have more"
        ),
        "annotators_without_these": count("n' without the images that hold it down"),
        "gap_of_all_images": nullable(
            fraction("thinned to the fewest; null where none is left out, or it cannot be had")
        ),
        "gap_standard_error": nullable(fraction("of the mean gap, over images, by the bootstrap")),
    },
    "naive matching and the jackknife: which images they take",
)
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
_SWEPT = rows(
    {
        "axes": by_name(text(), "the method, and what varies in the grid beside seeds"),
        "runs": count(),
        "failed": count("refused by the library"),
        "converged": nullable(count("null of point estimates")),
        "mean_gap": nullable(fraction("bias-corrected, over classifiers and runs")),
        "gap_error": nullable(fraction("of that; null where the truth is not known")),
        "gap_rms": nullable(fraction("root mean square error of the mean gap over runs")),
        "single_rms": nullable(fraction("likewise of classifiers' adjusted accuracies")),
        "gap_held": nullable(probability("of the mean gaps' 95 % intervals hold the truth")),
        "single_held": nullable(probability("of the classifiers' 95 % intervals hold the truth")),
        "gap_width": nullable(fraction("mean, of the mean gap's interval")),
        "single_width": nullable(fraction("mean, of the classifiers' intervals")),
        "seconds": nullable(seconds("of a run, the median")),
        "ess_per_second": nullable(number("the least effective size by second, the median")),
    },
    "by method and axis, what finished runs came to",
)

FORMS: Mapping[str, Mapping[str, Mapping[str, Schema]]] = {
    "estimate": {
        "": {"rows": rows(ACCURACIES), "gaps": GAPS, "matching": _MATCHING, **LEFT_OUT_FIELD}
    },
    "fit": {
        "": {
            "out": OUT_FILE,
            "converged": flag(),
            "verdict": text("on convergence, as a sentence"),
            **COMPONENTS,
            **TRIED_FIELD,
            "seconds": by_name(seconds(), "by stage"),
            **LEFT_OUT_FIELD,
        }
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
            "matching": _MATCHING,
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
    "sweep": {
        "of a grid": {
            "out": OUT_FILE,
            "runs": count("of the grid"),
            "made": count("now; the others were finished before"),
            "failed": count("refused by the library"),
            "rows": _SWEPT,
        },
        "with `--table`": {"runs": count("of the grid"), "finished": count(), "rows": _SWEPT},
        "with `--figure`": {"out": OUT_FILE},
    },
    "mixtures": {
        "": {
            "rows": rows(
                {
                    "dataset": text(),
                    "components": count(),
                    "parameters": count(),
                    "log_likelihood": nats(),
                    "aic": number("smaller is better"),
                    "bic": number("smaller is better"),
                    "held_out_log_likelihood": nullable(nats("over all images; larger is better")),
                    "converged": flag(),
                    "degenerate": count("components shrunk to a point"),
                    "held_out_behind": nullable(nats("the best")),
                    "held_out_error": nullable(nats("standard error of that, over images")),
                }
            ),
            **LEFT_OUT_FIELD,
        }
    },
}
