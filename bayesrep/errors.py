"""The library's own exceptions and warnings, in one place so that any room can raise them.

An error's kind says what is at fault, whichever room found it: an option, the data of a study, a
posterior, images to be evaluated, or that a sampler has not converged. All have one base; whatever
else is raised is a mistake of ours.
"""

from collections.abc import Iterable

SHOWN = 5  # how many offenders a message names before it only counts them


class BayesrepError(Exception):
    """What the library refuses, in one line; anything else that is raised is a mistake of ours."""


class OptionError(BayesrepError, ValueError):
    """An option that is unknown, out of its range, or does not go with the others or the data."""


class StudyError(BayesrepError, ValueError):
    """Data that cannot be a study; the message is one line naming what, where and what to do."""


class PosteriorError(BayesrepError, ValueError):
    """A posterior that cannot be used: a broken file, another study's, or without what it takes."""


class PredictionError(BayesrepError, ValueError):
    """Images, labels or classifiers that cannot be evaluated; one line as in `StudyError`."""


class ConvergenceError(BayesrepError, RuntimeError):
    """A posterior whose sampler did not converge was used without being allowed explicitly."""


class ConvergenceWarning(UserWarning):
    """A fit failed a convergence check; the message names the quantity and what to try."""


class TableWarning(UserWarning):
    """A table was read otherwise than it is written, and the text says how."""


class PredictionWarning(UserWarning):
    """Predictions were made, but something about them is probably wrong."""


class ProtocolWarning(UserWarning):
    """An evaluation protocol leaves something out."""


class EstimateWarning(UserWarning):
    """A point estimate rests on more than the counts."""


class InterpolationWarning(EstimateWarning):
    """The reference has images at counts at which the replication has none."""


class IdentificationWarning(EstimateWarning):
    """The counts or the answers do not determine something that is fitted to them."""


def reason(error: BaseException) -> str:
    """What an exception says in one line, for use inside a message of our own."""
    said = getattr(error, "strerror", None)
    try:
        lines = (said if isinstance(said, str) and said.strip() else str(error)).split("\n")
    except Exception:  # an exception of somebody else's that cannot say what it is
        lines = []
    return next((line.strip() for line in lines if line.strip()), type(error).__name__)


def kind_and_reason(error: BaseException) -> str:
    """The same with the exception's type, where the text alone may say little."""
    return f"{type(error).__name__}: {reason(error)}"


def plain(text: str) -> str:
    r"""A text that cannot steer a terminal: the unprintable is escaped, as in `\x1b`."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def listing(items: Iterable[object], noun: str = "image") -> str:
    """The first five offenders by name, and the number of all.

    Parameters
    ----------
    items
        The offending names, in the order in which they should be named.
    noun
        What one of them is called, in the singular.

    Returns
    -------
    str
        For example `images 'a', 'b'` or `images 'a', 'b', 'c', 'd', 'e', ... (12 images)`.
    """
    names = [repr(str(item)) for item in items]
    if len(names) == 1:
        return f"{noun} {names[0]}"
    more = f", ... ({len(names)} {noun}s)" if len(names) > SHOWN else ""
    return f"{noun}s {', '.join(names[:SHOWN])}{more}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The one of some names that another was probably meant to be, whatever its case."""
    from difflib import get_close_matches

    folded = {each.casefold().strip(): each for each in known if each != name}
    close = get_close_matches(name.casefold().strip(), list(folded), n=1, cutoff=0.7)
    return folded[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message on an unknown name: nothing, or `; did you mean 'x'?`."""
    found = nearest(name, known)
    return "" if found is None else f"; did you mean {found!r}?"
