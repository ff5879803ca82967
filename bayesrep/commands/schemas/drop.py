"""How much of the drop is real: estimate, fit and sweep."""

from collections.abc import Mapping

from bayesrep.commands.schemas.shapes import (
    COMPONENTS,
    LEFT_OUT_FIELD,
    OUT_FILE,
    TRIED_FIELD,
    Schema,
    by_name,
    count,
    ends,
    flag,
    fraction,
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
MATCHING = rows(
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
        "": {"rows": rows(ACCURACIES), "gaps": GAPS, "matching": MATCHING, **LEFT_OUT_FIELD}
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
}
