"""Protocol of estimators: options that are called with versions of a study."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import (
    Any,
    ClassVar,
    Literal,
    Protocol,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

import numpy as np

from bayesrep.errors import OptionError
from bayesrep.estimators.annotator_match import AnnotatorMatch
from bayesrep.estimators.replicates import Replicates
from bayesrep.types import Float


@dataclass(frozen=True, eq=False)
class Estimates:
    """Adjusted accuracies of C classifiers in B versions of a study.

    Attributes
    ----------
    value : float64 [B, C]
        Row 0 is the study's own.
    standard_error : float64 [C] or None
        Standard error of row 0, where the estimator has one without a bootstrap.
    match
        The number of annotators that images were matched with, where they were.
    always_right
        Estimate for a classifier that is always right, in row 0: less than 1 where the noise of the
        counts biases estimates.
    """

    value: Float[np.ndarray, "version classifier"]
    standard_error: Float[np.ndarray, "classifier"] | None = None
    match: AnnotatorMatch | None = None
    always_right: float = 1.0


@runtime_checkable
class Estimator(Protocol):
    """A method: a frozen dataclass with its options as fields, a default for each.

    Every option is a word (`str` or `Literal`) or a number (`int` or `float`), or None where that
    is its default; so it can be written as text, `"naive(annotators=10)"`. The line in `ESTIMATORS`
    of `bayesrep/estimators/methods.py` makes it known to tables, the command line and the tests.
    A class that inherits from this one has the common traits, and states where it differs.
    """

    name: ClassVar[str]
    is_measured: ClassVar[bool] = False
    """True if the estimate is the replication's accuracy as measured."""
    noise_option: ClassVar[str | None] = None
    """The option that makes it less noisy, of a method that multiplies the images' noise by n'."""
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def min_annotators(self) -> int:
        """Fewest annotators of an image that it can match with; 0 if it need not match."""
        return 0

    def __call__(
        self, replicates: Replicates, *, seed: int = 0, progress: bool = False
    ) -> Estimates:
        """Estimate every version of a study.

        Parameters
        ----------
        replicates
            Row 0 is the study itself. The estimate of a version may depend on row 0 (for its
            starting values) and on nothing else outside its own row.
        seed
            Seed of all random numbers.
        progress
            Show a bar on standard error for long computations.
        """
        ...


def check_words(kind: Any, options: Mapping[str, Any]) -> None:
    """Raise OptionError where an option of `Literal` type has another value."""
    for option, hint in get_type_hints(kind).items():
        words = get_args(hint) if get_origin(hint) is Literal else ()
        if words and option in options and options[option] not in words:
            raise OptionError(
                "unknown-method-option-value",
                method=kind.name,
                option=option,
                value=options[option],
                choices=", ".join(words),
            )
