"""Updates of a study by predictions: its counted images, its listed classifiers."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.atomic import replaced_file
from bayesrep.errors import StudyError, listing
from bayesrep.files import parquet, strict_json
from bayesrep.studies import layout
from bayesrep.studies.manifest import write_manifest
from bayesrep.studies.parquet_tables import KEYS, read_counts_alone, read_failures, read_keyed
from bayesrep.studies.prediction_files import complete_classifiers
from bayesrep.studies.study_folder import StudyFolder
from bayesrep.studies.violations import value
from bayesrep.vision.images import ImageSet, select


def counted_images(study: Path, dataset: str, images: ImageSet) -> ImageSet:
    """Select the images that the study counts or imported answers have, or all without any."""
    manifest = StudyFolder(study).manifest
    if manifest is None:
        return _answered_images(study, dataset, images)
    if dataset not in manifest.roles.values():
        datasets = listing(manifest.roles.values(), "data set")
        raise StudyError("data-set-not-in-study", study=study, datasets=datasets, dataset=dataset)
    counts = value(partial(read_counts_alone, study), study)
    names = counts.filter(pl.col("dataset") == dataset)["image"].to_list()
    chosen = select(images, names, dataset)
    if (file := study / layout.IMAGES_FILE).exists():
        table = value(partial(read_keyed, file, KEYS), study)
        if "label" in table.columns:
            rows = table.filter(pl.col("dataset") == dataset).select("image", "label")
            _compare_labels(study, dataset, chosen, dict(rows.iter_rows()))
    return chosen


def _answered_images(study: Path, dataset: str, images: ImageSet) -> ImageSet:
    """The images of the first answers that were imported; all where none were."""
    imported = StudyFolder(study).roles
    for classifier in sorted(layout.predicted_classifiers(study, dataset)) if imported else []:
        file = layout.prediction_file(dataset, classifier)
        table = parquet.read(study / file, str(file), ["image"], further=["label", "content"])
        if "content" in table.columns:  # made here
            continue
        names = table["image"].cast(pl.String).to_list()
        chosen = select(images, names, dataset)
        if "label" in table.columns:
            labels = table["label"].cast(pl.String).to_list()
            _compare_labels(study, dataset, chosen, dict(zip(names, labels, strict=True)))
        return chosen
    return images


def list_complete_classifiers(study: Path) -> list[str]:
    """List, and return, further classifiers with all predictions, unless images fail."""
    manifest = StudyFolder(study).manifest
    if manifest is None or manifest.classifiers is None:
        return []
    failures = value(partial(read_failures, study), study)
    ours = pl.col("dataset").is_in(list(manifest.roles.values()))
    if not failures.filter(ours)["left_out"].all():
        return []
    complete = complete_classifiers(study, manifest)
    added = [name for name in complete if name not in manifest.classifiers]
    if added:
        content = strict_json.load(study / layout.MANIFEST_FILE)
        write_manifest(content | {"classifiers": [*manifest.classifiers, *added]}, study)
    return added


def record_class_subset(study: Path, dataset: str, classes: str) -> None:
    """Record a data set's subset of classes in the study's provenance; "" for all."""
    folder = StudyFolder(study)
    provenance = dict(folder.provenance)
    earlier = provenance.pop("among", None)
    subsets: dict[str, Any] = dict(earlier) if isinstance(earlier, Mapping) else {}
    if subsets.get(dataset, "") == classes:
        return
    subsets = {name: text for name, text in {**subsets, dataset: classes}.items() if text}
    provenance |= {"among": subsets} if subsets else {}
    if folder.is_study:
        content = strict_json.load(study / layout.MANIFEST_FILE)
        write_manifest(content | {"provenance": provenance}, study)
        return
    with replaced_file(study / layout.PROVENANCE_FILE) as partial:
        partial.write_text(json.dumps(provenance, ensure_ascii=False) + "\n", encoding="utf-8")


def _compare_labels(study: Path, dataset: str, images: ImageSet, labels: Mapping[str, str]) -> None:
    """Refuse labels on disk that differ from the study's own, where these are names of classes."""
    number_of, names = images.classes.index, images.classes.names
    differing = [
        name
        for name, number in zip(images.names, images.labels.tolist(), strict=True)
        if labels.get(name) in number_of and labels[name] != names[number]
    ]
    if differing:
        number = int(images.labels[images.names.index(differing[0])])
        raise StudyError(
            "study-labels-differ-from-disk",
            study=study,
            dataset=dataset,
            images=listing(differing),
            study_label=labels[differing[0]],
            disk_label=names[number],
        )
