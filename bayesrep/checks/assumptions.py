"""What no check can see, told of every answer."""

from bayesrep.checks.classes import assumed_of_images
from bayesrep.checks.crowd import assumed_of_crowds
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior, read_record


def list_assumptions(posterior: Posterior, fitted: Fitted | None) -> str:
    """What no check can see and every answer rests on, as a clause."""
    of_crowds = "" if fitted is None else assumed_of_crowds(fitted)
    of_images = assumed_of_images(read_record(posterior).grouping)
    *others, last = filter(None, [assumption(posterior), of_crowds, of_images])
    return f"{', '.join(others)} and {last}" if others else last


def assumption(posterior: Posterior) -> str:
    """What every answer of the fit rests on, as a clause."""
    assumed = read_record(posterior).dependence
    if assumed == 0:
        return "annotators answered independently"
    return f"annotators' answers about an image have an intraclass correlation of {assumed:g}"
