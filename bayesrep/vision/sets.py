"""The images of a data set as they are evaluated: which, labelled by what, and what is left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bayesrep.errors import StudyError, listing
from bayesrep.studies.study_folder import StudyFolder
from bayesrep.vision.among import Among, check_few_classes, read_among
from bayesrep.vision.classes import Classes
from bayesrep.vision.hub import locate_images
from bayesrep.vision.images import ImageSet, list_images
from bayesrep.vision.membership import counted_images


@dataclass(frozen=True)
class ImageSource:
    """Where a data set's images are, and what is to be known of them; see `predict`."""

    images: str | Path
    labels: str | Path | None = None
    among: str | Path | None = None


@dataclass(frozen=True, eq=False)
class ListedSet:
    """A data set's images as they are evaluated, and which classes answers are among.

    Attributes
    ----------
    images
        Those that are evaluated.
    among
        Which classes answers are among, in words; empty where among all.
    outside
        How many images were passed over because they show none of these.
    passed_over
        All files that were found and are not evaluated, by the reason.
    """

    images: ImageSet
    among: str
    outside: int
    passed_over: Mapping[str, Sequence[str]]


def choose_images(images: ImageSet, chosen: Among | None, study: Path, dataset: str) -> ListedSet:
    """The images of the chosen classes, which have to be all that a study counts."""
    counted = counted_images(study, dataset, images)
    passed = {**images.passed_over, "not among the study's images": _names_missing(counted, images)}
    if chosen is None:
        return ListedSet(counted, "", 0, passed)
    taken = chosen.take_chosen(counted)
    passed["of other classes"] = _names_missing(taken, counted)
    outside = len(counted) - len(taken)
    if outside and StudyFolder(study).is_study:
        other = sorted(set(counted.names) - set(taken.names))
        raise StudyError(
            "study-counts-images-of-other-classes",
            study=study,
            dataset=dataset,
            images=listing(other),
            among=chosen.source,
        )
    return ListedSet(taken, chosen.description, outside, passed)


def _names_missing(taken: ImageSet, images: ImageSet) -> list[str]:
    """The images that were not taken, which may have other names there."""
    places = set(map(tuple, taken.place.tolist()))
    rows = zip(images.names, images.place.tolist(), strict=True)
    return [name for name, place in rows if tuple(place) not in places]


def list_set(source: ImageSource, study: Path, dataset: str, meant: Classes) -> ListedSet:
    """List the images of a data set whose classifiers' outputs mean some classes."""
    chosen = None if source.among is None else read_among(source.among, meant)
    labelled = chosen.labelled if chosen else meant
    images = list_images(locate_images(source.images), labels=source.labels, classes=labelled)
    if source.among is None:
        check_few_classes(images, source.images)
    return choose_images(images, chosen, study, dataset)
