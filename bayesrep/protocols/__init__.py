"""Other protocols by which the field re-examines a test set."""

from bayesrep.protocols.by_subset import (
    compare_subsets,
    fast_images,
    missed_by_all,
    read_image_subsets,
)
from bayesrep.protocols.comparison import Comparison, compare
from bayesrep.protocols.confusion import co_occurrence, confusion, confusion_difference
from bayesrep.protocols.effective_robustness import (
    EffectiveRobustness,
    Shift,
    measure_robustness,
    measure_shifts,
)
from bayesrep.protocols.humans import beside, read_humans, shankar2020
from bayesrep.protocols.intervals import (
    INTERVALS,
    independent_difference,
    paired_difference,
    proportion_interval,
)
from bayesrep.protocols.label_sets import LabelSets, read_label_sets, read_some_label_sets
from bayesrep.protocols.lines import (
    fit_lines,
    line_band,
    resampled_accuracies,
)
from bayesrep.protocols.matched import MatchedAccuracy, match
from bayesrep.protocols.multi_label import multilabel
from bayesrep.protocols.pairs import compare_pairs, holm, mcnemar
from bayesrep.protocols.people import people_beside, read_people
from bayesrep.protocols.people_shares import (
    compare_labels_with_people,
    compare_predictions_with_people,
)
from bayesrep.protocols.subsets import class_subsets, imagenet_subsets, read_groups
from bayesrep.studies.answers import read_predictions

__all__ = [
    "INTERVALS",
    "Comparison",
    "EffectiveRobustness",
    "LabelSets",
    "MatchedAccuracy",
    "Shift",
    "beside",
    "class_subsets",
    "co_occurrence",
    "compare",
    "compare_pairs",
    "compare_subsets",
    "confusion",
    "confusion_difference",
    "fast_images",
    "fit_lines",
    "holm",
    "imagenet_subsets",
    "independent_difference",
    "compare_predictions_with_people",
    "line_band",
    "match",
    "mcnemar",
    "measure_robustness",
    "measure_shifts",
    "missed_by_all",
    "multilabel",
    "paired_difference",
    "people_beside",
    "proportion_interval",
    "read_groups",
    "read_humans",
    "read_image_subsets",
    "read_label_sets",
    "read_some_label_sets",
    "read_people",
    "read_predictions",
    "resampled_accuracies",
    "compare_labels_with_people",
    "shankar2020",
]
