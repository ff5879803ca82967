"""ImageNet-v2 and ImageNet's validation set: predictions in modestyachts/ImageNetV2/data (MIT).

datasets/SET.json: images and wnids; predictions/SET/MODEL.npy: top 5; metadata/class_info.json.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import StudyError, listing
from bayesrep.files import strict_json
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import texts, whole_numbers
from bayesrep.sources.pickles.safe_pickle import read_array
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.leniency import PROVENANCE_ENTRY, SAME_CROWD
from bayesrep.studies.predictions import Predictions, code_type
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES

VALIDATION_SET = "imagenet-validation-original"
MATCHED_FREQUENCY_SET = "imagenetv2-b-33"  # the upstream name of ImageNet-v2 MatchedFrequency

_TABLE_COLUMNS = ("dataset", "image", "selected", "shown")


def read(
    paths: Sequence[str | Path],
    *,
    reference: str = VALIDATION_SET,
    replication: str = MATCHED_FREQUENCY_SET,
) -> StudyContents:
    """Read the classifiers' answers on two test sets, and the counts if a table has them.

    Parameters
    ----------
    paths
        The upstream `data` folder, and any number of CSV or Parquet tables with the columns
        dataset, image, selected and shown.
    reference, replication
        Names of the two test sets, as in `datasets/` and in the tables.

    Returns
    -------
    StudyContents
        Images in the upstream order; images of a test set without counts are left out of its data
        set, and the provenance says how many. Without tables there are the answers alone.

    Raises
    ------
    StudyError
        If the counts name images that are not in the list, or anything cannot be read.
    """
    folders = [Path(path) for path in paths if Path(path).is_dir()]
    if len(folders) != 1:
        raise StudyError("imagenetv2-takes-one-folder", folder_count=len(folders))
    answers = read_answers(folders[0], reference=reference, replication=replication)
    tables = [Path(path) for path in paths if not Path(path).is_dir()]
    if not tables:
        return StudyContents(answers=answers)
    parts: list[pl.DataFrame] = []
    for path in tables:
        frame, where = read_only(path, _TABLE_COLUMNS)
        require(frame, _TABLE_COLUMNS, where)
        names = [texts(frame[name], where) for name in _TABLE_COLUMNS[:2]]
        numbers = [whole_numbers(frame[name], where) for name in _TABLE_COLUMNS[2:]]
        parts.append(pl.DataFrame([*names, *numbers]))
    counts = pl.concat(parts)
    by_role: dict[str, Predictions] = dict(zip(REQUIRED_ROLES, answers, strict=True))
    datasets = {role: _build_annotated_set(each, counts, tables) for role, each in by_role.items()}
    without = {role: len(by_role[role].images) - len(datasets[role].images) for role in by_role}
    study = Study(
        datasets=datasets,
        classifiers=answers[0].classifiers,
        name="imagenetv2",
        # Every grid mixed images of ImageNet and candidates (Engstrom et al. 2020, section 2).
        provenance={
            "source": "imagenetv2",
            PROVENANCE_ENTRY: SAME_CROWD,
            "images_without_counts": without,
        },
    )
    return StudyContents.from_study(study, answers=answers)


def read_answers(
    folder: str | Path, *, reference: str = VALIDATION_SET, replication: str = MATCHED_FREQUENCY_SET
) -> list[Predictions]:
    """Read the classifiers' answers on both test sets; counts are not needed.

    Parameters
    ----------
    folder
        The upstream `data` folder.
    reference, replication
        As for `read`.

    Returns
    -------
    list of Predictions
        Answers to the reference and to the replication.

    Raises
    ------
    StudyError
        As `read`.
    """
    one, other = (read_test_set(folder, name) for name in (reference, replication))
    for predictions, other_predictions in ((one, other), (other, one)):
        if extra := sorted(set(predictions.classifiers) - set(other_predictions.classifiers)):
            raise StudyError(
                "classifier-on-one-test-set",
                folder=folder,
                classifiers=listing(extra, "classifier"),
                dataset=predictions.dataset,
                other_dataset=other_predictions.dataset,
            )
    return [one, other]


def read_test_set(
    data_dir: str | Path, dataset: str, *, classifiers: Sequence[str] | None = None
) -> Predictions:
    """Read every classifier's predictions on one test set.

    Parameters
    ----------
    data_dir
        The upstream `data` folder.
    dataset
        A test set's name: a file of `datasets/` without `.json`.
    classifiers
        Names to read; all of the test set by default.

    Returns
    -------
    Predictions

    Raises
    ------
    StudyError
        Naming the file that is missing, cannot be read or does not fit the others.
    """
    root = Path(data_dir)
    image_list = root / "datasets" / f"{dataset}.json"
    contents = strict_json.read(image_list)
    try:
        pairs = [(str(image), str(wnid)) for image, wnid in contents["image_filenames"]]
        images, labels = np.asarray(pairs).T
    except (KeyError, TypeError, ValueError) as error:
        raise StudyError("image-list-malformed", path=image_list) from error
    classes = _classes(root / "metadata" / "class_info.json", labels)
    folder = root / "predictions" / dataset
    names = sorted(path.stem for path in folder.glob("*.npy"))
    if classifiers is not None:
        if absent := sorted(set(classifiers) - set(names)):
            raise StudyError(
                "classifier-without-npy-file",
                folder=folder,
                classifiers=listing(absent, "classifier"),
                known_classifiers=names,
            )
        names = list(classifiers)
    if not names:
        raise StudyError("folder-without-npy-predictions", folder=folder)
    numbers = {wnid: number for number, wnid in enumerate(classes)}
    # One array for all, in the smallest type that holds the class numbers.
    answers = np.empty((len(names), len(images), 5), dtype=code_type(len(classes)))
    for row, path in zip(answers, (folder / f"{name}.npy" for name in names), strict=True):
        top5 = read_array(path)
        if top5.shape != (len(images), 5) or top5.dtype.kind not in "iu":
            raise StudyError(
                "top5-array-misshapen",
                path=path,
                dtype=top5.dtype,
                shape=list(top5.shape),
                image_count=len(images),
            )
        if top5.min() < 0 or top5.max() >= len(classes):
            last = len(classes) - 1
            raise StudyError("top5-class-out-of-range", path=path, largest_class=last)
        row[:] = top5
    return Predictions(
        dataset=dataset,
        images=images,
        classes=classes,
        labels=np.array([numbers[wnid] for wnid in labels.tolist()], dtype=answers.dtype),
        classifiers=tuple(names),
        answers=answers,
    )


def _classes(path: Path, labels: NDArray[np.str_]) -> tuple[str, ...]:
    entries = strict_json.read(path)
    try:
        numbers = {int(entry["cid"]): str(entry["wnid"]) for entry in entries}
        classes = tuple(numbers[number] for number in range(len(entries)))
    except (KeyError, TypeError, ValueError) as error:
        raise StudyError("class-list-malformed", path=path) from error
    if unknown := sorted(set(labels.tolist()) - set(classes)):
        raise StudyError("wnid-not-in-classes", path=path, wnids=listing(unknown, "wnid"))
    return classes


def _build_annotated_set(
    answers: Predictions, counts: pl.DataFrame, tables: Sequence[Path]
) -> AnnotatedSet:
    where = ", ".join(map(str, tables))
    rows = counts.filter(pl.col("dataset") == answers.dataset).drop("dataset")
    if rows.height == 0:
        datasets = listing(counts["dataset"].unique().sort(), "data set")
        raise StudyError(
            "no-counts-of-test-set", where=where, dataset=answers.dataset, data_sets=datasets
        )
    if (repeated := rows.filter(pl.col("image").is_duplicated())).height:
        names = listing(repeated["image"].unique(maintain_order=True))
        raise StudyError(
            "image-counts-repeated", where=where, images=names, dataset=answers.dataset
        )
    listed = pl.DataFrame({"image": answers.images, "place": np.arange(len(answers.images))})
    if (strange := rows.join(listed, on="image", how="anti")).height:
        names = listing(strange["image"])
        raise StudyError(
            "counts-without-predictions", where=where, images=names, dataset=answers.dataset
        )
    rows = rows.join(listed, on="image").sort("place")
    places = rows["place"].to_numpy()
    return AnnotatedSet(
        name=answers.dataset,
        images=answers.images[places],
        selected=rows["selected"].to_numpy(),
        shown=rows["shown"].to_numpy(),
        correct=answers.correct[:, places].T,
        labels=np.array(answers.classes)[answers.labels[places]],
    )
