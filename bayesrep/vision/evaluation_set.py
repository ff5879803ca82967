"""Evaluation set: the images of a data set with their labels, and the excluded files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bayesrep.errors import StudyError, listing
from bayesrep.studies.study_folder import StudyFolder
from bayesrep.vision.class_subset import ClassSubset, check_few_classes, read_class_subset
from bayesrep.vision.classes import Classes
from bayesrep.vision.hub import locate_images
from bayesrep.vision.images import ImageSet, list_images
from bayesrep.vision.study_update import counted_images


@dataclass(frozen=True)
class ImageSource:
    """Location of a data set's images, their labels and their subset of classes; see `predict`."""

    images: str | Path
    labels: str | Path | None = None
    among: str | Path | None = None


@dataclass(frozen=True, eq=False)
class ListedSet:
    """A data set's images to evaluate, and the classes that answers are chosen among."""

    images: ImageSet  # images to evaluate
    answer_classes: str  # subset of classes for the answers, in words; empty for all
    outside: int  # number of images excluded since they show none of these classes
    passed_over: Mapping[str, Sequence[str]]  # files that are not evaluated, by reason


def choose_images(
    images: ImageSet, chosen: ClassSubset | None, study: Path, dataset: str
) -> ListedSet:
    """Choose the images of a subset of classes, which must include all that a study counts."""
    counted = counted_images(study, dataset, images)
    passed = {**images.passed_over, "not among the study's images": _names_missing(counted, images)}
    if chosen is None:
        return ListedSet(counted, "", 0, passed)
    chosen_images = chosen.take_chosen(counted)
    passed["of other classes"] = _names_missing(chosen_images, counted)
    outside = len(counted) - len(chosen_images)
    if outside and StudyFolder(study).is_study:
        other = sorted(set(counted.names) - set(chosen_images.names))
        raise StudyError(
            "study-counts-images-of-other-classes",
            study=study,
            dataset=dataset,
            images=listing(other),
            among=chosen.source,
        )
    return ListedSet(chosen_images, chosen.description, outside, passed)


def _names_missing(chosen_images: ImageSet, images: ImageSet) -> list[str]:
    """List the images that were not taken, compared by place since names may differ."""
    places = set(map(tuple, chosen_images.place.tolist()))
    rows = zip(images.names, images.place.tolist(), strict=True)
    return [name for name, place in rows if tuple(place) not in places]


def list_set(source: ImageSource, study: Path, dataset: str, meant: Classes) -> ListedSet:
    """List the images of a data set whose classifiers' outputs mean some classes."""
    chosen = None if source.among is None else read_class_subset(source.among, meant)
    labelled = chosen.labelled if chosen else meant
    images = list_images(locate_images(source.images), labels=source.labels, classes=labelled)
    if source.among is None:
        check_few_classes(images, source.images)
    return choose_images(images, chosen, study, dataset)
