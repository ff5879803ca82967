"""Assumptions that no check can test, stated with every answer."""

from bayesrep.checks.classes import assumed_of_images, class_note
from bayesrep.checks.crowd import assumed_of_crowds
from bayesrep.checks.dependence import assumption, independence_note
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior, read_record


def list_assumptions(posterior: Posterior, fitted: Fitted | None) -> str:
    """List the assumptions that no check can test, as a clause."""
    of_crowds = "" if fitted is None else assumed_of_crowds(fitted)
    record = read_record(posterior)
    words = record.words if fitted is None else fitted.words
    of_images = assumed_of_images(record.grouping, words)
    *others, last = filter(None, [assumption(posterior, words), of_crowds, of_images])
    return f"{', '.join(others)} and {last}" if others else last


def correction_notes(fitted: Fitted) -> str:
    """Say what the fit allows for that a reader may want to know the size of."""
    notes = independence_note(fitted.posterior, fitted.words), class_note(fitted)
    return " ".join(filter(None, notes))
